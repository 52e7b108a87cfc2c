"""Which runs of a results folder may be compared, and how they rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragtrials.errors import UserError
from ragtrials.results import RunRecord, Stored, read_all
from ragtrials.run_labels import labels, settings
from ragtrials.signature import digest
from ragtrials.stats import paired_permutation_test

SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run with its place.

    Attributes:
        rank: 1 for the best; shared by runs that do not differ significantly.
        run: The run.
        label: Its method, told apart from other runs of the method in the table.
    """

    rank: int
    run: Stored
    label: str


@dataclass(frozen=True, slots=True)
class Table:
    """Runs that are ranked together, best first.

    Attributes:
        key: What the runs agree in; no other table has the same.
        retriever, corpus: What the table's methods searched; "none" where none of them searches.
        rows: The runs with their places, at least one.
    """

    key: tuple[str, ...]
    retriever: str
    corpus: str
    rows: tuple[Ranked, ...]

    @property
    def records(self) -> list[RunRecord]:
        """The records of the rows."""
        return [entry.run.record for entry in self.rows]

    @property
    def title(self) -> str:
        """Task, model and retriever."""
        first = self.rows[0].run.record
        retriever = "no retriever" if self.retriever == "none" else self.retriever
        return f"{first.task} · {first.model} · {retriever}"


def standings(results: Path) -> tuple[list[Table], list[str]]:
    """All tables of a results folder, and one line per record that could not be used.

    A run that several suites hold counts once.
    """
    stored, problems = read_all(results)
    once = {run.record.id: run for run in reversed(stored)}  # of several, the first by path
    tables = []
    for key, runs in sorted(groups(list(once.values())).items()):
        usable = []
        for run in runs:
            try:
                run.values(run.record.main_metric)
                settings(run.record)
                usable.append(run)
            except UserError as error:
                problems.append(str(error))
        if usable:
            tables.append(Table(key, key[-3], key[-2], tuple(rank(usable))))
    return tables, sorted(set(problems))


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
    for place, (run, label) in enumerate(zip(order, labels([run.record for run in order]), strict=True), 1):
        values = run.values(metric)
        if ranked and set(values) == set(leader):
            ids = sorted(values)
            p = paired_permutation_test([leader[i] for i in ids], [values[i] for i in ids])
            if p >= SIGNIFICANCE:
                ranked.append(Ranked(ranked[-1].rank, run, label))
                continue
        leader = values
        ranked.append(Ranked(place, run, label))
    return ranked
