"""Digests of big files, noted in the cache so that a file is read once and not at every run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ragtrials.cache import cache_dir, cache_error


def noted_digest(subject: Path, files: Sequence[Path], compute: Callable[[], str], kind: str = "") -> str:
    """What `compute` says of files, taken from a note as long as no file's size or times change.

    Args:
        subject: What the note is about, a file or a folder; its resolved path finds the note.
        files: The files that `compute` reads.
        compute: Gives the digest.
        kind: Tells notes of one path apart that are computed in different ways.

    Raises:
        UserError: The cache cannot be written.
        OSError: One of the files cannot be read.
    """
    note = _place(subject, kind)
    stamp = [_stamp(file) for file in files]
    if (known := _read(note, stamp)) is not None:
        return known
    digest = compute()
    _write(note, {"files": stamp, "digest": digest})
    return digest


def _place(subject: Path, kind: str) -> Path:
    name = os.fsencode(subject.resolve()) + (b"\0" + kind.encode() if kind else b"")
    return cache_dir() / "digests" / f"{hashlib.sha256(name).hexdigest()[:32]}.json"


def _stamp(file: Path) -> list[str | int]:
    """The change time is there because a tool that keeps modification times cannot keep it as well."""
    stat = file.stat()
    return [file.name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _read(note: Path, stamp: list[list[str | int]]) -> str | None:
    try:
        content = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a cache that cannot be used is told when writing to it
        return None
    if isinstance(content, dict) and content.get("files") == stamp:
        digest = content.get("digest")
        return digest if isinstance(digest, str) else None
    return None


def _write(note: Path, content: dict[str, object]) -> None:
    """Whole or not at all, so that a reader beside us never sees half a note."""
    work = note.with_suffix(f".{os.getpid()}")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        try:
            work.write_text(json.dumps(content), encoding="utf-8")
            work.replace(note)
        finally:
            work.unlink(missing_ok=True)
    except OSError as error:
        raise cache_error(error) from error
