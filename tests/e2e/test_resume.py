"""A run that is killed at any moment and started again ends with the record of an undisturbed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes import hotpot_folder
from processes import Command
from tiny import build_tiny_model

QUESTIONS = 40  # enough chunks that a kill after the first ones comes before the end


def start(folder: Path) -> Command:
    words = ["run", "-m", "vanilla_rag", "-t", "hotpotqa", "--profile", "smoke", "--data-dir", "../data"]
    words += ["--model", "../tiny", "--chunk", "2"]
    return Command(words, folder, {"RAGTRIALS_CACHE": str(folder.parent / "cache")})


def finish(folder: Path) -> str:
    code, err = start(folder).end()
    assert code == 0, err
    return err


def chunks(folder: Path) -> list[Path]:
    return sorted(folder.glob("runs/**/chunk-*.jsonl"))


def kill_after(folder: Path, count: int) -> None:
    """Start a run and kill it with SIGKILL once `count` chunks are on disk."""
    start(folder).kill_when(lambda: len(chunks(folder)) >= count)


def record(folder: Path) -> tuple[dict[str, object], bytes]:
    """run.json without its times, and the bytes of the predictions."""
    path = next(folder.glob("results/**/run.json"))
    stored = json.loads(path.read_text())
    del stored["times"]
    return stored, (path.parent / "predictions.parquet").read_bytes()


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workshop")
    hotpot_folder(folder / "data", dev=QUESTIONS)
    build_tiny_model(folder / "tiny")
    for name in ("whole", "killed"):
        (folder / name).mkdir()
    return folder


def test_a_killed_run_resumes_to_the_same_bytes(workshop: Path) -> None:
    finish(workshop / "whole")
    killed = workshop / "killed"
    kill_after(killed, 1)
    assert not list(killed.glob("results/**/run.json"))
    first = {path.name: path.stat().st_mtime_ns for path in chunks(killed)}
    kill_after(killed, len(first) + 1)
    err = finish(killed)
    assert "questions were answered before" in err
    for name, written in first.items():  # what was finished was not done again
        assert next(killed.glob(f"runs/**/{name}")).stat().st_mtime_ns == written
    assert record(killed) == record(workshop / "whole")
    assert not [path for path in killed.rglob("*") if path.name.startswith(".chunk")]


def test_a_record_killed_before_it_was_complete_is_written_again(workshop: Path) -> None:
    """Predictions without run.json are what a kill between the two leaves."""
    whole = workshop / "whole"
    before = record(whole)
    next(whole.glob("results/**/run.json")).unlink()
    finish(whole)
    assert record(whole) == before


def test_two_processes_on_one_run(workshop: Path) -> None:
    folder = workshop / "both"
    folder.mkdir()
    pair = [start(folder), start(folder)]
    ended = [process.end() for process in pair]
    codes = sorted(code for code, _ in ended if code is not None)
    # Either they met (one is told so), or the second came when the first had finished.
    assert codes in ([0, 2], [0, 0]), ended
    if codes == [0, 2]:
        message = next(err for code, err in ended if code == 2)
        assert "is being worked on by process" in message
    assert record(folder) == record(workshop / "whole")
