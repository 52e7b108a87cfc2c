"""Progress with the time left: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

SECONDS_BETWEEN_LINES = 20.0


class Progress(Protocol):
    """Counts finished units of one piece of work."""

    def advance(self, units: float) -> None:
        """`units` more are finished."""
        ...


class _Lines:
    """One line every `SECONDS_BETWEEN_LINES`, and one at the end."""

    def __init__(self, label: str, total: int, done: int) -> None:
        self.label, self.total = label, total
        self.done = float(done)
        self.first = float(done)
        self.started = self.last = time.monotonic()

    def advance(self, units: float) -> None:
        self.done += units
        now = time.monotonic()
        finished = self.done >= self.total - 1e-6
        if finished or now - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            rate = (self.done - self.first) / max(now - self.started, 1e-9)
            left = "" if finished or not rate else f", {clock((self.total - self.done) / rate)} left"
            spent = clock(now - self.started)
            print(f"{self.label}: {self.done:.0f}/{self.total} in {spent}{left}", file=sys.stderr, flush=True)


class _Bar:
    """A rich task."""

    def __init__(self, bar: object, task: object) -> None:
        self.bar, self.task = bar, task

    def advance(self, units: float) -> None:
        self.bar.advance(self.task, units)  # type: ignore[attr-defined]


@contextmanager
def progress(label: str, total: int, done: int = 0) -> Iterator[Progress]:
    """Show how far a piece of work is, on standard error.

    Args:
        label: What is done.
        total: Number of units.
        done: How many were finished before.
    """
    if not sys.stderr.isatty():
        yield _Lines(label, total, done)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as bar:
        yield _Bar(bar, bar.add_task(label, total=total, completed=done))


def clock(seconds: float) -> str:
    """Seconds as "42s", "3m05s" or "2h07m"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
