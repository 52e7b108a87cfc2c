"""Learning curves out of a training's log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragtrials.curves import Curve, moving_average, read_curves, training_name, window_of
from ragtrials.errors import UserError
from ragtrials.stats import Trend, linear_trend
from ragtrials.training.scalars import ScalarLog


def write(folder: Path, *lines: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A warm start of three steps, then PPO of two; the third warm step was done again after a kill."""
    return write(
        tmp_path,
        {"stage": "warm", "step": 1, "loss": 3.0},
        {"stage": "warm", "step": 2, "loss": 2.0, "eval_loss": 9.0},
        {"stage": "warm", "step": 3, "loss": 7.0},
        {"stage": "warm", "step": 3, "loss": 1.0},
        {"stage": "ppo", "step": 2, "reward": 0.5, "loss": 0.1, "kl": 0.02},
        {"stage": "ppo", "step": 1, "reward": 0.25, "loss": 0.2, "kl": 0.0},
    )


def test_a_stage_shows_its_reward_and_one_without_its_loss(folder: Path) -> None:
    assert read_curves(folder) == [
        Curve("warm", "loss", (1, 2, 3), (3.0, 2.0, 1.0)),
        Curve("ppo", "reward", (1, 2), (0.25, 0.5)),
    ]


def test_stage_and_scalars_are_chosen_in_the_order_that_was_asked(folder: Path) -> None:
    found = read_curves(folder, "ppo", ("kl", "loss", "kl"))
    assert [(curve.stage, curve.scalar) for curve in found] == [("ppo", "kl"), ("ppo", "loss")]
    both = read_curves(folder, scalars=("kl", "loss"))
    assert [(curve.stage, curve.scalar) for curve in both] == [
        ("warm", "loss"),
        ("ppo", "kl"),
        ("ppo", "loss"),
    ]


def test_a_scalar_of_some_steps_stands_at_those(folder: Path) -> None:
    assert read_curves(folder, scalars=("eval_loss",)) == [Curve("warm", "eval_loss", (2,), (9.0,))]


def test_it_reads_what_a_training_writes(tmp_path: Path) -> None:
    with ScalarLog(tmp_path) as log:
        log.write("sft", {"loss": 2.0}, 1)
        log.write("sft", {"loss": 1.5}, 2)
        assert read_curves(tmp_path) == [Curve("sft", "loss", (1, 2), (2.0, 1.5))]  # while it goes on


def test_values_that_are_not_finite_are_counted_apart(tmp_path: Path) -> None:
    losses = [2.0, float("nan"), 1.0, float("inf")]
    write(tmp_path, *({"stage": "sft", "step": step, "loss": loss} for step, loss in enumerate(losses, 1)))
    assert read_curves(tmp_path) == [Curve("sft", "loss", (1, 3), (2.0, 1.0), (2, 4))]


@pytest.mark.parametrize(
    ("count", "first", "last"), [(1, 0.0, 0.0), (4, 0.0, 3.0), (9, 0.0, 8.0), (10, 0.5, 8.5), (14, 0.5, 12.5)]
)
def test_the_fifths_at_both_ends(count: int, first: float, last: float) -> None:
    curve = Curve("sft", "loss", tuple(range(count)), tuple(map(float, range(count))))
    assert (curve.first, curve.last) == (first, last)


def test_the_slope_is_per_step_of_the_training() -> None:
    values = (1.0, 3.0, 2.0, 4.0, 6.0, 5.0)
    curve = Curve("sft", "eval_loss", tuple(range(50, 350, 50)), values)
    by_value = linear_trend(values)
    assert curve.trend() == Trend(pytest.approx(by_value.slope / 50), by_value.p)


def test_a_moving_average_is_centred_and_stands_where_its_window_fits() -> None:
    assert moving_average([1.0, 2.0, 6.0, 1.0, 2.0], 3) == [3.0, 3.0, 3.0]
    assert moving_average([1.0, 2.0, 6.0], 3) == [3.0]
    assert moving_average([1.0, 2.0], 3) == []


def test_the_window_is_odd_and_about_a_tenth() -> None:
    assert [window_of(count) for count in (1, 50, 60, 100, 200, 310)] == [5, 5, 7, 11, 21, 31]


def test_a_training_is_named_by_its_manifest(tmp_path: Path) -> None:
    copied = tmp_path / "copies" / "sft-s0-0123456789"
    copied.mkdir(parents=True)
    (copied / "checkpoint.json").write_text(json.dumps({"method": "mmoa_rag", "task": "geo_hop", "seed": 3}))
    assert training_name(copied) == "mmoa_rag on geo_hop, seed 3"


def test_an_unfinished_training_is_named_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "geo_pop" / "plug-s-in-s-1-0123abcdef"
    folder.mkdir(parents=True)
    assert training_name(folder) == "plug-s-in on geo_pop, seed -1"
    monkeypatch.chdir(folder)
    assert training_name(Path()) == "plug-s-in on geo_pop, seed -1"
    assert training_name(tmp_path / "mine") == "mine"


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"method": "sft", "task": "nq"}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "checkpoint.json").write_text(text)
    with pytest.raises(UserError, match=r"checkpoint\.json: damaged manifest"):
        training_name(tmp_path)


@pytest.mark.parametrize(
    ("stage", "scalars", "told"),
    [
        ("pp", (), r"log\.jsonl: no stage 'pp'; did you mean 'ppo'\?"),
        ("zzz", (), r"no stage 'zzz'; known: ppo, warm"),
        (None, ("rewards",), r"log\.jsonl: no scalar 'rewards'; did you mean 'reward'\?"),
        ("warm", ("loss", "kl"), r"no scalar 'kl' in stage warm; known: eval_loss, loss"),
    ],
)
def test_what_is_not_there_is_told(
    folder: Path, stage: str | None, scalars: tuple[str, ...], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        read_curves(folder, stage, scalars)


def test_a_stage_with_neither_reward_nor_loss_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"stage": "own", "step": 1, "score": 1.0, "kl": 0.1})
    with pytest.raises(
        UserError, match="stage own has neither reward nor loss; choose with --scalar: kl, score"
    ):
        read_curves(tmp_path)
    assert read_curves(tmp_path, scalars=("score",)) == [Curve("own", "score", (1,), (1.0,))]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"log\.jsonl: no step has been logged"),
        ('{"stage": "sf', r"log\.jsonl: no step has been logged"),
        ('{"stage": "sf\n', r"log\.jsonl: a line is damaged .*--overwrite"),
        ('{"step": 1}\n', r"log\.jsonl: a line is damaged \('stage'\)"),
        ("[1]\n", r"log\.jsonl: a line is damaged"),
        ("1\n", r"log\.jsonl: a line is damaged"),
        ('{"stage": "sft", "step": 4, "loss": "low"}\n', "loss of stage sft, step 4, is no number: 'low'"),
        ('{"stage": "sft", "step": 4, "loss": NaN}\n', "loss of stage sft is never a finite number"),
    ],
)
def test_a_damaged_log_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "log.jsonl").write_text(text)
    with pytest.raises(UserError, match=told) as caught:
        read_curves(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_log_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone: no log\.jsonl here; .*list checkpoints"):
        read_curves(tmp_path / "gone")
