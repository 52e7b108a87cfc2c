"""How scores and costs of stored runs depend on what a dataset says of each question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isclose
from pathlib import Path
from statistics import fmean
from typing import Any

from ragtrials.config import suggestion
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.parquet import read_columns
from ragtrials.results import PREDICTIONS_FILE, RECORD_FILE, Stored, read_all, read_record
from ragtrials.run_labels import unique_labels
from ragtrials.seeding import derive_seed
from ragtrials.signature import digest
from ragtrials.stats import Correlation, Estimate, bootstrap, spearman

UNKNOWN = "(none)"
"""The group of the questions of which the dataset does not say it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that agree in a field, or whose numbers in it are neighbours.

    Attributes:
        label: The value, or the lowest and the highest one.
        ids: The examples' ids.
    """

    label: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """One column of one run, group by group.

    Attributes:
        run: The run's name, told apart from the others.
        column: A score or a cost.
        values: Mean and 95 % interval in each group.
        correlation: With the field over all questions, if that is a number.
    """

    run: str
    column: str
    values: tuple[Estimate, ...]
    correlation: Correlation | None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Runs side by side over the groups of a field."""

    field: str
    groups: tuple[Group, ...]
    series: tuple[Series, ...]


def find_runs(names: Sequence[str], results: Path) -> list[Stored]:
    """The records of runs that can stand side by side.

    Args:
        names: Folders of records, ids, or unique beginnings of ids. One that comes again counts once.
        results: Where ids are looked for.

    Raises:
        UserError: One is not there or not unique, or they are not of the same questions.
    """
    stored, _ = read_all(results)
    found = [_find(name, stored, results) for name in names]
    runs = list({run.record.id: run for run in found}.values())
    first = runs[0].record
    for run in runs[1:]:
        for what in ("task", "split"):
            if getattr(run.record, what) != getattr(first, what):
                raise UserError(
                    f"run {run.record.id} is of {what} {getattr(run.record, what)}, run {first.id} of "
                    f"{getattr(first, what)}: give runs of the same questions"
                )
        if run.record.signature["examples"] != first.signature["examples"]:
            raise UserError(
                f"runs {first.id} and {run.record.id} are of other questions ({first.sample}, "
                f"{run.record.sample}): give runs of the same"
            )
    return runs


def _find(name: str, stored: Sequence[Stored], results: Path) -> Stored:
    folder = Path(name)
    if (folder / RECORD_FILE).is_file():
        return Stored(folder, read_record(folder / RECORD_FILE))
    found = [run for run in stored if run.record.id.startswith(name)]
    if len({run.record.id for run in found}) != 1:
        ids = ", ".join(sorted({run.record.id for run in found}))
        problem = (
            f"is the beginning of {ids}" if found else f"is no record's folder, and no id below {results}"
        )
        raise UserError(f"run {name!r} {problem}: give a record's folder or its id")
    return found[0]


def breakdown(
    runs: Sequence[Stored], examples: Sequence[Example], field: str, columns: Sequence[str], bins: int
) -> Breakdown:
    """Group the questions of runs by a field, and average columns in each group.

    Args:
        runs: What `find_runs` gives.
        examples: The examples of their split.
        field: A key of `Example.meta`.
        columns: Scores and costs. One that comes again counts once.
        bins: Groups of a field with more different numbers than that.

    Raises:
        UserError: Field or column is not there, the examples are not those of the runs, or a run's
            predictions do not agree with its record.
    """
    columns = list(dict.fromkeys(columns))
    tables = [_columns(run, columns) for run in runs]
    asked, *_ = [_asked(run, table, examples) for run, table in zip(runs, tables, strict=True)]
    values = _field_values(asked, field)
    groups = groups_of(values, bins)
    known = [(i, value) for i, value in values.items() if value is not None]
    numeric = bool(known) and all(_is_number(value) for _, value in known)
    series = []
    for name, run, table in zip(unique_labels([r.record for r in runs]), runs, tables, strict=True):
        for at, column in enumerate(columns):
            seed = derive_seed(run.record.id, field, column)
            estimates = [bootstrap([table[i][at] for i in group.ids], seed) for group in groups]
            pairs = [(float(value), table[i][at]) for i, value in known] if numeric else []
            correlation = spearman([x for x, _ in pairs], [y for _, y in pairs], seed) if numeric else None
            series.append(Series(name, column, tuple(estimates), correlation))
    return Breakdown(field, tuple(groups), tuple(series))


