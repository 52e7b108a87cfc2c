"""PPO learns: toy episodes whose optimum is known, for one agent and for three who need each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors.torch import load_file
from toy_agents import (
    EXAMPLES,
    FREE,
    FULL,
    TEAM,
    TRIPLES,
    alone,
    build_toy_model,
    greedy,
    judge_alone,
    judge_pair,
    judge_team,
    pair,
    team,
)
from toy_training import toy_run

from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.ppo_stage import ppo
from ragtrials.training.scalars import read_log
from ragtrials.training.settings import ALL_LINEAR, Lora

SETTINGS = Ppo(steps=40, questions=32, kl=FREE, update=FULL)


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


TEAM_SETTINGS = replace(
    SETTINGS,
    steps=30,
    questions=24,
    update=replace(FULL, learning_rate=5e-3, batch_size=72, micro_batch=72),
)


@pytest.mark.parametrize("seed", [0, 1])
def test_three_agents_reach_the_optimum_that_needs_all_three(tmp_path: Path, model: Path, seed: int) -> None:
    run = toy_run(tmp_path, model, TRIPLES, seed=seed)
    ppo(run, "ppo", {"shared": TEAM}, team, judge_team, TEAM_SETTINGS)
    assert sum(run.statistics["ppo"]["reward"][:2]) / 2 < 0.4
    assert greedy(run, team, judge_team) >= 0.95


OWN_SETTINGS = replace(
    TEAM_SETTINGS,
    update=replace(TEAM_SETTINGS.update, tuning="lora", lora=Lora(r=16, alpha=32, targets=ALL_LINEAR)),
)
OWN = {role: (role,) for role in TEAM}
"""Each agent has an adapter, which begins as nothing; evaluation puts each on the base model."""


def test_adapters_of_their_own_reach_it_too(tmp_path: Path, model: Path) -> None:
    run = toy_run(tmp_path, model, TRIPLES)
    ppo(run, "ppo", OWN, team, judge_team, OWN_SETTINGS)
    assert len(set(run.policies.values())) == 3
    assert greedy(run, team, judge_team) >= 0.95


def test_two_of_three_agents_do_not_reach_it(tmp_path: Path, model: Path) -> None:
    """The third one acts greedily and is not learnt from. The others do their part all the same."""
    run = toy_run(tmp_path, model, TRIPLES)
    ppo(run, "ppo", OWN, team, judge_team, OWN_SETTINGS, learners=TEAM[:2])
    assert greedy(run, team, judge_team) <= 0.8
    assert run.statistics["ppo"]["reward"][-1] >= 0.4
    log = read_log(tmp_path)
    assert "second/kl" in log["ppo", 30]
    assert "third/kl" not in log["ppo", 30]
    adapters = [load_file(run.policies[role] / "adapter_model.safetensors") for role in TEAM]
    moved = [max(float(w.abs().max()) for n, w in adapter.items() if "lora_B" in n) for adapter in adapters]
    assert moved[0] > 0
    assert moved[1] > 0
    assert moved[2] == 0


@pytest.mark.parametrize(("credit", "low", "high"), [("turn", 0.0, 0.7), ("episode", 0.95, 1.0)])
def test_an_early_turn_earns_what_comes_late_if_the_episode_is_one_trajectory(
    tmp_path: Path, model: Path, credit: Literal["turn", "episode"], low: float, high: float
) -> None:
    run = toy_run(tmp_path, model, TRIPLES)
    ppo(run, "ppo", {"shared": TEAM[:2]}, pair, judge_pair, replace(TEAM_SETTINGS, steps=25, credit=credit))
    assert low <= greedy(run, pair, judge_pair) <= high


# The same seed, the same course


def course_of(folder: Path, model: Path, seed: int) -> tuple[dict[tuple[str, int], dict[str, float]], bytes]:
    run = toy_run(folder, model, TRIPLES, seed=seed)
    ppo(run, "ppo", {"shared": TEAM}, team, judge_team, replace(TEAM_SETTINGS, steps=4))
    return read_log(folder), (run.policies["first"] / "model.safetensors").read_bytes()


def test_a_seed_decides_everything(tmp_path: Path, model: Path) -> None:
    log, weights = course_of(tmp_path / "one", model, 7)
    torch.manual_seed(99)  # whatever random numbers were drawn before
    again, same = course_of(tmp_path / "two", model, 7)
    assert again == log
    assert same == weights
    other, moved = course_of(tmp_path / "three", model, 8)
    assert other.keys() == log.keys()
    assert other != log
    assert moved != weights
