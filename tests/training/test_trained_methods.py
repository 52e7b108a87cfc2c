"""The prompt of training is the prompt of evaluation, to the token, for every role of every trained method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import build_tiny_model
from toy_training import Recorder, toy_run

from ragtrials.data import Example, Passage
from ragtrials.driver import Driver
from ragtrials.llm.build import load_engine
from ragtrials.methods._self_labels import CRITIC
from ragtrials.program import Completion, Generate, Hit
from ragtrials.registry import METHODS
from ragtrials.training import stages

# What PPO trains is looked at in test_cooperating_agents.py.
TRAINED = [
    name
    for name in METHODS.names()
    if METHODS.load(name).trains and not hasattr(METHODS.load(name).PROFILES["smoke"], "ppo")
]
QUESTIONS = [Example(f"q{n}", f"Where was person {n} born?", ((f"Town {n}",),)) for n in range(4)]
PASSAGES = [
    Passage(f"p{n}", f"Person {n}", f"Person {n} was born in Town {n}. " * (1 + 5 * n)) for n in range(4)
]
BUDGET = 330  # too little for the longest passages, so that prompts are shortened, too


class Ranked:
    """A retriever with an order of its own for every question, or with the same passages for all."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, fixed: Sequence[Passage] | None = None) -> None:
        self.fixed = fixed

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        return [[Hit(passage, 1.0) for passage in self.ranking(query)[:k]] for query in queries]

    def ranking(self, query: str) -> Sequence[Passage]:
        if self.fixed is not None:
            return self.fixed
        start = int(query.split()[3])
        return [*PASSAGES[start:], *PASSAGES[:start]]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)
    tokens = [token for name in TRAINED for token in method_of(METHODS.load(name)).tokens]
    return folder, load_engine(
        str(folder),
        dtype="float32",
        device="cpu",
        batch_size=16,
        max_prompt_tokens=BUDGET,
        tokens=tuple(dict.fromkeys(tokens)),
    )


def method_of(kind: Any) -> Any:
    """The method under its smallest settings, but with whole passages."""
    config = kind.PROFILES["smoke"]
    return kind(replace(config, passage_words=None) if hasattr(config, "passage_words") else config)


def many_es(answer: str, example: Example) -> float:
    """A reward that random text has now and then."""
    return min(1.0, answer.count("e") / 4)


def rows_by_role(kind: Any, folder: Path, engine: Any, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The token ids of all rows that a method trains on, without any optimisation."""
    recorder = Recorder()
    monkeypatch.setattr(stages, "_optimise", recorder)
    run = toy_run(
        folder,
        engine[0],
        QUESTIONS,
        many_es,
        engine=engine[1],
        retriever=Ranked(),
        max_prompt_tokens=BUDGET,
        tokens=method_of(kind).tokens,
    )
    method_of(kind).train(run)
    return recorder


def evaluated_prompts(kind: Any, engine: Any) -> tuple[dict[str, set[tuple[int, ...]]], int]:
    """What `answer` asks by role, under every run of passages that training may have shown; how many were cut."""
    method = method_of(kind)
    k = method.config.k
    runs = {
        tuple(Ranked().ranking(e.question)[i : i + n]) for e in QUESTIONS for i in range(4) for n in (1, k)
    }
    prompts: dict[str, set[tuple[int, ...]]] = {}
    cut = 0
    for retriever in [Ranked(), *map(Ranked, sorted(runs, key=lambda run: [p.id for p in run]))]:
        traces = Driver(retriever, engine[1]).run(method.answer, [(e.id, e.question) for e in QUESTIONS])
        for step in (step for trace in traces for step in trace.steps):
            if isinstance(step.request, Generate):
                assert isinstance(step.result, Completion)
                prompts.setdefault(step.request.role, set()).add(step.result.prompt_ids)
                cut += step.result.dropped_tokens > 0
    return prompts, cut


@pytest.mark.parametrize("name", TRAINED)
def test_the_prompt_of_training_is_the_prompt_of_evaluation(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind = METHODS.load(name)
    recorder = rows_by_role(kind, tmp_path, engine, monkeypatch)
    assert recorder.prompts
    assert set(recorder.prompts) <= set(kind.roles)
    if hasattr(kind.PROFILES["smoke"], "train_agents"):
        assert set(recorder.prompts) == set(kind.PROFILES["smoke"].train_agents)
    asked, cut = evaluated_prompts(kind, engine)
    assert cut  # the comparison covers shortened prompts
    assert set(recorder.prompts) - set(asked) <= {CRITIC}  # it labels training data alone
    for role, prompts in recorder.prompts.items():
        assert prompts
        if role == CRITIC:
            continue
        strangers = [prompt for prompt in prompts if prompt not in asked[role]]
        assert not strangers, f"{len(strangers)} of {len(prompts)} prompts of {role} are never asked"


def test_every_trained_method_is_here() -> None:
    assert {"sft", "ra_dit", "ret_robust", "rag_ddr", "ddr_gen", "ddr_kr", "rejection_sft"} <= set(TRAINED)


@pytest.mark.parametrize("name", ["rag_ddr", "rejection_sft"])
def test_two_rollouts_are_the_same(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind = METHODS.load(name)
    first = rows_by_role(kind, tmp_path / "one", engine, monkeypatch)
    assert rows_by_role(kind, tmp_path / "two", engine, monkeypatch).rows == first.rows


def test_per_doc_gives_an_instance_for_every_passage(
    tmp_path: Path, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    per_doc = rows_by_role(METHODS.load("ra_dit"), tmp_path / "a", engine, monkeypatch)
    together = rows_by_role(METHODS.load("sft"), tmp_path / "b", engine, monkeypatch)
    k = METHODS.load("ra_dit").PROFILES["smoke"].k
    assert len(together.prompts["generator"]) == len(QUESTIONS)
    assert len(per_doc.prompts["generator"]) == k * len(QUESTIONS)
