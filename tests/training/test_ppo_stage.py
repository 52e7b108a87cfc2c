"""The PPO stage: kills change nothing, a finished stage is not done again, and what cannot work is said."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy_agents import TEAM, TRIPLES, build_toy_model, judge_team, lora, team
from toy_training import toy_run

from ragtrials.data import Example
from ragtrials.errors import RunFailure, UserError
from ragtrials.program import Trace, user
from ragtrials.training import ppo_stage
from ragtrials.training.episodes import Judgement
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo_settings import Critic, Ppo
from ragtrials.training.ppo_stage import ppo
from ragtrials.training.rows import Demonstration
from ragtrials.training.run import TrainRun
from ragtrials.training.scalars import read_log
from ragtrials.training.settings import Lora
from ragtrials.training.stages import sft

LORA = Ppo(
    steps=5,
    questions=6,
    kl=KlControl(init=0.2, horizon=50),
    update=lora(
        lora=Lora(r=4, last_layers=1),
        schedule="linear",
        warmup=0.4,
        epochs=2,
        batch_size=8,
        micro_batch=4,
        save_steps=2,
    ),
)
"""Whatever has a state of its own is on: warm-up, schedule, the KL controller."""
VARIANTS = {
    "lora": LORA,
    "full": replace(LORA, update=replace(LORA.update, tuning="full")),
    "critic": replace(LORA, credit="episode", critic=Critic("adapter", "central")),
    "model": replace(LORA, critic=Critic("model")),
}
SHARED = {"shared": TEAM}
ROWS = [Demonstration((user(x),), y) for x, y in zip("ghiklmpqr", "abbbaabab", strict=True)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toy_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are then made in one order, and a forked process needs no threads that were not forked."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def new_run(folder: Path, model: Path) -> TrainRun:
    return toy_run(folder, model, TRIPLES)


def train(run: TrainRun, settings: Ppo) -> None:
    ppo(run, "ppo", SHARED, team, judge_team, settings)


def bytes_of(run: TrainRun) -> list[tuple[str, bytes]]:
    files = sorted(run.folder.glob("stages/*/weights/**/*.safetensors"))
    return [(str(file.relative_to(run.folder)), file.read_bytes()) for file in files]


def counts_of(run: TrainRun) -> Any:
    """The stage's report, but for how long things took."""
    (report,) = run.report().stages
    return replace(report, seconds=0.0, rollouts=replace(report.rollouts, seconds=0.0))


# Kills


def dying(run: TrainRun, step: int, die: Callable[[], None]) -> TrainRun:
    """The training, which dies when that step is logged: just before it is saved."""
    log_step = run.log_step

    def log_or_die(stage: str, scalars: Mapping[str, float], at: int) -> None:
        log_step(stage, scalars, at)
        if at == step:
            die()

    run.log_step = log_or_die  # type: ignore[method-assign]
    return run


def kill_at(folder: Path, model: Path, settings: Ppo, step: int) -> None:
    """Train in a process of its own that SIGKILL ends in the middle."""
    child = os.fork()
    if child == 0:
        try:
            train(dying(new_run(folder, model), step, lambda: os.kill(os.getpid(), signal.SIGKILL)), settings)
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Callable[[str], TrainRun]:
    """An undisturbed training, made once."""
    known: dict[str, TrainRun] = {}

    def trained(name: str) -> TrainRun:
        if name not in known:
            known[name] = new_run(tmp_path_factory.mktemp("whole"), model)
            train(known[name], VARIANTS[name])
        return known[name]

    return trained


@pytest.mark.parametrize("name", VARIANTS)
def test_a_killed_training_ends_as_an_undisturbed_one(
    tmp_path: Path, model: Path, undisturbed: Callable[[str], TrainRun], name: str
) -> None:
    whole = undisturbed(name)
    kill_at(tmp_path, model, VARIANTS[name], step=4)
    saved = tmp_path / "stages" / "ppo" / "steps"
    assert (saved / "last.pt").is_file()
    (saved / "unfinished.pt").write_bytes(b"torn")
    run = new_run(tmp_path, model)
    train(run, VARIANTS[name])
    assert bytes_of(run) == bytes_of(whole)
    log = read_log(tmp_path)
    assert log == read_log(whole.folder)
    assert log["ppo", 1]["beta"] != log["ppo", 5]["beta"]
    assert log["ppo", 1]["learning_rate"] != log["ppo", 2]["learning_rate"]
    assert counts_of(run) == counts_of(whole)
    assert run.statistics == whole.statistics
    assert not saved.exists()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert len(lines) == 4 + 3  # steps 3 and 4 were done twice


def test_the_report_counts_what_was_done(undisturbed: Callable[[str], TrainRun]) -> None:
    run = undisturbed("lora")
    (report,) = run.report().stages
    assert (report.stage, report.role, report.kind) == ("ppo", "first+second+third", "ppo")
    assert report.rows == 5 * 6 * 3
    assert report.steps == 5 * 2 * 3  # 18 turns in minibatches of 8
    assert report.tokens == 2 * (report.rollouts.prompt_tokens + report.rollouts.completion_tokens)
    assert report.rollouts.llm_calls == report.rows
    weights = load_file(run.policies["first"] / "adapter_model.safetensors")
    assert report.parameters == sum(w.numel() for w in weights.values()) + 32 + 1  # and the value head
    assert report.loss == pytest.approx(
        sum(
            entry["policy_loss"] + LORA.value_weight * entry["value_loss"]
            for entry in read_log(run.folder).values()
        )
        / 5
    )
    assert report.last["reward"] == pytest.approx(run.statistics["ppo"]["reward"][-1], abs=1e-4)