def groups_of(values: Mapping[str, Any], bins: int) -> list[Group]:
    """Groups of ids by value, those without a value last.

    Numbers of more than `bins` different values are cut by rank into that many parts of about equal size;
    equal values are never cut apart. Anything else has a group for each value, in order.

    Args:
        values: The value of each id, None if it has none.
        bins: Number of parts.
    """
    known = {i: value for i, value in values.items() if value is not None}
    by_value = sorted(known, key=lambda i: _order(known[i]))
    runs = [tuple(ids) for _, ids in groupby(by_value, key=lambda i: known[i])]
    if len(runs) > bins and all(_is_number(value) for value in known.values()):
        parts: dict[int, list[str]] = {}
        before = 0
        for ids in runs:  # a run of equal values goes where its middle lies
            place = int((before + len(ids) / 2) * bins / len(known))
            parts.setdefault(place, []).extend(ids)
            before += len(ids)
        groups = [
            Group(_range(known[ids[0]], known[ids[-1]]), tuple(ids)) for _, ids in sorted(parts.items())
        ]
    else:
        groups = [Group(_shown(known[ids[0]]), ids) for ids in runs]
    rest = tuple(i for i, value in values.items() if value is None)
    return [*groups, Group(UNKNOWN, rest)] if rest else groups


def _columns(run: Stored, columns: Sequence[str]) -> dict[str, list[float]]:
    """The values of some columns by example id, which give the means in the record."""
    record = run.record
    means = {name: score.mean for name, score in record.scores.items()}
    means |= {**record.retrieval, **record.cost}
    for column in columns:
        if column not in means:
            raise UserError(f"run {record.id} has no column {column!r}{suggestion(column, means)}")
    path = run.folder / PREDICTIONS_FILE
    frame = read_columns(path, ["id", *columns], "run again with --overwrite")
    rows = {row[0]: list(row[1:]) for row in frame.iter_rows()}
    for at, column in enumerate(columns):
        values = [row[at] for row in rows.values()]
        if None in values:
            raise UserError(
                f"run {record.id}: {column} is not known of every question; choose another column"
            )
        if len(values) != record.n or not isclose(fmean(values), means[column], abs_tol=1e-9):
            raise UserError(f"{path}: its {column} does not give the mean in {RECORD_FILE}; one was edited")
    return rows


def _asked(run: Stored, ids: Collection[str], examples: Sequence[Example]) -> list[Example]:
    """The examples with these ids, which have to be what the run was asked, to the letter."""
    record = run.record
    asked = [example for example in examples if example.id in ids]
    if digest(asked) != record.signature["examples"]:
        raise UserError(
            f"task {record.task} ({record.split}) has other data here than run {record.id} was asked from: "
            f"name the run's with --data-dir, or run again ({len(asked)} of {len(ids)} ids are known)"
        )
    return asked


def _field_values(asked: Sequence[Example], field: str) -> dict[str, Any]:
    """What each example says of the field, None if nothing, by id."""
    fields = dict.fromkeys(key for example in asked for key in example.meta)
    if field not in fields:
        raise UserError(f"no question has a field {field!r}{suggestion(field, fields)}")
    values = {example.id: example.meta.get(field) for example in asked}
    if any(isinstance(value, list | tuple | dict) for value in values.values()):
        raise UserError(f"field {field!r} holds lists or tables: give one with a single value")
    return values


def _order(value: Any) -> tuple[str, Any]:
    """Numbers among each other, then every other kind of value."""
    return ("" if _is_number(value) else type(value).__name__, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range(lowest: Any, highest: Any) -> str:
    return _shown(lowest) if lowest == highest else f"{_shown(lowest)} to {_shown(highest)}"


def _shown(value: Any) -> str:
    return f"{value:,}" if _is_number(value) else str(value)
