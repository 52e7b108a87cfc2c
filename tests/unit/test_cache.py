from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from ragtrials.cache import ABANDONED_SECONDS, build_once, cache_dir
from ragtrials.errors import UserError


def fill(folder: Path) -> None:
    (folder / "file").write_text("made")


def test_it_is_built_once(tmp_path: Path) -> None:
    calls = []
    for _ in range(2):
        folder = build_once(tmp_path / "a" / "thing", lambda work: (calls.append(work), fill(work))[1])
    assert (folder / "file").read_text() == "made"
    assert len(calls) == 1


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    def fails(work: Path) -> None:
        fill(work)
        raise ValueError("oops")

    with pytest.raises(ValueError, match="oops"):
        build_once(tmp_path / "thing", fails)
    assert list(tmp_path.iterdir()) == []


def test_of_two_builders_one_wins(tmp_path: Path) -> None:
    def beaten(work: Path) -> None:
        fill(work)
        (tmp_path / "thing").mkdir()
        (tmp_path / "thing" / "file").write_text("the other's")

    assert (build_once(tmp_path / "thing", beaten) / "file").read_text() == "the other's"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_no_space_is_one_line(tmp_path: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(
        UserError, match=r"cannot write the cache .*: No space left on device; .*RAGTRIALS_CACHE"
    ):
        build_once(tmp_path / "thing", full)


def test_what_a_killed_build_left_is_swept_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".thing-old", tmp_path / ".thing-new"
    for folder in (old, new):
        folder.mkdir()
    past = time.time() - ABANDONED_SECONDS - 1
    os.utime(old, (past, past))
    build_once(tmp_path / "thing", fill)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".thing-new", "thing"]


def test_a_shared_cache_stays_readable(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert build_once(tmp_path / "thing", fill).stat().st_mode & 0o777 == 0o755


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTRIALS_CACHE", "/x/y")
    assert cache_dir() == Path("/x/y")
    monkeypatch.delenv("RAGTRIALS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/z")
    assert cache_dir() == Path("/z/ragtrials")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "ragtrials"