def test_a_kill_after_the_last_step_costs_nothing(
    tmp_path: Path, model: Path, undisturbed: Callable[[str], TrainRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(LORA, update=replace(LORA.update, save_steps=1))

    class PowerCut(BaseException):
        pass

    def cut_power(*_: Any) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr("ragtrials.training.weights.save_adapter", cut_power)
        with pytest.raises(PowerCut):
            train(new_run(tmp_path, model), settings)
    run = new_run(tmp_path, model)
    train(run, settings)
    assert bytes_of(run) == bytes_of(undisturbed("lora"))
    assert counts_of(run) == counts_of(undisturbed("lora"))
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 5


def test_a_damaged_step_is_named(tmp_path: Path, model: Path, undisturbed: Callable[[str], TrainRun]) -> None:
    kill_at(tmp_path, model, LORA, step=3)
    saved = tmp_path / "stages" / "ppo" / "steps" / "last.pt"
    whole = saved.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"no such thing"):
        saved.write_bytes(damaged)
        with pytest.raises(UserError) as caught:
            train(new_run(tmp_path, model), LORA)
        assert str(caught.value) == f"{saved} is damaged: delete it, and the stage starts anew"
    saved.unlink()
    run = new_run(tmp_path, model)
    train(run, LORA)
    assert bytes_of(run) == bytes_of(undisturbed("lora"))


def test_a_step_of_other_weights_is_refused(tmp_path: Path, model: Path) -> None:
    kill_at(tmp_path, model, LORA, step=3)
    with pytest.raises(RunFailure, match="the saved PPO step is of other weights: train with --overwrite"):
        train(new_run(tmp_path, model), VARIANTS["full"])


def test_a_finished_stage_is_not_done_again(
    model: Path, undisturbed: Callable[[str], TrainRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = undisturbed("lora")
    monkeypatch.setattr(ppo_stage, "_train", lambda *_: pytest.fail("trained again"))
    run = new_run(first.folder, model)
    train(run, LORA)
    assert run.policies == first.policies
    assert run.report().stages == first.report().stages
    assert run.statistics == first.statistics


# The start


@pytest.mark.parametrize("name", ["lora", "full"])
def test_a_warm_start_is_start_and_reference(tmp_path: Path, model: Path, name: str) -> None:
    settings = replace(VARIANTS[name], update=replace(VARIANTS[name].update, warmup=0.0))
    run = new_run(tmp_path, model)
    sft(run, "sft", TEAM, ROWS, replace(settings.update, learning_rate=1e-2, epochs=12))
    start = dict(run.policies)
    train(run, replace(settings, steps=0))
    assert run.policies == start  # no steps: the start is evaluated
    train(run, replace(settings, steps=2))
    log = read_log(tmp_path)
    assert log["ppo", 1]["kl"] == 0
    assert log["ppo", 1]["entropy"] < 1.0  # three choices: 1.1 is as good as none learnt
    assert log["ppo", 2]["kl"] != 0
    assert run.policies["first"] != start["first"]


def test_roles_that_were_trained_before_act_with_their_weights(tmp_path: Path, model: Path) -> None:
    """They are greedy, and stay as they are."""
    run = new_run(tmp_path, model)
    before = [trace.answer[2] for trace in run.rollout("base", team, run.examples)]
    sft(run, "sft", "third", ROWS, replace(LORA.update, learning_rate=3e-2, epochs=20, warmup=0.0))
    third = run.policies["third"]
    heard: dict[str, str] = {}

    def judge(trace: Trace, example: Example) -> Judgement:
        heard[example.id] = trace.answer[2]
        return judge_team(trace, example)

    ppo(run, "ppo", {"a": ("first",), "b": ("second",)}, team, judge, replace(LORA, steps=1, questions=24))
    assert run.policies == {
        "first": tmp_path / "stages/ppo/weights/a",
        "second": tmp_path / "stages/ppo/weights/b",
        "third": third,
    }
    greedy = [trace.answer[2] for trace in run.rollout("learnt", team, run.examples)]
    assert [heard[example.id] for example in run.examples] == greedy != before


# What cannot work


def refused(run: TrainRun, policies: Mapping[str, tuple[str, ...]], settings: Ppo) -> str:
    with pytest.raises((UserError, RunFailure)) as caught:
        ppo(run, "other", policies, team, judge_team, settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_trained_is_refused_in_one_line(tmp_path: Path, model: Path) -> None:
    run = new_run(tmp_path, model)
    full = VARIANTS["full"]
    assert "full tuning trains one policy" in refused(run, {"a": ("first",), "b": TEAM[1:]}, full)
    assert "second acts without being trained, but full tuning changes the one model" in refused(
        run, {"a": ("first",)}, full
    )
    assert "none of nobody was asked anything" in refused(run, {"a": ("nobody",)}, LORA)
    sft(run, "sft", "third", ROWS[:2], full.update)
    assert "third acts with a whole model of its own" in refused(run, {"a": TEAM[:2]}, LORA)
    assert "the roles first, second, third are to share weights, but have different ones" in refused(
        run, SHARED, LORA
    )
    with pytest.raises(UserError, match="stage ppo has no examples to train on"):
        train(toy_run(tmp_path / "empty", model, []), LORA)
