"""leaderboard.md: a pure function of a results folder. The same records give the same bytes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragtrials.config import parse
from ragtrials.errors import UserError
from ragtrials.progress import clock
from ragtrials.results import RunRecord, Stored, read_all
from ragtrials.signature import digest
from ragtrials.stats import Estimate, paired_permutation_test

SIGNIFICANCE = 0.05
REPORTED_FOLDER = "reported"

INTRODUCTION = """\
# Leaderboard

Generated from the run records by `ragtrials leaderboard`; do not edit by hand.

Each table holds runs that agree in task, split, sample, corpus, metric version, model and retriever; only
those are ranked together. Scores are percentages with 95 % bootstrap intervals. Rows share a rank when a
paired permutation test on the main score (marked *) does not separate them from the first of the rank
(p ≥ 0.05).
Costs are means per question and count every request, cached or not. "training" is what the evaluated weights
cost before: training questions, tokens read and sampled for them, and the time on the machine that it ran on.
A method that never retrieves stands in
every table of its task. What a paper reports stands beside, in other settings than ours, and is never ranked.
"""


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


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run with its place."""

    rank: int
    run: Stored


@dataclass(frozen=True, slots=True)
class Table:
    """Runs that are ranked together, best first.

    Attributes:
        retriever, corpus: What the table's methods searched; "none" where none of them searches.
        rows: The runs with their places.
    """

    retriever: str
    corpus: str
    rows: tuple[Ranked, ...]


def standings(results: Path) -> tuple[list[Table], list[str]]:
    """All tables of a results folder, and one line per record that could not be used."""
    stored, problems = read_all(results)
    tables = []
    for key, runs in sorted(groups(stored).items()):
        usable = []
        for run in runs:
            try:
                run.values(run.record.main_metric)
                usable.append(run)
            except UserError as error:
                problems.append(str(error))
        if usable:
            tables.append(Table(key[-3], key[-2], tuple(rank(usable))))
    return tables, sorted(set(problems))


def render(results: Path) -> tuple[str, list[str]]:
    """The leaderboard's text, and one line per record that could not be used."""
    tables, problems = standings(results)
    return page(tables, results), problems


def page(tables: Sequence[Table], results: Path) -> str:
    """The leaderboard's text from the standings of a results folder."""
    reported = read_reported(results / REPORTED_FOLDER)
    sections = [_section(table, reported) for table in tables]
    body = "".join(sections) if sections else "\nNo runs yet.\n"
    return f"{INTRODUCTION}{body}{_sources(reported)}"


def groups(stored: Sequence[Stored]) -> dict[tuple[str, ...], list[Stored]]:
    """Runs that may be ranked together, by what they agree in.

    A run without retrieval joins every group that agrees with it in all but retriever and corpus; where
    there is none it stands in a group of its own.
    """
    found: dict[tuple[str, ...], list[Stored]] = {}
    for run in stored:
        if run.record.retriever != "none":
            found.setdefault(_conditions(run.record) + _retrieval(run.record), []).append(run)
    for run in stored:
        if run.record.retriever == "none":
            conditions = _conditions(run.record)
            homes = [key for key in found if key[: len(conditions)] == conditions]
            for key in homes or [conditions + _retrieval(run.record)]:
                found.setdefault(key, []).append(run)
    return found


def _conditions(record: RunRecord) -> tuple[str, ...]:
    examples = str(record.signature["examples"])
    return (
        record.task,
        record.split,
        record.sample,
        examples,
        "+".join(record.metrics),
        record.model,
        record.model_digest,
    )


def _retrieval(record: RunRecord) -> tuple[str, ...]:
    retriever = record.signature["retriever"]
    return (record.retriever, record.corpus, digest(retriever) if retriever else "")


def rank(runs: Sequence[Stored]) -> list[Ranked]:
    """Best first by the main score. A run shares the rank of the best one it is not significantly below."""
    metric = runs[0].record.main_metric
    order = sorted(runs, key=lambda run: (-run.record.scores[metric].mean, run.record.method, run.record.id))
    ranked: list[Ranked] = []
    leader: dict[str, float] = {}
    for place, run in enumerate(order, 1):
        values = run.values(metric)
        if ranked and set(values) == set(leader):
            ids = sorted(values)
            p = paired_permutation_test([leader[i] for i in ids], [values[i] for i in ids])
            if p >= SIGNIFICANCE:
                ranked.append(Ranked(ranked[-1].rank, run))
                continue
        leader = values
        ranked.append(Ranked(place, run))
    return ranked


def _section(table: Table, reported: Sequence[Reported]) -> str:
    first = table.rows[0].run.record
    scores = list(first.scores)
    columns = ["rank", "method", "seed", *(_score_name(name, first.main_metric) for name in scores)]
    columns += ["gold recall", "answer recall", "retrievals/q", "passages/q", "prompt tokens/q"]
    columns += ["generated tokens/q", "training", "paper reports", "run"]
    rows = [columns, ["---"] * 2 + ["---:"] * (len(columns) - 4) + ["---"] * 2]
    rows += [_row(entry, scores, reported) for entry in table.rows]
    lines = [f"\n## {first.task} · {first.model} · {_retriever_name(table.retriever)}\n"]
    lines.append(
        f"{first.split} split, {first.sample} questions; corpus {table.corpus}; "
        f"metrics {', '.join(first.metrics)}; model digest {first.model_digest[:12]}.\n"
    )
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _row(entry: Ranked, scores: Sequence[str], reported: Sequence[Reported]) -> list[str]:
    record = entry.run.record
    cost = record.cost
    return [
        str(entry.rank),
        record.method,
        str(record.seed),
        *(_interval(record.scores[name]) if name in record.scores else "–" for name in scores),
        _percent(record.retrieval.get("gold_recall")),
        _percent(record.retrieval.get("answer_recall")),
        f"{cost['retrieval_calls']:.2f}",
        f"{cost['passages']:.2f}",
        f"{cost['prompt_tokens']:.0f}",
        f"{cost['completion_tokens']:.1f}",
        _training(record),
        _paper(record, reported),
        f"`{record.id}`",
    ]


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


_NAMES = {"em": "EM", "f1": "F1"}


def _score_name(name: str, main: str) -> str:
    return _NAMES.get(name, name) + (" *" if name == main else "")


def _retriever_name(retriever: str) -> str:
    return "no retriever" if retriever == "none" else retriever


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.mean:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _paper(record: RunRecord, reported: Sequence[Reported]) -> str:
    cells = [
        f"{_NAMES.get(row.metric, row.metric)} {100 * row.value:.1f} [{number}]"
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


def read_reported(folder: Path) -> list[Reported]:
    """What papers report, by file name.

    Raises:
        UserError: A file is not valid (file and key named).
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        try:
            raw: Mapping[str, object] = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: not valid TOML: {error}") from error
        found.append(parse(Reported, raw, str(path)))
    return found
