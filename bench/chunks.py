"""The finished chunks of a run on disk: what a killed run need not do again.

A chunk file is JSON lines: a header, then one trace a line. It appears under its name only when it is
complete (written beside, synced, renamed), so a reader never sees half a chunk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ragtrials.config import parse, plain
from ragtrials.driver import Timing
from ragtrials.errors import UserError
from ragtrials.program import Trace

FORMAT = 1
SERVED = ("retrieval_calls", "llm_calls", "prompt_tokens", "completion_tokens")
"""What `Timing` counts of requests that were really served."""


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """First line of a chunk file: whose it is, how long it took (seconds), and what it cost.

    `served` counts calls and tokens that were really served, by the names of `Cost`. Replayed and forced
    steps of branches stand in the traces but not there.
    """

    format: int
    run: str
    index: int
    examples: int
    seconds: float
    retriever_seconds: float
    engine_seconds: float
    served: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Traces that were driven together."""

    header: ChunkHeader
    traces: tuple[Trace, ...]


def chunk_path(folder: Path, index: int) -> Path:
    """Where chunk `index` of a run lies."""
    return folder / f"chunk-{index:05d}.jsonl"


def write_chunk(
    folder: Path, run: str, index: int, traces: Sequence[Trace], seconds: float, timing: Timing
) -> Chunk:
    """Save a finished chunk so that it survives a kill or a power cut right after."""
    header = ChunkHeader(
        FORMAT,
        run,
        index,
        len(traces),
        seconds,
        timing.retriever,
        timing.engine,
        {name: getattr(timing, name) for name in SERVED},
    )
    lines = [header, *traces]
    text = "".join(json.dumps(plain(line), ensure_ascii=True) + "\n" for line in lines)
    write_atomically(chunk_path(folder, index), text.encode("ascii"))
    return Chunk(header, tuple(traces))


def read_chunk(folder: Path, run: str, index: int, example_ids: Sequence[str]) -> Chunk | None:
    """A finished chunk, or None if it is not there yet.

    Raises:
        UserError: The file is damaged or belongs to another run or other examples.
    """
    path = chunk_path(folder, index)
    if not path.exists():
        return None
    remedy = "delete it to have these questions answered again"
    try:
        lines = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({error}); {remedy}") from error
    if not lines:
        raise UserError(f"{path}: empty; {remedy}")
    header = parse(ChunkHeader, lines[0], f"{path}:1")
    traces = tuple(parse(Trace, line, f"{path}:{n}") for n, line in enumerate(lines[1:], 2))
    if (header.format, header.run, header.index) != (FORMAT, run, index):
        raise UserError(f"{path}: belongs to another run or format; {remedy}")
    if [trace.example_id for trace in traces] != list(example_ids):
        raise UserError(f"{path}: holds other questions than this run's; {remedy}")
    return Chunk(header, traces)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is either the old or the new one, never a part, even after a power cut.

    Raises:
        UserError: The folder cannot be written or the disk is full; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with suppress(OSError):  # where its folder cannot even be looked into
            temporary.unlink()
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
