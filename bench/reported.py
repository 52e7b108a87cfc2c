"""What papers report, from results/reported/: beside our own numbers, never among them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragtrials.config import parse
from ragtrials.errors import UserError

FOLDER = "reported"


@dataclass(frozen=True, slots=True)
class ReportedRow:
    """One number of a paper (a fraction of 1), in the paper's own setting."""

    method: str
    task: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Reported:
    """One file of results/reported/: a paper's numbers with their setting."""

    citation: str
    setting: str
    rows: tuple[ReportedRow, ...]


def read_reported(results: Path) -> list[Reported]:
    """What papers report, by file name, from a results folder.

    Raises:
        UserError: A file is not valid (file and key named).
    """
    found = []
    for path in sorted((results / FOLDER).glob("*.toml")):
        try:
            raw: Mapping[str, object] = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: not valid TOML: {error}") from error
        found.append(parse(Reported, raw, str(path)))
    return found
