"""What a training knows of its task: the scores that evaluation reports, and the answers that it chooses among."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from dataset_files import made_up_folder
from smart_episodes import CONFIG
from tiny import build_tiny_model

from ragtrials.data import Example
from ragtrials.errors import RunFailure
from ragtrials.method import Method, Paper
from ragtrials.methods._smart_actions import ANSWER
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Generate, Program, Step, Trace, user
from ragtrials.resources import Resources
from ragtrials.suite import Conditions, Request
from ragtrials.trained import plan_training, trained
from ragtrials.training.run import TrainRun

KEPT: list[TrainRun] = []


class Looks(Method):
    """Keeps what it is given to train with, and goes no further."""

    name = "looks"
    retrieves = False
    trains = True
    paper = Paper("", "", {})

    @dataclass(frozen=True)
    class Config:
        """Settings.

        Attributes:
            examples: Training examples.
        """

        examples: int | None = 4

    PROFILES = {"smoke": Config()}  # noqa: RUF012

    def answer(self, question: str) -> Program:
        raise NotImplementedError

    def train(self, run: TrainRun) -> None:
        KEPT.append(run)
        raise RunFailure("seen enough")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


def run_on(task: str, folder: Path, model: Path) -> TrainRun:
    KEPT.clear()
    resources = Resources(made_up_folder(folder / "data", task))
    conditions = Conditions(model=str(model), profile="smoke", device="cpu")
    method = Looks(Looks.Config())
    plan = plan_training(Request("x", "looks", task, conditions), method, resources.task(task), resources)
    with pytest.raises(RunFailure, match="seen enough"):
        trained(plan, resources, folder / "runs")
    (run,) = KEPT
    return run


def earned(run: TrainRun, answer: str, example: Example, **changes: Any) -> tuple[float, ...]:
    """SmartRAG's reward of an answer without a search."""
    request = Generate((user(example.question),), role="policy")
    trace = Trace(example.id, answer, (Step(0, request, Completion(f"{ANSWER} {answer}")),))
    found: tuple[float, ...] = SmartRAG(replace(CONFIG, **changes))._judge(run)(trace, example).rewards
    return found


@pytest.mark.parametrize(
    ("task", "choices", "verbose"),
    [
        ("fever", ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), "supports it"),
        ("strategyqa", ("yes", "no"), "{} indeed"),
        ("hotpotqa", (), "Paris, France"),
        ("popqa", (), "a politician there"),
    ],
)
def test_a_reward_is_made_of_what_the_task_reports(
    tmp_path: Path, model: Path, task: str, choices: tuple[str, ...], verbose: str
) -> None:
    run = run_on(task, tmp_path, model)
    assert run.choices == choices
    example = run.examples[0]
    verbose = verbose.format(example.target)
    right, near = run.scores(example.target, example), run.scores(verbose, example)
    assert (right["em"], right["f1"], near["em"]) == (1.0, 1.0, 0.0)
    assert near["f1"] == pytest.approx(2 / 3)
    assert run.reward(verbose, example) == near[run._around.main_metric]
    assert earned(run, example.target, example) == (1.0 if choices else 2.0,)
    assert earned(run, verbose, example) == pytest.approx((0.0 if choices else 2 / 3,))
    assert earned(run, verbose, example, correct="em_f1") == pytest.approx((2 / 3,))
    assert earned(run, verbose, example, correct="em") == (0.0,)


def test_an_alias_that_is_not_the_first_counts(tmp_path: Path, model: Path) -> None:
    run = run_on("popqa", tmp_path, model)
    assert earned(run, "Pol.", run.examples[0]) == (2.0,)
