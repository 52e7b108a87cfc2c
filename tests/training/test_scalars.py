"""The log of a training: lines for people and programs, event files for TensorBoard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragtrials.errors import UserError
from ragtrials.training.report import RolloutReport, last_scalars, peak_memory_mb
from ragtrials.training.scalars import LOG_FILE, ScalarLog, read_log


def test_lines_and_event_files(tmp_path: Path) -> None:
    with ScalarLog(tmp_path / "run") as log:
        log.write("sft", {"loss": 2.0, "learning_rate": 0.1}, 1)
        lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()  # there at once
        assert [json.loads(line) for line in lines] == [
            {"stage": "sft", "step": 1, "loss": 2.0, "learning_rate": 0.1}
        ]
    events = list((tmp_path / "run" / "events").iterdir())
    assert len(events) == 1
    assert b"sft/loss" in events[0].read_bytes()


def test_a_step_that_was_done_twice_counts_once(tmp_path: Path) -> None:
    with ScalarLog(tmp_path) as log:
        log.write("sft", {"loss": 2.0}, 1)
        log.write("sft", {"loss": 1.5}, 2)
    with ScalarLog(tmp_path) as log:  # after a kill
        log.write("sft", {"loss": 1.25}, 2)
        log.write("dpo", {"loss": 0.7}, 1)
        log.write("dpo", {"eval_loss": 0.6}, 1)
    assert read_log(tmp_path) == {
        ("sft", 1): {"loss": 2.0},
        ("sft", 2): {"loss": 1.25},
        ("dpo", 1): {"loss": 0.7, "eval_loss": 0.6},
    }


def test_a_line_that_a_kill_cut_short_is_no_part_of_the_log(tmp_path: Path) -> None:
    with ScalarLog(tmp_path) as log:
        log.write("sft", {"loss": 2.0}, 1)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"stage": "sft", "st')
    with ScalarLog(tmp_path) as log:
        log.write("sft", {"loss": 1.0}, 2)
    assert read_log(tmp_path) == {("sft", 1): {"loss": 2.0}, ("sft", 2): {"loss": 1.0}}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        ScalarLog(tmp_path / "file" / "run")


def test_the_last_value_of_each_scalar_counts() -> None:
    history = [
        {"loss": 2.0, "epoch": 0.5, "step": 1},
        {"eval_loss": 1.0, "eval_runtime": 3.0, "eval_samples_per_second": 9.0, "step": 1},
        {"loss": 1.23456789, "epoch": 1.0, "step": 2},
        {"train_runtime": 12.0, "train_loss": 1.6, "total_flos": 5.0, "step": 2},
    ]
    assert last_scalars(history) == {"loss": 1.234568, "eval_loss": 1.0}


def test_costs_add_up() -> None:
    once = RolloutReport.of(1.5, {"llm_calls": 2, "prompt_tokens": 30, "completion_tokens": 4})
    again = RolloutReport.of(0.5, {"retrieval_calls": 1, "llm_calls": 1})
    assert once + again == RolloutReport(2.0, 1, 3, 30, 4)


def test_memory_is_counted_in_megabytes() -> None:
    assert 20 < peak_memory_mb("cpu") < 200_000


def test_a_torn_last_line_does_not_count(tmp_path: Path) -> None:
    with ScalarLog(tmp_path) as log:
        log.write("sft", {"loss": 2.0}, 1)
    with (tmp_path / LOG_FILE).open("a") as file:
        file.write('{"stage": "sft", "step": 2, "lo')
    assert read_log(tmp_path) == {("sft", 1): {"loss": 2.0}}
