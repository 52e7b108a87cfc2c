"""The figures of tasks as a table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragtrials.cli.show import table

if TYPE_CHECKING:
    from ragtrials.task_stats import TaskStats

_NONE = "–"
_HEADER = (
    "task",
    "split",
    "records",
    "odd",
    "train",
    "passages",
    "answer in corpus",
    "answer@5",
    "answer@20",
    "gold@5",
    "gold@20",
)
_LEGEND = (
    "answer in corpus: questions with an answer in some passage, by words (yes/no questions are not counted)",
    "answer@k: % of these questions with an answer in BM25's first k passages (dpr_answer_recall)",
    "gold@k: % of a question's gold passages in BM25's first k, where gold passages are known",
)


def task_table(found: Sequence[TaskStats]) -> str:
    """One row a task, then what is odd in each."""
    lines = [table(_HEADER, [_row(stats) for stats in found]), "", *_LEGEND]
    for stats in found:
        lines += ["", *_details(stats)]
    return "\n".join(lines)


def _row(stats: TaskStats) -> list[str]:
    corpus = stats.corpus
    return [
        stats.task,
        stats.split,
        f"{stats.records:,}",
        f"{stats.odd:,}",
        _NONE if stats.train is None else f"{stats.train:,}",
        f"{corpus.passages:,}" if corpus else _NONE,
        f"{corpus.found:,} of {corpus.searched:,}" if corpus and corpus.searched else _NONE,
        *(_percent(corpus.answer_recall if corpus else {}, depth) for depth in (5, 20)),
        *(_percent(corpus.gold_recall if corpus else {}, depth) for depth in (5, 20)),
    ]


def _percent(means: Mapping[int, float], depth: int) -> str:
    return f"{100 * means[depth]:.1f}" if depth in means else _NONE


def _details(stats: TaskStats) -> list[str]:
    where = f"; corpus {stats.corpus.name}" if stats.corpus else ""
    lines = [f"{stats.task}: {stats.odd:,} of {stats.records:,} records odd{where}"]
    lines += [f"{count:7,}  {kind}" for kind, count in stats.odd_kinds.items()]
    if stats.types:
        lines.append("  types: " + ", ".join(f"{kind} {count:,}" for kind, count in stats.types.items()))
    return lines + [f"  note: {note}" for note in stats.notes]
