"""Tells runs of one method apart by what they were asked with: a pure function of their records."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ragtrials.errors import UserError
from ragtrials.results import RunRecord

# Runs of one table agree in these, or have a column for them.
_SHARED = frozenset(("method", "task", "model", "retriever", "corpus", "split", "limit", "seed"))


def settings(record: RunRecord) -> dict[str, str]:
    """What a run's command says about the run itself, by name, in the command's order.

    These are the method's options and the conditions that a table does not fix, such as the profile or a
    checkpoint. An option that stands twice counts with its last value, as it does for the run.

    Raises:
        UserError: The record's command cannot be read.
    """
    try:
        words = shlex.split(record.command)
    except ValueError as error:
        raise UserError(f"run {record.id}: its command is no command line ({error}); restore it") from error
    found: dict[str, str] = {}
    for flag, value in pairwise(words):
        if flag == "-o":
            name, _, text = value.partition("=")
            found[name.strip()] = text.strip()  # as `config.override` reads it
        elif flag.startswith("--") and flag[2:] not in _SHARED:
            found[flag[2:]] = value
    return found


def labels(records: Sequence[RunRecord]) -> list[str]:
    """The method of each run and, where a method has several runs, the settings in which they differ.

    `smart_rag (threshold=0.3)` stands beside a plain `smart_rag` that was run without a threshold, and
    `smart_rag (untrained)` beside trained ones. Runs that differ in their seed alone have the same label.

    Args:
        records: The runs of one table.

    Raises:
        UserError: A record's command cannot be read.
    """
    made = []
    for record in records:
        family = [other for other in records if other.method == record.method]
        theirs = [settings(other) for other in family]
        told = [
            f"{name}={' '.join(value.split())}"
            for name, value in settings(record).items()
            if any(other.get(name) != value for other in theirs)
        ]
        if record.training is None and any(other.training is not None for other in family):
            told.insert(0, "untrained")
        made.append(f"{record.method} ({', '.join(told)})" if told else record.method)
    return made


def unique_labels(records: Sequence[RunRecord]) -> list[str]:
    """The same, no two alike: with the seed where the settings do not do, and the run's id as a last resort.

    For places that have no columns of their own for the seed and the run.
    """
    names = labels(records)
    for additions in ([f"seed {record.seed}" for record in records], [record.id for record in records]):
        count = Counter(names)
        names = [
            f"{name}, {addition}" if count[name] > 1 else name
            for name, addition in zip(names, additions, strict=True)
        ]
    return names
