"""A training on a tiny model with made-up questions, for tests that need neither data nor a retriever."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragtrials.data import Example
from ragtrials.llm.build import load_engine
from ragtrials.llm.models import resolve_model
from ragtrials.program import Engine, Program, Retriever, generate, user
from ragtrials.training.report import StageReport
from ragtrials.training.run import Surroundings, TrainRun
from ragtrials.training.scalars import ScalarLog
from ragtrials.training.settings import Optimisation

LETTERS = string.ascii_lowercase
FULL = Optimisation(
    tuning="full", learning_rate=2e-3, warmup=0.1, epochs=1, batch_size=16, micro_batch=16, save_steps=1000
)
"""All weights of a model that is too small for adapters."""


def letter_examples(answer: Callable[[str], str] = str, copies: int = 1) -> list[Example]:
    """One example per letter and copy; the question is the letter."""
    return [Example(f"{x}{n}", x, ((answer(x),),)) for n in range(copies) for x in LETTERS]


def say(question: str) -> Program:
    """The program of the toy tasks: the model's reply to the question."""
    reply = yield from generate((user(question),), max_new_tokens=3)
    return str(reply.text)


def exact(answer: str, example: Example) -> float:
    """1 for the right answer, else 0."""
    return float(answer == example.target)


def toy_run(
    folder: Path,
    model: Path,
    examples: Sequence[Example],
    reward: Callable[[str, Example], float] = exact,
    chunk: int = 100,
    seed: int = 0,
    engine: Engine | None = None,
    retriever: Retriever | None = None,
    max_prompt_tokens: int = 512,
    tokens: tuple[str, ...] = (),
) -> TrainRun:
    """A training of no particular method, on the CPU in float32; a given engine stays the same throughout."""

    def load(policies: Mapping[str, Path]) -> Engine:
        if engine is not None:
            return engine
        return load_engine(
            str(model),
            dtype="float32",
            device="cpu",
            batch_size=32,
            max_prompt_tokens=max_prompt_tokens,
            policies=policies,
            tokens=tokens,
        )

    return TrainRun(
        examples,
        [],
        Surroundings(
            label="training toy",
            task="toy",
            train_id="toy",
            folder=folder,
            seed=seed,
            chunk=chunk,
            base=resolve_model(str(model), tokens),
            dtype="float32",
            device="cpu",
            batch_size=32,
            max_prompt_tokens=max_prompt_tokens,
            retriever=retriever,
            load_engine=load,
            load_other=lambda name: load({}),
            describe_other=lambda name: {"model": name},
            free_engine=lambda: None,
            scores=lambda answer, example: {"em": reward(answer, example), "f1": reward(answer, example)},
            main_metric="em",
            choices=(),
            log=ScalarLog(folder),
        ),
    )


def mean_reward(run: TrainRun, name: str, examples: Sequence[Example]) -> float:
    """The mean reward of the present weights, greedy."""
    traces = run.rollout(name, say, examples)
    return sum(run.reward(t.answer, e) for t, e in zip(traces, examples, strict=True)) / len(examples)


class Recorder:
    """Stands in for the optimisation: keeps the encoded rows and leaves the weights as they are."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, dict[str, list[int]]]] = []

    def __call__(self, run: TrainRun, stage: str, roles: Sequence[str], kind: str, *rest: Any) -> StageReport:
        (role,) = roles
        rows = rest[1]
        self.rows += [(role, row) for row in rows]
        return StageReport(stage, role, kind, len(rows), 0, 0, 0, 0, 0.0, 0.0)

    @property
    def prompts(self) -> dict[str, list[tuple[int, ...]]]:
        """The prompts of all rows by role."""
        found: dict[str, list[tuple[int, ...]]] = {}
        for role, row in self.rows:
            prompt = row.get("prompt_ids")
            if prompt is None:
                learnt = next(at for at, label in enumerate(row["labels"]) if label != -100)
                prompt = row["input_ids"][:learnt]
            found.setdefault(role, []).append(tuple(prompt))
        return found
