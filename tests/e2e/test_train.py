"""A training that is killed at any moment ends with the weights, and the run with the answers, of an undisturbed one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import hotpot_record
from processes import Command
from tiny import TEXT, build_tiny_model

WORDS = " ".join(dict.fromkeys(TEXT.split())) + " " + " ".join("abcdefghijklmnopqrstuvwxyz")
"""An answer of which a random text says a word now and then, so that rewards differ."""


def start(folder: Path) -> Command:
    words = ["run", "-m", "rag_ddr", "-t", "hotpotqa", "--profile", "smoke", "--data-dir", "../data"]
    words += ["--model", "../tiny", "--chunk", "4", "-o", "examples=16", "-o", "rollout.draws=3"]
    words += ["-o", "rollout.refiner_temperature=1.0"]
    return Command(words, folder, {"RAGTRIALS_CACHE": str(folder.parent / "cache")})


def finish(folder: Path) -> None:
    code, err = start(folder).end()
    assert code == 0, err


def kill_when(folder: Path, reached: Callable[[], bool]) -> None:
    """Start the run, and kill it with SIGKILL once a file says that it has come so far."""
    start(folder).kill_when(reached)


def steps(folder: Path) -> list[tuple[str, int]]:
    """The stages and steps in the log, in its order; a line that is being written does not count."""
    lines = [
        line
        for file in folder.glob("runs/train/*/*/log.jsonl")  # no **: folders beside it come and go
        for line in file.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    ]
    return [(entry["stage"], entry["step"]) for entry in map(json.loads, lines)]


def ended(folder: Path) -> dict[str, Any]:
    """Everything about a finished run that must not depend on its kills."""
    path = next(folder.glob("results/**/run.json"))
    record = json.loads(path.read_text())
    training = record["training"]
    weights = folder.glob("runs/train/*/*/stages/*/weights/*.safetensors")
    return {
        "id": record["id"],
        "train_id": training["train_id"],
        "statistics": training["statistics"],
        "digests": training["weights"],
        "stages": [{**stage, "seconds": 0} for stage in training["stages"]],
        "served": {**training["rollouts"], "seconds": 0},
        "predictions": (path.parent / "predictions.parquet").read_bytes(),
        "weights": {str(file.relative_to(folder)): file.read_bytes() for file in weights},
    }


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "data" / "hotpotqa").mkdir(parents=True)
    for name, numbers in (("dev", range(6)), ("train", range(100, 120))):
        records = [hotpot_record(number, answer=WORDS) for number in numbers]
        (folder / "data" / "hotpotqa" / f"{name}.json").write_text(json.dumps(records))
    build_tiny_model(folder / "tiny", vocab=600, hidden=32)
    for name in ("whole", "killed"):
        (folder / name).mkdir()
    return folder


def test_a_killed_training_ends_as_an_undisturbed_one(workshop: Path) -> None:
    finish(workshop / "whole")
    whole, killed = ended(workshop / "whole"), workshop / "killed"
    assert [stage["role"] for stage in whole["stages"]] == ["generator", "refiner"]
    assert all(stage["steps"] >= 3 for stage in whole["stages"])  # else no kill would be in the middle of one

    def rolled_out() -> bool:
        return len(list(killed.glob("runs/train/*/*/rollouts/*draws/chunk-*.jsonl"))) >= 2

    kill_when(killed, rolled_out)
    assert not steps(killed)
    first = {path: path.stat().st_mtime_ns for path in killed.glob("runs/train/**/chunk-*.jsonl")}
    kill_when(killed, lambda: ("round1-generator", 2) in steps(killed))
    assert not list(killed.glob("runs/train/**/stage.json"))
    kill_when(killed, lambda: ("round1-refiner", 2) in steps(killed))
    assert not list(killed.glob("runs/train/**/checkpoint.json"))
    finish(killed)
    assert {path: path.stat().st_mtime_ns for path in first} == first  # what was finished was not done again
    assert ended(killed) == whole
    assert len(whole["weights"]) == 2
