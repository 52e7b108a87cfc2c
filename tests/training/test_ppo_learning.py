"""PPO learns: toy episodes whose optimum is known, for one agent and for three who need each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy_agents import (
    EXAMPLES,
    FREE,
    FULL,
    LETTERS,
    TEAM,
    alone,
    build_toy_model,
    greedy,
    judge_alone,
    judge_team,
    shifted,
    team,
)
from toy_training import toy_run

from ragtrials.data import Example
from ragtrials.program import Program, Trace, generate, user
from ragtrials.training.episodes import Judgement
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.ppo_stage import ppo
from ragtrials.training.scalars import read_log

SETTINGS = Ppo(steps=40, questions=32, kl=FREE, update=FULL)
TRIPLES = [example for example in EXAMPLES if example.question != "d"]
"""Three questions, each of them eight times."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toy_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_one_agent_reaches_the_optimum(tmp_path: Path, model: Path) -> None:
    run = toy_run(tmp_path, model, EXAMPLES)
    ppo(run, "ppo", {"p": ("generator",)}, alone, judge_alone, SETTINGS)
    curve = run.statistics["ppo"]["reward"]
    assert sum(curve[:3]) / 3 < 0.5
    assert greedy(run, alone, judge_alone) >= 0.95


TEAM_SETTINGS = replace(SETTINGS, steps=80, questions=48, update=replace(FULL, batch_size=48, micro_batch=48))


def test_three_agents_reach_the_optimum_that_needs_all_three(tmp_path: Path, model: Path) -> None:
    run = toy_run(tmp_path, model, TRIPLES)
    ppo(run, "ppo", {"shared": TEAM}, team, judge_team, TEAM_SETTINGS)
    print(run.statistics["ppo"]["reward"])
    assert greedy(run, team, judge_team) >= 0.95


def test_two_of_three_agents_cannot_reach_it(tmp_path: Path, model: Path) -> None:
    run = toy_run(tmp_path, model, TRIPLES)
    ppo(run, "ppo", {"shared": TEAM}, team, judge_team, TEAM_SETTINGS, learners=TEAM[:2])
    print(run.statistics["ppo"]["reward"])
    assert greedy(run, team, judge_team) <= 0.7
