from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragtrials.branching import Branch, alternatives
from ragtrials.chunks import read_chunk, write_chunk
from ragtrials.data import Passage
from ragtrials.driver import Driver, Timing
from ragtrials.errors import RunFailure
from ragtrials.program import (
    Completion,
    Evidence,
    Generate,
    Hit,
    Message,
    Program,
    Request,
    Retrieve,
    Score,
    Step,
    Trace,
    user,
)


class Seeded:
    """A retriever and engine whose answers depend on the request and, when sampling, on the seed."""

    signature: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        self.searched: list[str] = []
        self.written: list[str] = []
        self.seeds: list[int] = []
        self.calls: list[int] = []  # how many requests each call had

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        self.searched += queries
        self.calls.append(len(queries))
        return [[Hit(Passage(f"{q}-{i}", q, "text"), 1.0 / (i + 1)) for i in range(k)] for q in queries]

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        self.written += [request.messages[-1].text for request in requests]
        self.seeds += seeds
        self.calls.append(len(requests))
        return [
            Completion(
                f"<{request.messages[-1].text}>{seed % 97 if request.temperature else ''}", (1,), (1, 2)
            )
            for request, seed in zip(requests, seeds, strict=True)
        ]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        self.calls.append(len(requests))
        return [Completion(r.continuation, (1,), (1, 2), (-0.5,), "scored") for r in requests]


class Forbidden:
    """A retriever and engine that must not be asked."""

    signature: ClassVar[dict[str, Any]] = {}

    def search(self, *args: Any, **options: Any) -> Any:
        raise AssertionError(f"searched {args}")

    def generate(self, *args: Any) -> Any:
        raise AssertionError(f"generated {args}")

    def score(self, *args: Any) -> Any:
        raise AssertionError(f"scored {args}")


def write(text: str, temperature: float = 0.0) -> Generate:
    return Generate((user(text),), temperature=temperature)


def three_steps(question: str) -> Program:
    """Write a query, look for it, answer from what is found."""
    query = (yield write(f"query {question}")).text
    hits = yield Retrieve(query, 1)
    reply = yield write(f"answer from {hits[0].passage.title}")
    return f"final {reply.text}"


def judged_and_answered(question: str) -> Program:
    """Judge three passages side by side, answer from those that are kept."""
    verdicts = yield [write(f"judge {name}") for name in "xyz"]
    kept = [name for name, verdict in zip("xyz", verdicts, strict=True) if verdict.text != "NO"]
    reply = yield write(f"answer from {kept}")
    return str(reply.text)


def untimed(trace: Trace) -> Trace:
    return replace(trace, steps=tuple(replace(step, seconds=0.0) for step in trace.steps))


def recorded(answer: Callable[[str], Program], question: str = "q", example_id: str = "a") -> Trace:
    seeded = Seeded()
    return Driver(seeded, seeded).run(answer, [(example_id, question)])[0]


def test_a_full_replay_asks_nobody() -> None:
    trace = recorded(three_steps)
    again = Driver(None, Forbidden()).branch(three_steps, [Branch("a", "q", trace.steps)])
    assert again == [untimed(trace)]
    assert [step.seconds for step in again[0].steps] == [0.0, 0.0, 0.0]


def test_a_middle_step_has_alternatives() -> None:
    trace = recorded(three_steps)
    others = [(Hit(Passage(name, name, "text"), 1.0),) for name in ("north", "south", "west")]
    branches = alternatives(trace, "q", 1, others)
    assert [branch.sample for branch in branches] == [0, 1, 2]
    fake = Seeded()
    traces = Driver(fake, fake).branch(three_steps, branches)
    assert [t.answer for t in traces] == [f"final <answer from {n}>" for n in ("north", "south", "west")]
    assert [t.steps[0].result for t in traces] == [trace.steps[0].result] * 3
    assert [t.steps[1].result for t in traces] == others
    assert [t.steps[1].request for t in traces] == [trace.steps[1].request] * 3
    assert fake.searched == []
    assert fake.calls == [3]  # the rest of all three is served in one call


def test_branches_of_different_depth_are_served_in_the_same_rounds() -> None:
    trace = recorded(three_steps)
    fake = Seeded()
    branches = [Branch("a", "q"), Branch("a", "q", trace.steps[:1]), Branch("a", "q", trace.steps[:2])]
    traces = Driver(fake, fake).branch(three_steps, branches)
    assert [untimed(t) for t in traces] == [untimed(trace)] * 3
    assert fake.calls == [1, 2, 3]


