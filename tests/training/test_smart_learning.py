"""SmartRAG learns when to search: its own prompts, warm-up and PPO in a toy world with known optima."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_smart import (
    BEHIND,
    CONFIG,
    IN_SIGHT,
    WORLD,
    Library,
    Nothing,
    build_smart_model,
    earned,
    played,
    probabilities,
    right_decisions,
    searched,
)
from toy_training import toy_run

from ragtrials.data import Example
from ragtrials.methods._smart_actions import ANSWER
from ragtrials.methods._smart_config import SmartConfig
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Program, Retriever, Score
from ragtrials.training.run import TrainRun
from ragtrials.training.scalars import read_log


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_smart_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory, model: Path) -> TrainRun:
    """A training whose PPO has no steps."""
    run = toy_run(tmp_path_factory.mktemp("warm"), model, WORLD, retriever=Library())
    SmartRAG(with_steps(CONFIG, 0)).train(run)
    return run


def with_steps(config: SmartConfig, steps: int) -> SmartConfig:
    """Fewer PPO steps of half as many questions."""
    return replace(config, ppo=replace(config.ppo, steps=steps, questions=32))


def trained(
    folder: Path,
    model: Path,
    warm: TrainRun,
    config: SmartConfig,
    examples: Sequence[Example] = WORLD,
    retriever: Retriever | None = None,
) -> TrainRun:
    """A training that finds its warm-up done, as it does after a kill."""
    shutil.copytree(warm.folder / "stages", folder / "stages")
    run = toy_run(folder, model, examples, retriever=retriever or Library())
    SmartRAG(config).train(run)
    return run


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory, model: Path, warm: TrainRun) -> TrainRun:
    return trained(tmp_path_factory.mktemp("learnt"), model, warm, CONFIG)


# Before PPO ---------------------------------------------------------------------------------------------


def test_the_warm_up_teaches_all_actions_but_not_which_to_take(warm: TrainRun) -> None:
    assert warm.statistics["warm_up"] == {
        "examples": 32,
        "answers": 32,
        "searches": 32,
        "answers_from_observations": 32,
    }
    chances = probabilities(played(warm, "chances", replace(CONFIG, threshold=0.5)))
    for kind in ("sight", "behind"):
        own = [p for p, e in zip(chances, WORLD, strict=True) if e.id.startswith(kind)]
        assert 0.3 < sum(own) / len(own) < 0.7
    always, never = (played(warm, gate, replace(CONFIG, gate=gate)) for gate in ("always", "never"))
    assert earned(warm, always, CONFIG) >= 1.4  # 1.5 is the most
    assert earned(warm, never, CONFIG) == pytest.approx((2.0 + 0.5) / 2, abs=0.1)


def test_before_ppo_decisions_are_no_better_than_chance(warm: TrainRun) -> None:
    assert 0.3 <= right_decisions(played(warm, "before", CONFIG)) <= 0.7


# What PPO makes of it -----------------------------------------------------------------------------------


def test_searches_where_it_has_to_and_nowhere_else(learnt: TrainRun) -> None:
    traces = played(learnt, "after", CONFIG)
    assert right_decisions(traces) >= 0.9
    assert earned(learnt, traces, CONFIG) >= 1.65  # 1.75 is the most
    curve = learnt.statistics["ppo"]["reward"]
    assert sum(curve[-4:]) / 4 > sum(curve[:4]) / 4 + 0.15


@pytest.mark.parametrize(
    ("examples", "alpha", "rate", "reward"),
    [
        pytest.param(WORLD, 2.5, 0.0, 1.25, id="the world, too dear"),
        pytest.param(BEHIND, 2.5, 0.0, 0.5, id="all behind doors, too dear"),
        pytest.param(BEHIND, 0.2, 1.0, 1.8, id="all behind doors"),
    ],
)
def test_one_action_for_all_where_that_is_best(
    tmp_path: Path,
    model: Path,
    warm: TrainRun,
    examples: list[Example],
    alpha: float,
    rate: float,
    reward: float,
) -> None:
    config = with_steps(replace(CONFIG, alpha=alpha), 12)
    run = trained(tmp_path, model, warm, config, examples)
    traces = played(run, "after", config)
    assert searched(traces) == rate
    assert earned(run, traces, config) == pytest.approx(reward, abs=0.15)
    log = read_log(tmp_path)
    assert abs(log["ppo", 1]["searched"] - rate) > 0.3
    assert abs(log["ppo", 12]["searched"] - rate) <= 0.1


def test_a_search_that_costs_nothing_is_made_where_it_helps(
    tmp_path: Path, model: Path, warm: TrainRun
) -> None:
    config = with_steps(replace(CONFIG, alpha=0.0), 12)
    run = trained(tmp_path, model, warm, config)
    assert searched(played(run, "after", config), "behind") >= 0.9


def test_a_retriever_that_finds_nothing_is_not_asked(tmp_path: Path, model: Path, warm: TrainRun) -> None:
    config = with_steps(replace(CONFIG, alpha=0.2), 12)
    run = trained(tmp_path, model, warm, config, IN_SIGHT, Nothing())
    traces = played(run, "after", config)
    assert searched(traces) == 0.0
    assert earned(run, traces, config) >= 1.95
    assert read_log(tmp_path)["ppo", 1]["searched"] > 0.3


# The trained policy under other gates -------------------------------------------------------------------

THRESHOLDS = (-1.0, 0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)


def test_a_higher_threshold_searches_less(learnt: TrainRun) -> None:
    sweep = [played(learnt, f"threshold {t}", replace(CONFIG, threshold=t)) for t in THRESHOLDS]
    rates = [searched(traces) for traces in sweep]
    assert rates[0] == 1.0
    assert rates[-1] == 0.0
    assert all(more >= less for more, less in pairwise(rates))
    # What is searched first, as the threshold falls, is what has to be.
    assert right_decisions(sweep[THRESHOLDS.index(0.5)]) >= 0.9
    chances = dict(zip([e.id for e in WORLD], probabilities(sweep[0]), strict=True))
    assert min(chances[e.id] for e in BEHIND) > max(chances[e.id] for e in IN_SIGHT)


def test_the_sweep_would_notice_if_the_tags_were_mixed_up(learnt: TrainRun) -> None:
    method = SmartRAG(replace(CONFIG, threshold=0.5))

    def mixed_up(question: str) -> Program:
        program, value = method.answer(question), None
        while True:
            try:
                request: Any = program.send(value)
            except StopIteration as end:
                return str(end.value)
            if isinstance(request, Score):
                request = replace(request, continuation=ANSWER)
            value = yield request

    assert right_decisions(learnt.rollout("mixed up", mixed_up, WORLD)) <= 0.1


def test_controls_use_the_same_policy_without_its_decision(learnt: TrainRun) -> None:
    always, never = (played(learnt, gate, replace(CONFIG, gate=gate)) for gate in ("always", "never"))
    assert (searched(always), searched(never)) == (1.0, 0.0)
    assert sum(t.answer == e.target for t, e in zip(always, WORLD, strict=True)) >= 30
    assert {t.cost.llm_calls for t in always} == {2}
    assert {t.cost.llm_calls for t in never} == {1}
    own = earned(learnt, played(learnt, "after", CONFIG), CONFIG)
    assert own > earned(learnt, always, CONFIG) + 0.15
    assert own > earned(learnt, never, CONFIG) + 0.2


def test_chance_at_the_same_rate_earns_less(learnt: TrainRun) -> None:
    draws = [
        played(learnt, f"random {rate}", replace(CONFIG, gate="random", rate=rate))
        for rate in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    asked = [{t.example_id for t in traces if t.cost.retrieval_calls} for traces in draws]
    assert (len(asked[0]), len(asked[-1])) == (0, len(WORLD))
    assert all(fewer <= more for fewer, more in pairwise(asked))
    own = played(learnt, "after", CONFIG)
    nearest = min(draws, key=lambda traces: abs(searched(traces) - searched(own)))
    assert abs(searched(nearest) - searched(own)) <= 0.2
    assert earned(learnt, own, CONFIG) > earned(learnt, nearest, CONFIG) + 0.2


# The same seed, the same course -------------------------------------------------------------------------


def course_of(folder: Path, model: Path, seed: int) -> tuple[dict[tuple[str, int], dict[str, float]], bytes]:
    """A short training, warm-up and all."""
    run = toy_run(folder, model, WORLD, retriever=Library(), seed=seed)
    config = with_steps(replace(CONFIG, sft=replace(CONFIG.sft, epochs=1)), 2)
    SmartRAG(config).train(run)
    return read_log(folder), (run.policies["policy"] / "model.safetensors").read_bytes()


def test_a_seed_decides_everything(tmp_path: Path, model: Path) -> None:
    log, weights = course_of(tmp_path / "one", model, 7)
    assert {stage for stage, _ in log} == {"sft", "ppo"}
    torch.manual_seed(99)  # whatever random numbers were drawn before
    again, same = course_of(tmp_path / "two", model, 7)
    assert again == log
    assert same == weights
    other, moved = course_of(tmp_path / "three", model, 8)
    assert other != log
    assert moved != weights
