"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragtrials.runner import Outcome


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width; the first two to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(w) if i < 2 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def print_outcomes(outcomes: Sequence[Outcome]) -> None:
    """One line per finished run: scores with intervals, then cost per question."""
    rows = []
    for outcome in outcomes:
        record = outcome.record
        if record is None:
            continue
        scores = [
            f"{100 * s.mean:.1f} [{100 * s.low:.1f}, {100 * s.high:.1f}]"
            if (s := record.scores.get(name))
            else "–"
            for name in ("em", "f1", "acc")
        ]
        cost = [record.cost["retrieval_calls"], record.cost["passages"]]
        rows.append(
            [record.task, record.method, str(record.n), *scores]
            + [f"{value:.1f}" for value in cost]
            + [f"{record.cost['prompt_tokens']:.0f}", f"{record.cost['completion_tokens']:.1f}"]
        )
    if rows:
        header = ["task", "method", "n", "EM", "F1", "acc", "retr/q", "pass/q", "prompt/q", "gen/q"]
        click.echo("\n" + table(header, rows) + "\n")
