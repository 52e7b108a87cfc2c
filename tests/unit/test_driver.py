from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from ragtrials.data import Passage
from ragtrials.driver import Driver
from ragtrials.errors import RunFailure, UserError
from ragtrials.program import (
    Completion,
    Cost,
    Generate,
    Hit,
    Program,
    Retrieve,
    Score,
    generate,
    retrieve,
    user,
)
from ragtrials.seeding import derive_seed


class Recorder:
    """A retriever and engine that writes down each call it gets."""

    signature: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.seeds: list[int] = []

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        self.calls.append(("search", (tuple(queries), k, tuple(example_ids or ()))))
        return [[Hit(Passage(f"{q}-{i}", q, "text"), 1.0 / (i + 1)) for i in range(k)] for q in queries]

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        self.calls.append(("generate", tuple(r.messages[-1].text for r in requests)))
        self.seeds += seeds
        return [Completion(r.messages[-1].text.upper(), (1, 2), (1, 2, 3)) for r in requests]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        self.calls.append(("score", tuple(r.continuation for r in requests)))
        return [Completion(r.continuation, (1, 2), (1, 2, 3), (-1.0, -2.0), "scored") for r in requests]


def two_steps(question: str) -> Program:
    passages = yield from retrieve(question, k=2)
    reply = yield from generate([user(f"{question} {len(passages)}")])
    return reply.text


QUESTIONS = [("a", "one"), ("b", "two"), ("c", "three")]


def test_requests_of_a_round_are_pooled_in_example_order() -> None:
    fake = Recorder()
    traces = Driver(fake, fake).run(two_steps, QUESTIONS)
    assert fake.calls == [
        ("search", (("one", "two", "three"), 2, ("a", "b", "c"))),
        ("generate", ("one 2", "two 2", "three 2")),
    ]
    assert [(t.example_id, t.answer) for t in traces] == [("a", "ONE 2"), ("b", "TWO 2"), ("c", "THREE 2")]


def test_cost_is_counted_per_request() -> None:
    fake = Recorder()
    cost = Driver(fake, fake).run(two_steps, QUESTIONS)[0].cost
    assert (cost.retrieval_calls, cost.passages, cost.llm_calls) == (1, 2, 1)
    assert (cost.prompt_tokens, cost.completion_tokens) == (3, 2)


def test_parallel_requests_come_back_as_a_list_in_their_order() -> None:
    def answer(question: str) -> Program:
        found = yield [Retrieve("x", 1), Retrieve("y", 3)]
        both = yield [Generate((user("g"),)), Score((user("s"),), "tail")]
        return f"{[len(hits) for hits in found]} {both[0].text} {both[1].text}"

    fake = Recorder()
    trace = Driver(fake, fake).run(answer, [("a", "q")])[0]
    assert trace.answer == "[1, 3] G tail"
    assert [step.round for step in trace.steps] == [0, 0, 1, 1]
    assert trace.cost == Cost(2, 4, 2, 3 + 3 + 2, 2, trace.cost.seconds)  # a scored tail is read, not written


def test_an_empty_list_of_requests_goes_straight_on() -> None:
    def answer(question: str) -> Program:
        nothing = yield []
        return f"got {nothing}"

    fake = Recorder()
    trace = Driver(fake, fake).run(answer, [("a", "q")])[0]
    assert (trace.answer, trace.steps, fake.calls) == ("got []", (), [])


def test_programs_of_different_length_advance_together() -> None:
    def answer(question: str) -> Program:
        text = ""
        for i in range(int(question)):
            text += (yield Generate((user(str(i)),))).text
        return text

    fake = Recorder()
    traces = Driver(fake, fake).run(answer, [("a", "1"), ("b", "3"), ("c", "0")])
    assert [trace.answer for trace in traces] == ["0", "012", ""]
    assert [len(call[1]) for call in fake.calls] == [2, 1, 1]


def test_roles_and_k_are_pooled_apart() -> None:
    def answer(question: str) -> Program:
        yield Retrieve(question, int(question))
        yield Generate((user(question),), role="odd" if int(question) % 2 else "even")
        return ""

    fake = Recorder()
    Driver(fake, fake).run(answer, [("a", "1"), ("b", "2"), ("c", "1")])
    assert [call[0] for call in fake.calls] == ["search", "search", "generate", "generate"]
    assert fake.calls[0][1][0] == ("1", "1")
    assert fake.calls[3][1] == ("1", "1")


def test_sampling_seeds_depend_on_example_and_step_alone() -> None:
    def answer(question: str) -> Program:
        yield Generate((user("g"),), temperature=1.0)
        yield Generate((user("g"),), temperature=1.0)
        return ""

    def seeds(ids: Sequence[str], seed: int) -> list[int]:
        fake = Recorder()
        Driver(fake, fake, seed).run(answer, [(i, "q") for i in ids])
        return fake.seeds

    together = seeds(["a", "b"], 0)
    assert len(set(together)) == 4
    assert seeds(["b"], 0) == [together[1], together[3]]
    assert seeds(["b"], 1) != seeds(["b"], 0)


