"""A training on a tiny model with made-up questions, for tests that need neither data nor a retriever."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from pathlib import Path

from ragtrials.data import Example
from ragtrials.llm.build import load_engine
from ragtrials.llm.models import resolve_model
from ragtrials.program import Program, generate, user
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
) -> TrainRun:
    """A training of no particular method, on the CPU in float32."""
    return TrainRun(
        examples,
        [],
        Surroundings(
            label="toy",
            task="toy",
            train_id="toy",
            folder=folder,
            seed=seed,
            chunk=chunk,
            base=resolve_model(str(model)),
            dtype="float32",
            device="cpu",
            max_prompt_tokens=512,
            retriever=None,
            load_engine=lambda policies: load_engine(
                str(model), dtype="float32", device="cpu", batch_size=32, policies=policies
            ),
            free_engine=lambda: None,
            reward=reward,
            log=ScalarLog(folder),
        ),
    )


def mean_reward(run: TrainRun, name: str, examples: Sequence[Example]) -> float:
    """The mean reward of the present weights, greedy."""
    traces = run.rollout(name, say, examples)
    return sum(run.reward(t.answer, e) for t, e in zip(traces, examples, strict=True)) / len(examples)
