"""The course of a training as scalars: `log.jsonl` for people and programs, event files for TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from ragtrials.errors import UserError

LOG_FILE = "log.jsonl"


class ScalarLog:
    """Appends scalars to a folder's `log.jsonl` and to TensorBoard event files beside it.

    A training that goes on after a kill does the last steps again: the log then holds them twice, and the
    later line counts.

    Args:
        folder: Created if need be.

    Raises:
        UserError: The folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        from tensorboardX import SummaryWriter

        try:
            folder.mkdir(parents=True, exist_ok=True)
            _drop_torn_line(folder / LOG_FILE)
            self._lines = (folder / LOG_FILE).open("a", encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
        self._events = SummaryWriter(logdir=str(folder / "events"), write_to_disk=True)

    def __enter__(self) -> ScalarLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._events.close()

    def write(self, stage: str, scalars: Mapping[str, float], step: int) -> None:
        """One line {"stage": …, "step": …, name: value, …}, and one TensorBoard scalar `stage/name` each."""
        self._lines.write(json.dumps({"stage": stage, "step": step, **scalars}) + "\n")
        self._lines.flush()
        for name, value in scalars.items():
            self._events.add_scalar(f"{stage}/{name}", value, step)


def _drop_torn_line(path: Path) -> None:
    """Cut off what a kill left of a line, so that the next one does not go on in it."""
    if path.is_file():
        written = path.read_bytes()
        if not written.endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(written.rfind(b"\n") + 1)


def read_log(folder: Path) -> dict[tuple[str, int], dict[str, float]]:
    """The scalars of a training by stage and step; of steps that were done twice, the later ones.

    A last line that a kill has torn, or that is just being written, does not count.
    """
    found: dict[tuple[str, int], dict[str, float]] = {}
    whole, _, _ = (folder / LOG_FILE).read_text("utf-8").rpartition("\n")
    for line in whole.splitlines():
        entry = json.loads(line)
        key = (str(entry.pop("stage")), int(entry.pop("step")))
        found[key] = found.get(key, {}) | entry
    return found