def test_the_seed_of_a_plain_run_stays_what_it_was() -> None:
    """Committed results were drawn with these seeds."""

    def answer(question: str) -> Program:
        yield Retrieve(question, 1)
        yield [Generate((user("g"),), temperature=1.0), Generate((user("g"),), temperature=0.5)]
        return ""

    fake = Recorder()
    Driver(fake, fake, seed=7).run(answer, [("a", "q")])
    assert fake.seeds == [derive_seed(7, "a", 1), derive_seed(7, "a", 2)]


def test_single_requests_are_pooled_and_come_back_in_their_order() -> None:
    fake = Recorder()
    driver = Driver(fake, fake)
    requests = [
        ("a", Generate((user("one"),)), 0),
        ("b", Retrieve("two", 1), 0),
        ("b", Score((user("three"),), "tail"), 0),
        ("a", Generate((user("four"),)), 1),
        ("c", Retrieve("five", 1), 0),
    ]
    results = driver.ask(requests)
    assert fake.calls == [
        ("generate", ("one", "four")),
        ("search", (("two", "five"), 1, ("b", "c"))),
        ("score", ("tail",)),
    ]
    assert [r.text for r in results if isinstance(r, Completion)] == ["ONE", "tail", "FOUR"]
    assert [r[0].passage.id for r in results if not isinstance(r, Completion)] == ["two-0", "five-0"]
    assert driver.timing.engine > 0.0
    assert driver.timing.retriever > 0.0


def test_single_requests_draw_by_example_and_sample() -> None:
    fake = Recorder()
    request = Generate((user("g"),), temperature=1.0)
    Driver(None, fake, 7).ask([("a", request, 0), ("a", request, 1), ("b", request, 1), ("a", request, 1)])
    assert fake.seeds[0] == derive_seed(7, "a", 0)
    assert len(set(fake.seeds)) == 3
    assert fake.seeds[1] == fake.seeds[3]


def test_a_single_request_must_be_one() -> None:
    with pytest.raises(RunFailure, match="example a: the program yielded 'text', which is no request"):
        Driver(None, Recorder()).ask([("a", "text", 0)])  # type: ignore[list-item]


def test_what_is_served_is_counted() -> None:
    fake = Recorder()
    driver = Driver(fake, fake)
    driver.run(two_steps, QUESTIONS)
    driver.ask([("a", Score((user("s"),), "tail"), 0)])
    timing = driver.timing
    assert (timing.retrieval_calls, timing.llm_calls) == (3, 3 + 1)
    assert (timing.prompt_tokens, timing.completion_tokens) == (3 * 3 + 5, 3 * 2)  # a scored tail is read


def test_an_exception_in_a_program_names_the_example() -> None:
    def answer(question: str) -> Program:
        yield Retrieve(question, 1)
        raise KeyError("oops")

    fake = Recorder()
    with pytest.raises(RunFailure, match=r"example b: KeyError: 'oops'"):
        Driver(fake, fake).run(answer, [("b", "q")])


@pytest.mark.parametrize(
    ("yielded", "message"),
    [("text", "example a: the program yielded 'text', which is no request"), ([1], "yielded 1")],
)
def test_what_is_no_request_is_refused(yielded: Any, message: str) -> None:
    def answer(question: str) -> Program:
        yield yielded
        return ""

    fake = Recorder()
    with pytest.raises(RunFailure, match=message):
        Driver(fake, fake).run(answer, [("a", "q")])


def test_an_answer_must_be_text() -> None:
    def answer(question: str) -> Program:
        yield Retrieve(question, 1)
        return None  # type: ignore[return-value]

    fake = Recorder()
    with pytest.raises(RunFailure, match="example a: the program answered None, which is no text"):
        Driver(fake, fake).run(answer, [("a", "q")])


def test_a_method_that_never_retrieves_is_held_to_it() -> None:
    fake = Recorder()
    with pytest.raises(RunFailure, match="example a: a method with `retrieves = False` asked to retrieve"):
        Driver(None, fake).run(two_steps, QUESTIONS)


def test_a_user_error_keeps_its_line() -> None:
    def answer(question: str) -> Program:
        raise UserError("k must be at least 1")
        yield

    fake = Recorder()
    with pytest.raises(UserError, match=r"^k must be at least 1$"):
        Driver(fake, fake).run(answer, QUESTIONS)


def test_a_program_can_be_driven_by_hand() -> None:
    program = two_steps("q")
    assert program.send(None) == Retrieve("q", 2)
    request = program.send((Hit(Passage("p", "t", "x"), 1.0),))
    assert isinstance(request, Generate)
    assert request.messages == (user("q 1"),)
    with pytest.raises(StopIteration) as end:
        program.send(Completion("Paris"))
    assert end.value.value == "Paris"
