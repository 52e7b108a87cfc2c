"""The files of results/plots/: which plot belongs to which table, and whether it shows the present points.

Nothing here draws. A plot carries the digest of its points, so a look at the file is enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ragtrials.costs import CostView, cost_view
from ragtrials.leaderboard import Table
from ragtrials.signature import digest

_MARK = "ragtrials-points:"
_FOUND = re.compile(rf"<dc:identifier>\s*({_MARK}[0-9a-f]+)\s*</dc:identifier>".encode())


def plots_folder(results: Path) -> Path:
    """Where the plots of a results folder lie."""
    return results / "plots"


def plot_names(tables: Sequence[Table]) -> list[str]:
    """The name of each table's plot, in the order of the tables.

    Tables that would share a name have a digest of what tells them apart in it.
    """
    plain = [re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-") for table in tables]
    count = Counter(plain)
    return [
        f"{name}-{digest(table.key, 6)}.svg" if count[name] > 1 else f"{name}.svg"
        for name, table in zip(plain, tables, strict=True)
    ]


def plot_title(table: Table) -> str:
    """What stands above a table's plot."""
    first = table.records[0]
    return f"{table.title} ({first.split}, {first.sample} questions)"


def mark(table: Table, view: CostView) -> str:
    """What a plot of these points carries in its metadata."""
    return f"{_MARK}{digest([plot_title(table), view], 16)}"


def mark_of(path: Path) -> str | None:
    """The mark of a plot on disk; None for a file that is no plot of points."""
    found = _FOUND.search(path.read_bytes())
    return found[1].decode() if found else None


def orphans(results: Path, tables: Sequence[Table]) -> list[Path]:
    """Plots of points on disk that belong to no table of two or more rows."""
    names = {
        name for table, name in zip(tables, plot_names(tables), strict=True) if cost_view(table) is not None
    }
    return [
        path
        for path in sorted(plots_folder(results).glob("*.svg"))
        if path.name not in names and mark_of(path) is not None
    ]


def outdated(results: Path, tables: Sequence[Table]) -> list[Path]:
    """Plots on disk that show other points than their tables have now."""
    found = []
    for table, name in zip(tables, plot_names(tables), strict=True):
        path, view = plots_folder(results) / name, cost_view(table)
        if view is not None and path.is_file() and mark_of(path) != mark(table, view):
            found.append(path)
    return found
