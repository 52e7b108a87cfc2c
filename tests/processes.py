"""The command line in processes of its own, which can be killed.

They are forked from one that has done nothing but import what takes longest: each test would otherwise wait
for it several times.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ragtrials.cli.main", "ragtrials.llm.hf", "ragtrials.training._trl"])


class Command:
    """`ragtrials` with arguments, running in a folder.

    Args:
        words: The arguments.
        folder: Where it runs.
        variables: Environment variables beside those of the test.
    """

    def __init__(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> None:
        self._said = [
            folder.parent / f"{folder.name}-{time.monotonic_ns()}.{name}" for name in ("out", "err")
        ]
        self._process = CONTEXT.Process(target=_run, args=(list(words), folder, dict(variables), self._said))
        self._process.start()

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.join()

    def kill_when(self, reached: Callable[[], bool], seconds: float = 200) -> None:
        """Kill it as soon as something is so; fails if it ends before."""
        deadline = time.monotonic() + seconds
        while not reached() and self.running and time.monotonic() < deadline:
            time.sleep(0.002)
        assert self.running, self._texts()
        assert reached(), f"not within {seconds} seconds"
        self.kill()

    def end(self, seconds: float = 200) -> tuple[int | None, str]:
        """Its exit code and what it wrote to stderr."""
        self._process.join(seconds)
        assert not self.running, f"not within {seconds} seconds: {self._texts()}"
        return self._process.exitcode, self._texts()[1]

    def _texts(self) -> list[str]:
        return [path.read_text() if path.exists() else "" for path in self._said]


def _run(words: list[str], folder: Path, variables: dict[str, str], said: list[Path]) -> None:
    for descriptor, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
    os.chdir(folder)
    os.environ.update(variables)
    from ragtrials.cli import main

    main(words)
