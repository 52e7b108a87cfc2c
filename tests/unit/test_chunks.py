from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path

import pytest

from ragtrials.chunks import chunk_path, read_chunk, write_atomically, write_chunk
from ragtrials.driver import Timing
from ragtrials.errors import UserError
from ragtrials.locking import exclusive
from ragtrials.program import Completion, Generate, Step, Trace, user

TRACES = [
    Trace("a", "caf\u00e9 \ud83d", (Step(0, Generate((user("q"),)), Completion("x", (1,), (2, 3)), 0.5),)),
    Trace("b", "", ()),
]


def test_a_chunk_comes_back_as_it_was(tmp_path: Path) -> None:
    written = write_chunk(tmp_path, "run", 3, TRACES, 1.5, Timing(0.25, 1.0))
    assert read_chunk(tmp_path, "run", 3, ["a", "b"]) == written
    assert written.traces == tuple(TRACES)
    assert (written.header.seconds, written.header.retriever_seconds) == (1.5, 0.25)


def test_a_missing_chunk_is_none(tmp_path: Path) -> None:
    assert read_chunk(tmp_path, "run", 0, ["a"]) is None


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: b"", "empty"),
        (lambda data: b"\xff" + data, "damaged"),
        (lambda data: data.replace(b'"run": "run"', b'"run": "other"'), "belongs to another run"),
        (lambda data: data.replace(b'"example_id": "b"', b'"example_id": "c"'), "other questions"),
        (lambda data: data.replace(b'"answer"', b'"answr"'), "unknown key 'answr'"),
    ],
)
def test_a_damaged_chunk_is_named(tmp_path: Path, spoil: object, message: str) -> None:
    write_chunk(tmp_path, "run", 0, TRACES, 1.0, Timing())
    path = chunk_path(tmp_path, 0)
    path.write_bytes(spoil(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(UserError, match=message) as error:
        read_chunk(tmp_path, "run", 0, ["a", "b"])
    assert str(path) in str(error.value)


def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*file: No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def hold(folder: str, ready: object, release: object) -> None:
    with exclusive(Path(folder), "the run"):
        ready.set()  # type: ignore[attr-defined]
        release.wait(30)  # type: ignore[attr-defined]


def test_a_second_process_gets_a_clear_message_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    process = context.Process(target=hold, args=(str(tmp_path), ready, release))
    process.start()
    assert ready.wait(30)
    with (
        pytest.raises(UserError, match=f"the run is being worked on by process {process.pid}"),
        exclusive(tmp_path, "the run"),
    ):
        pass
    process.kill()  # SIGKILL: nothing is cleaned up
    process.join()
    with exclusive(tmp_path, "the run"):
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"), exclusive(tmp_path / "file" / "sub", "the run"):
        pass
