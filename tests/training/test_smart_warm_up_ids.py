"""The rows of SmartRAG's warm-up, to the token: the prompt of evaluation, and what should follow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smart_library import COMPARED, EXAMPLES, Library
from tiny import build_tiny_model
from toy_training import Recorder, toy_run

from ragtrials.driver import Driver
from ragtrials.llm.build import load_engine
from ragtrials.methods._smart_actions import ANSWER
from ragtrials.methods._smart_config import WarmUp
from ragtrials.methods._smart_warm_up import WarmUpData
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Engine, Generate, Message, Score
from ragtrials.training import stages

BUDGET = 260  # too little for the longest passages


class Prompting:
    """Reads prompts as the engine does, and says what it is told to each."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, engine: Engine, replies: Mapping[tuple[Message, ...], str]) -> None:
        self.engine, self.replies = engine, replies

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        read = self.engine.generate([replace(r, max_new_tokens=1) for r in requests], seeds)
        return [
            replace(one, text=self.replies[request.messages])
            for request, one in zip(requests, read, strict=True)
        ]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        raise AssertionError


def parts(row: dict[str, list[int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The prompt of an encoded row, and what is learnt: the rest."""
    start = row["labels"].count(-100)
    assert row["labels"] == [-100] * start + row["input_ids"][start:]
    return tuple(row["input_ids"][:start]), tuple(row["input_ids"][start:])


@pytest.mark.parametrize("quota", [1, 2])
def test_a_row_is_the_prompt_of_evaluation_and_what_should_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: int
) -> None:
    model = build_tiny_model(tmp_path / "model", hidden=32)
    recorder = Recorder()
    monkeypatch.setattr(stages, "_optimise", recorder)
    texts = {f"Person{n}": f"Person{n} was here. " * (1 + 4 * n) for n in range(12)}
    examples = [*EXAMPLES, COMPARED]
    run = toy_run(tmp_path / "run", model, examples, retriever=Library(texts), max_prompt_tokens=BUDGET)
    config = replace(
        SmartRAG.PROFILES["smoke"], quota=quota, passage_words=None, warm_up=WarmUp(label_mode="all")
    )
    method = SmartRAG(config)
    data = WarmUpData(run, "policy", config, ())
    labels = data.labels()
    lookups = data.lookups(method.answer, labels)
    data.train(method.answer)

    engine = load_engine(str(model), dtype="float32", device="cpu", batch_size=16, max_prompt_tokens=BUDGET)
    teacher = Prompting(engine, {row.messages: str(row.completion) for row in lookups})
    asked = [(e.id, e.question) for e in examples]
    traces = Driver(Library(texts), teacher).run(method.answer, asked)

    cut = False
    encode, end = run.encoder.prompts.encode_text, run.encoder.prompts.turn_end
    expected = []
    for trace, example in zip(traces, examples, strict=True):
        results: list[Any] = [step.result for step in trace.generations]
        expected.append((results[0].prompt_ids, (*encode(f"{ANSWER} {example.target}"), end)))
        expected += [(result.prompt_ids, (*encode(result.text), end)) for result in results]
        cut |= any(result.dropped_tokens for result in results)
    assert Counter(parts(row) for _, row in recorder.rows) == Counter(expected)
    assert cut  # the comparison covers shortened prompts