def test_steps_beside_the_branched_one_are_replayed_and_later_rounds_are_live() -> None:
    trace = recorded(judged_and_answered)
    no, maybe = Completion("NO"), Completion("MAYBE")
    fake = Seeded()
    traces = Driver(None, fake).branch(judged_and_answered, alternatives(trace, "q", 1, [no, maybe]))
    assert [t.answer for t in traces] == ["<answer from ['x', 'z']>", "<answer from ['x', 'y', 'z']>"]
    assert fake.written == ["answer from ['x', 'z']", "answer from ['x', 'y', 'z']"]
    assert [step.round for step in traces[0].steps] == [0, 0, 0, 1]


def test_a_round_can_be_replayed_in_part() -> None:
    trace = recorded(judged_and_answered)
    fake = Seeded()
    again = Driver(None, fake).branch(judged_and_answered, [Branch("a", "q", trace.steps[:2])])[0]
    assert untimed(again) == untimed(trace)
    assert fake.written == ["judge z", "answer from ['x', 'y', 'z']"]


def test_requests_are_forced_wherever_they_come() -> None:
    forced = {write("judge y"): Completion("NO"), write("answer from ['x', 'z']"): Completion("so be it")}
    fake = Seeded()
    trace = Driver(None, fake).branch(judged_and_answered, [Branch("a", "q", forced=forced)])[0]
    assert trace.answer == "so be it"
    assert fake.written == ["judge x", "judge z"]
    assert [step.seconds == 0.0 for step in trace.steps] == [False, True, False, True]


def test_one_round_is_replayed_forced_and_served() -> None:
    trace = recorded(judged_and_answered)
    fake = Seeded()
    branch = Branch("a", "q", trace.steps[:1], {write("judge y"): Completion("NO")})
    again = Driver(None, fake).branch(judged_and_answered, [branch])[0]
    assert fake.written == ["judge z", "answer from ['x', 'z']"]
    assert [step.result.text for step in again.steps[:3] if isinstance(step.result, Completion)] == [
        "<judge x>",
        "NO",
        "<judge z>",
    ]


def test_what_was_recorded_goes_before_what_is_forced() -> None:
    trace = recorded(judged_and_answered)
    forced: dict[Request, Any] = {write(f"judge {name}"): Completion("NO") for name in "xyz"}
    branch = Branch("a", "q", trace.steps[:3], forced)
    again = Driver(None, Seeded()).branch(judged_and_answered, [branch])[0]
    assert again.answer == trace.answer


def test_a_program_must_ask_what_was_recorded() -> None:
    trace = recorded(three_steps)
    other = replace(trace.steps[1], request=Retrieve("something else", 1))
    branch = Branch("a7", "q", (trace.steps[0], other))
    message = "example a7: the program asked something else than what was recorded at step 1"
    with pytest.raises(RunFailure, match=f"^{message}$"):
        Driver(Seeded(), Seeded()).branch(three_steps, [branch])


def test_the_position_in_a_parallel_round_is_compared() -> None:
    first, second, *rest = recorded(judged_and_answered).steps
    with pytest.raises(RunFailure, match="at step 0"):
        Driver(None, Seeded()).branch(judged_and_answered, [Branch("a", "q", (second, first, *rest))])


def test_all_recorded_steps_must_be_used() -> None:
    trace = recorded(three_steps)
    extra = Step(3, write("one more"), Completion("more"))
    message = re.escape("example a: the program ended after 3 of the 4 recorded steps")
    with pytest.raises(RunFailure, match=f"^{message}$"):
        Driver(None, Forbidden()).branch(three_steps, [Branch("a", "q", (*trace.steps, extra))])


@pytest.mark.parametrize("step", [-1, 3])
def test_a_trace_is_branched_at_one_of_its_steps(step: int) -> None:
    message = f"^example a: no step {step} to branch at, the trace has 3 steps$"
    with pytest.raises(RunFailure, match=message):
        alternatives(recorded(three_steps), "q", step, [Completion("x")])


def test_an_alternative_must_be_of_the_request_s_kind() -> None:
    trace = recorded(three_steps)
    with pytest.raises(RunFailure, match=r"^example a: a Completion cannot be the result of a retrieve$"):
        alternatives(trace, "q", 1, [Completion("x")])
    with pytest.raises(RunFailure, match=r"^example a: a tuple cannot be the result of a generate$"):
        Branch("a", "q", forced={write("x"): ()})


def sampled(question: str) -> Program:
    first = (yield write("first", 1.0)).text
    both = yield [write(f"{first} left", 1.0), write(f"{first} right", 1.0)]
    return "".join(reply.text for reply in both)


def seeds_of(example_id: str, sample: int, seed: int = 0) -> list[int]:
    fake = Seeded()
    Driver(None, fake, seed).branch(sampled, [Branch(example_id, "q", sample=sample)])
    return fake.seeds


