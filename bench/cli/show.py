"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragtrials.leaderboard import Ranked, Table
    from ragtrials.stats import Estimate


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2) -> str:
    """Columns of equal width; the first `left` to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(w) if i < left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def print_standings(tables: Sequence[Table], ids: Collection[str]) -> None:
    """The tables that hold one of these runs, narrow enough for a terminal.

    Args:
        tables: The standings of a results folder.
        ids: Runs to show; tables without any of them are left out.
    """
    for standing in tables:
        if not any(record.id in ids for record in standing.records):
            continue
        first = standing.records[0]
        searched = (
            f"{standing.retriever} over {standing.corpus}" if standing.corpus != "none" else "no retrieval"
        )
        click.echo(f"\n{first.task} ({first.split}, {first.sample} questions), {first.model}, {searched}")
        click.echo(table(_HEADER, [_row(entry) for entry in standing.rows]))
    click.echo()


_HEADER = ("rank", "method", "EM", "F1", "acc", "retr/q", "pass/q", "prompt/q", "gen/q")


def _row(entry: Ranked) -> list[str]:
    record = entry.run.record
    cost = record.cost
    return [
        str(entry.rank),
        entry.label,
        *(interval(record.scores.get(name)) for name in ("em", "f1", "acc")),
        f"{cost['retrieval_calls']:.1f}",
        f"{cost['passages']:.1f}",
        f"{cost['prompt_tokens']:.0f}",
        f"{cost['completion_tokens']:.1f}",
    ]


def interval(score: Estimate | None) -> str:
    """A score in percent with its 95 % interval; a dash if there is none."""
    if score is None:
        return "–"
    return f"{100 * score.mean:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]"
