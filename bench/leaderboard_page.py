"""leaderboard.md: a pure function of a results folder. The same records give the same bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ragtrials.costs import KINDS, CostView, cost_view, gains
from ragtrials.leaderboard import Ranked, Table, standings
from ragtrials.plot_files import plot_names, plots_folder
from ragtrials.progress import clock
from ragtrials.reported import Reported, read_reported
from ragtrials.results import RunRecord
from ragtrials.stats import Estimate

INTRODUCTION = """\
# Leaderboard

Generated from the run records by `ragtrials leaderboard`; do not edit by hand.

Each table holds runs that agree in task, split, sample, corpus, metric version, model and retriever; only
those are ranked together. Scores are percentages with 95 % bootstrap intervals. Rows share a rank when a
paired permutation test on the main score (marked *) does not separate them from the first of the rank
(p ≥ 0.05). Runs of one method are told apart by the settings in which they differ.
Costs are means per question and count every request, cached or not. "training" is what the evaluated weights
cost before: training questions, tokens read and sampled for them, and the time on the machine that it ran on.
A method that never retrieves stands in
every table of its task. What a paper reports stands beside, in other settings than ours, and is never ranked.

A run is on the "front" of a cost, retrieval calls or prompt tokens or both, if no other run of the table does
at least as well for at most as much, and better in one of the two. The small tables go along the fronts from
cheap to dear. They compare means: whether two runs differ is for the ranks to say.
"""


def render(results: Path, output: Path) -> tuple[str, list[str]]:
    """The leaderboard's text, and one line per record that could not be used.

    Args:
        results: Folder of the records.
        output: Where the page is going to stand. Links to plots are relative to it.
    """
    tables, problems = standings(results)
    return page(tables, results, output), problems


def page(tables: Sequence[Table], results: Path, output: Path) -> str:
    """The leaderboard's text from the standings of a results folder; arguments as for `render`."""
    reported = read_reported(results)
    sections = [
        _section(table, reported, _plot_link(plots_folder(results) / name, output))
        for table, name in zip(tables, plot_names(tables), strict=True)
    ]
    body = "".join(sections) if sections else "\nNo runs yet.\n"
    return f"{INTRODUCTION}{body}{_sources(reported)}"


def _plot_link(plot: Path, output: Path) -> str:
    """A picture in the page if its file is there."""
    if not plot.is_file():
        return ""
    target = Path(os.path.relpath(plot, output.parent)).as_posix()
    return f"\n![Score against retrieval calls and prompt tokens](<{target}>)\n"


def _section(table: Table, reported: Sequence[Reported], plot: str) -> str:
    first = table.rows[0].run.record
    scores = list(first.scores)
    view = cost_view(table)
    columns = {"rank": "---", "method": "---", "seed": "---:"}
    columns |= {score_name(name) + (" *" if name == first.main_metric else ""): "---:" for name in scores}
    columns |= dict.fromkeys(("gold recall", "answer recall", "retrievals/q", "passages/q"), "---:")
    columns |= dict.fromkeys(("prompt tokens/q", "generated tokens/q"), "---:")
    columns |= {"front": "---"} if view else {}
    columns |= {"training": "---:", "paper reports": "---", "run": "---"}
    rows = [list(columns), list(columns.values())]
    for index, entry in enumerate(table.rows):
        rows.append(_row(entry, scores, [view.on(index)] if view else [], reported))
    lines = [
        f"\n## {table.title}\n",
        f"{first.split} split, {first.sample} questions; corpus {table.corpus}; "
        f"metrics {', '.join(first.metrics)}; model digest {first.model_digest[:12]}.\n",
        *_table(rows),
    ]
    costs = _costs(view) if view else ""
    return "\n".join(lines) + "\n" + costs + plot


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def _row(entry: Ranked, scores: Sequence[str], front: list[str], reported: Sequence[Reported]) -> list[str]:
    record = entry.run.record
    cost = record.cost
    return [
        str(entry.rank),
        entry.label,
        str(record.seed),
        *(_interval(record.scores[name]) if name in record.scores else "–" for name in scores),
        _percent(record.retrieval.get("gold_recall")),
        _percent(record.retrieval.get("answer_recall")),
        f"{cost['retrieval_calls']:.2f}",
        f"{cost['passages']:.2f}",
        f"{cost['prompt_tokens']:.0f}",
        f"{cost['completion_tokens']:.1f}",
        *front,
        _training(record),
        _paper(record, reported),
        f"`{record.id}`",
    ]


def _costs(view: CostView) -> str:
    """The fronts as tables, from cheap to dear."""
    lines = ["\n### What an answer costs"]
    for place, (kind, kept) in enumerate(zip(KINDS, view.fronts, strict=True)):
        points = [view.points[i] for i in kept]
        steps = gains([(point.costs[place], point.score.mean) for point in points])
        rows = [
            ["method", kind.column, score_name(view.metric), f"gain per {kind.unit}"],
            ["---", "---:", "---:", "---:"],
        ]
        for point, gain in zip(points, steps, strict=True):
            gained = "–" if gain is None else f"{100 * kind.size * gain:+.1f}"
            cost = f"{point.costs[place]:.{kind.digits}f}"
            rows.append([point.name, cost, f"{100 * point.score.mean:.1f}", gained])
        lines += ["", *_table(rows)]
    return "\n".join(lines) + "\n"


def _training(record: RunRecord) -> str:
    """What the evaluated weights cost: examples, tokens read and sampled, time; "none" for untrained ones."""
    report = record.training
    if report is None:
        return "none"
    made = report["rollouts"]["prompt_tokens"] + report["rollouts"]["completion_tokens"]
    tokens = made + sum(stage["tokens"] for stage in report["stages"])
    elsewhere = f" of {report['task']}" if report["task"] != record.task else ""
    return (
        f"{report['examples']} questions{elsewhere}, {tokens / 1000:,.0f}k tokens, {clock(report['seconds'])}"
    )


def score_name(name: str) -> str:
    """How a score is called where people read."""
    return {"em": "EM", "f1": "F1"}.get(name, name)


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _paper(record: RunRecord, reported: Sequence[Reported]) -> str:
    cells = [
        f"{score_name(row.metric)} {100 * row.value:.1f} [{number}]"
        for number, source in enumerate(reported, 1)
        for row in source.rows
        if (row.method, row.task) == (record.method, record.task)
    ]
    return ", ".join(cells) or "–"


def _sources(reported: Sequence[Reported]) -> str:
    if not reported:
        return ""
    lines = [
        f"[{number}] {source.citation} Setting: {source.setting}" for number, source in enumerate(reported, 1)
    ]
    return "\n## Reported by papers\n\n" + "\n\n".join(lines) + "\n"