def test_seeds_depend_on_example_and_sample() -> None:
    draws = [seeds_of("a", 0), seeds_of("a", 1), seeds_of("a", 2), seeds_of("b", 0), seeds_of("b", 1)]
    assert len({seed for draw in draws for seed in draw}) == 15
    assert seeds_of("a", 1) == draws[1]
    assert seeds_of("a", 1, seed=1) != draws[1]


def test_seeds_do_not_depend_on_the_other_branches_or_on_what_is_replayed() -> None:
    trace = recorded(sampled)
    fake = Seeded()
    branches = [Branch("b", "q", sample=5), Branch("a", "q", trace.steps[:2]), Branch("a", "q", sample=1)]
    traces = Driver(None, fake).branch(sampled, branches)
    assert untimed(traces[1]) == untimed(trace)
    assert traces[2].steps[0].result != trace.steps[0].result


def test_sample_0_is_a_plain_run() -> None:
    fake = Seeded()
    Driver(None, fake).run(sampled, [("a", "q")])
    assert fake.seeds == seeds_of("a", 0)


def test_only_what_is_served_is_counted() -> None:
    trace = recorded(three_steps)
    fake = Seeded()
    driver = Driver(fake, fake)
    driver.branch(three_steps, alternatives(trace, "q", 1, [trace.steps[1].result] * 4))
    timing = driver.timing
    assert (timing.retrieval_calls, timing.llm_calls) == (0, 4)
    assert (timing.prompt_tokens, timing.completion_tokens) == (8, 4)
    assert timing.retriever == 0.0
    assert timing.engine > 0.0


def test_traces_from_a_file_can_be_branched(tmp_path: Path) -> None:
    def answer(question: str) -> Program:
        hits = yield Retrieve(question, 2)
        prompt = Message("user", ("Read: ", *(Evidence(hit.passage.text) for hit in hits)))
        reply = yield Generate((prompt,), temperature=0.7, stop=("\n",), allowed=("YES", "NO"), logprobs=True)
        judged = yield Score((prompt,), reply.text)
        return str(judged.text)

    trace = recorded(answer)
    write_chunk(tmp_path, "run", 0, [trace], 1.0, Timing())
    chunk = read_chunk(tmp_path, "run", 0, ["a"])
    assert chunk is not None
    again = Driver(None, Forbidden()).branch(answer, [Branch("a", "q", chunk.traces[0].steps)])[0]
    assert again == untimed(trace)


# A random program: each round asks for some requests; what it asks depends on all results before.
PLANS = st.lists(st.lists(st.sampled_from("rgsc"), max_size=3), min_size=1, max_size=5).filter(
    lambda plan: any(plan)
)


def planned(plan: list[list[str]]) -> Callable[[str], Program]:
    def make(kind: str, slot: int, memory: str) -> Request:
        text = f"{slot} {memory}"
        if kind == "r":
            return Retrieve(text, 1 + len(memory) % 2)
        if kind == "c":
            return Score((user(text),), f"tail {len(memory)}")
        return write(text, temperature=float(kind == "s"))

    def answer(question: str) -> Program:
        memory = question
        for kinds in plan:
            requests = [make(kind, slot, memory) for slot, kind in enumerate(kinds)]
            alone = len(requests) == 1 and len(memory) % 2
            results = [(yield requests[0])] if alone else (yield requests)
            memory = f"{question} {len(memory)} {sum(len(repr(result)) for result in results)} "
            memory += " ".join(r.text for r in results if isinstance(r, Completion))[-12:]
        return memory

    return answer


@settings(max_examples=60, deadline=None)
@given(plan=PLANS, data=st.data())
def test_the_original_result_gives_the_original_trace(plan: list[list[str]], data: st.DataObject) -> None:
    answer = planned(plan)
    seed = data.draw(st.integers(0, 3))
    fake = Seeded()
    trace = Driver(fake, fake, seed).run(answer, [("a", "q")])[0]
    # A request that is asked twice may have drawn two results; forced is one for both.
    assume(len({step.request for step in trace.steps}) == len(trace.steps))
    step = data.draw(st.integers(0, len(trace.steps) - 1))
    branches = alternatives(trace, "q", step, [trace.steps[step].result])
    branches += [Branch("a", "q", trace.steps[:step])]
    branches += [Branch("a", "q", forced={s.request: s.result for s in trace.steps})]
    again = Seeded()
    driver = Driver(again, again, seed)
    assert [untimed(t) for t in driver.branch(answer, branches)] == [untimed(trace)] * 3
    later = sum(s.round > trace.steps[step].round for s in trace.steps)
    assert driver.timing.retrieval_calls + driver.timing.llm_calls == later + len(trace.steps) - step
