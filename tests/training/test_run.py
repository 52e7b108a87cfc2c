"""What a method's `train` is given: rollouts that are kept on disk, teachers, and honest costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny import build_tiny_model
from toy_training import letter_examples, say, toy_run

from ragtrials.branching import Branch, alternatives
from ragtrials.data import Example, Passage
from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.program import Completion, Generate, Hit, Program, Retrieve, Score, generate, retrieve, user
from ragtrials.training.programs import sampled
from ragtrials.training.run import TrainRun

ASKED = letter_examples()[:5]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


class Counting:
    """An engine that says the last word of a request and the seed, counts, and can break down."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, breaks_after: int = 1000) -> None:
        self.calls, self.breaks_after = 0, breaks_after

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        found = []
        for request, seed in zip(requests, seeds, strict=True):
            if self.calls == self.breaks_after:
                raise RunFailure("power cut")
            self.calls += 1
            text = f"{request.messages[-1].text.split()[-1]}{seed % 97 if request.temperature else ''}"
            found.append(Completion(text, (1, 2), (3, 4, 5)))
        return found

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        raise AssertionError


class Shelf:
    """A retriever that finds passages named after the question."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.calls = 0

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        self.calls += len(queries)
        return [[Hit(Passage(f"{q}{i}", q, f"text {i}"), 1.0) for i in range(k)] for q in queries]


def run_with(folder: Path, model: Path, engine: Counting, **options: Any) -> TrainRun:
    return toy_run(folder, model, ASKED, chunk=2, engine=engine, **options)


def read_two(question: str) -> Program:
    """Two passages, each read apart, then both replies together."""
    passages = yield from retrieve(question, k=2)
    notes = yield [Generate((user(f"note {p.id}"),), role="reader") for p in passages]
    reply = yield from generate((user(f"{question} {' '.join(note.text for note in notes)}"),))
    return str(reply.text)


def test_rollouts_of_a_broken_training_are_not_asked_again(tmp_path: Path, model: Path) -> None:
    with pytest.raises(RunFailure, match="power cut"):
        run_with(tmp_path, model, Counting(breaks_after=3)).rollout("r", say, ASKED)
    second = Counting()
    traces = run_with(tmp_path, model, second).rollout("r", say, ASKED)
    assert second.calls == 3  # the first chunk of two was there
    third = Counting(breaks_after=0)
    run = run_with(tmp_path, model, third)
    assert run.rollout("r", say, ASKED) == traces
    assert [trace.answer for trace in traces] == list("abcde")
    assert run.report().rollouts.llm_calls == 5


def test_questions_asked_alone_are_kept_too(tmp_path: Path, model: Path) -> None:
    asked = [
        (example.id, Generate((user(example.question),), temperature=1.0), number)
        for example in ASKED[:3]
        for number in range(2)
    ]
    with pytest.raises(RunFailure, match="power cut"):
        run_with(tmp_path, model, Counting(breaks_after=5)).ask("a", asked)
    engine = Counting()
    drawn = run_with(tmp_path, model, engine).ask("a", asked)
    assert engine.calls == 2
    assert drawn == run_with(tmp_path / "whole", model, Counting()).ask("a", asked)
    assert len({completion.text for completion in drawn}) == 6  # every draw has a seed of its own


def test_branches_are_kept_and_cost_what_was_served(tmp_path: Path, model: Path) -> None:
    engine, shelf = Counting(), Shelf()
    run = run_with(tmp_path, model, engine, retriever=shelf)
    (trace,) = run.rollout("r", read_two, ASKED[:1])
    assert (engine.calls, shelf.calls) == (3, 1)
    branches = alternatives(trace, ASKED[0].question, 1, [Completion("x"), Completion("y")])
    first, second = run.branch("b", read_two, branches)
    assert (first.answer, second.answer) == (trace.steps[2].result.text,) * 2  # type: ignore[union-attr]
    assert (engine.calls, shelf.calls) == (5, 1)  # only the last step of each was live
    cost = run.report().rollouts
    assert (cost.retrieval_calls, cost.llm_calls) == (1, 5)
    assert (cost.prompt_tokens, cost.completion_tokens) == (15, 10)
    later = run_with(tmp_path, model, Counting(breaks_after=0), retriever=shelf)
    assert later.rollout("r", read_two, ASKED[:1]) == [trace]
    assert later.branch("b", read_two, branches) == [first, second]
    counted = later.report().rollouts
    assert counted == cost


def test_chunks_of_another_training_are_refused(tmp_path: Path, model: Path) -> None:
    run_with(tmp_path, model, Counting()).rollout("r", say, ASKED)
    with pytest.raises(UserError, match=r"chunk-00000.jsonl: holds other questions than this run's"):
        run_with(tmp_path, model, Counting()).rollout("r", say, ASKED[1:])


def test_a_teacher_speaks_in_the_models_place(tmp_path: Path, model: Path) -> None:
    engine, shelf = Counting(breaks_after=0), Shelf()
    run = run_with(tmp_path, model, engine, retriever=shelf)
    rows = run.demonstrate(read_two, ASKED, lambda request, example: f"{request.role} {example.question}")
    assert shelf.calls == run.report().rollouts.retrieval_calls == len(ASKED)
    assert run.report().rollouts.llm_calls == 0
    by_prompt = {row.messages[-1].text: row.completion for row in rows}
    assert len(rows) == len(by_prompt) == 3 * len(ASKED)
    for example in ASKED:
        letter = example.question
        assert by_prompt[f"note {letter}0"] == by_prompt[f"note {letter}1"] == f"reader {letter}"
        assert by_prompt[f"{letter} reader {letter} reader {letter}"] == f"generator {letter}"


def test_a_teacher_beside_retrievals(tmp_path: Path, model: Path) -> None:
    """One parallel round asks both: each result comes back to its own place."""

    def mixed(question: str) -> Program:
        note, hits, other = yield [
            Generate((user(f"note {question}"),)),
            Retrieve(question, 1),
            Generate((user(f"other {question}"),)),
        ]
        reply = yield from generate((user(f"{note.text} {hits[0].passage.id} {other.text}"),))
        return str(reply.text)

    run = run_with(tmp_path, model, Counting(breaks_after=0), retriever=Shelf())
    rows = run.demonstrate(mixed, ASKED[:2], lambda request, _: request.messages[-1].text.upper())
    assert [row.messages[-1].text for row in rows if " A0" in row.messages[-1].text.upper()] == [
        "NOTE A a0 OTHER A"
    ]
    assert len(rows) == 6


def test_a_teacher_cannot_say_how_likely_a_text_is(tmp_path: Path, model: Path) -> None:
    def scoring(question: str) -> Program:
        yield Score((user(question),), "yes")
        return ""

    with pytest.raises(RunFailure, match="example a0: the program asked for a score where a teacher speaks"):
        run_with(tmp_path, model, Counting()).demonstrate(scoring, ASKED, lambda *_: "")


def test_only_the_named_role_is_drawn() -> None:
    program = sampled(read_two, "reader", temperature=0.7, top_p=0.9)("q")
    assert program.send(None) == Retrieve("q", 2)
    notes: Any = program.send(tuple(Hit(Passage(f"p{i}", "", ""), 1.0) for i in range(2)))
    assert [(note.temperature, note.top_p) for note in notes] == [(0.7, 0.9)] * 2
    last: Any = program.send([Completion("a"), Completion("b")])
    assert last.temperature == 0
    with pytest.raises(StopIteration, match="end"):
        program.send(Completion("end"))


def test_several_roles_can_be_drawn() -> None:
    def three(question: str) -> Program:
        yield [Generate((user(question),), role=role) for role in ("a", "b")]
        yield Generate((user(question),), role="ab")
        return ""

    program = sampled(three, ("a", "ab"), temperature=0.7)("q")
    first: Any = program.send(None)
    assert [(request.role, request.temperature) for request in first] == [("a", 0.7), ("b", 0)]
    last: Any = program.send([Completion("a"), Completion("b")])
    assert (last.role, last.temperature, last.top_p) == ("ab", 0.7, 1.0)
    alone: Any = sampled(three, "ab", temperature=0.7)("q").send(None)
    assert [request.temperature for request in alone] == [0, 0]  # a name is one role, not its letters


def test_sampled_rollouts_of_two_branches_differ_and_repeat(tmp_path: Path, model: Path) -> None:
    draw = sampled(say, "generator", 1.0)
    branches = [Branch("a0", "a", sample=number) for number in range(3)]
    one = [t.answer for t in run_with(tmp_path / "1", model, Counting()).branch("b", draw, branches)]
    two = [t.answer for t in run_with(tmp_path / "2", model, Counting()).branch("b", draw, branches)]
    assert one == two
    assert len(set(one)) == 3


def test_the_reward_is_the_tasks(tmp_path: Path, model: Path) -> None:
    def half(answer: str, example: Example) -> float:
        return 0.5 if answer == example.target else 0.0

    run = toy_run(tmp_path, model, ASKED, reward=half, engine=ScriptedEngine(lambda _: ""))
    assert [run.reward("a", ASKED[0]), run.reward("b", ASKED[0])] == [0.5, 0.0]
