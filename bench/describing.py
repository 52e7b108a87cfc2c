"""What there is to know about methods, tasks, suites, runs and checkpoints, for `show` and `list`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ragtrials.suite
from ragtrials.config import assignments, plain, suggestion
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.registry import METHODS, TASKS
from ragtrials.results import read_all
from ragtrials.spec import named_settings
from ragtrials.task import Task
from ragtrials.training.checkpoint import is_checkpoint, read_checkpoint


def method(name: str) -> str:
    """The paper card and the options of every profile."""
    kind = METHODS.load(name)
    paper = kind.paper
    lines = [
        f"{kind.name}: {(kind.__doc__ or '').strip()}",
        f"paper: {paper.title} ({paper.url})",
        *(f"  reports {key} = {100 * value:.1f}" for key, value in paper.reported.items()),
        *(f"  differs: {deviation}" for deviation in paper.deviations),
        f"roles: {', '.join(kind.roles)}; {'retrieves' if kind.retrieves else 'never retrieves'}; "
        + _training(kind),
    ]
    for profile, config in kind.PROFILES.items():
        options = ", ".join(f"{name}={text}" for name, text in assignments(named_settings(config)))
        lines.append(f"profile {profile}: {options}")
    return "\n".join(lines)


def _training(kind: type[Method]) -> str:
    """Which roles get weights of their own in any profile."""
    if not kind.trains:
        return "is not trained"
    by_profile = [kind.trained_roles(config) for config in kind.PROFILES.values()]
    trained = [role for role in kind.roles if any(role in roles for roles in by_profile)]
    return f"is trained: {', '.join(trained)}"


def task(name: str, data_dir: Path | None) -> str:
    """The task card, and how many examples each split has on this machine (with what its file lost)."""
    kind = TASKS.load(name)
    card = kind.card
    found = kind(data_dir)
    lines = [
        f"{kind.name}: {card.title} (version {card.version})",
        f"source: {card.source}, revision {card.revision}",
        f"licence: {card.licence}",
        f"metrics: {', '.join(card.metrics)}; methods are ranked by {card.main_metric}",
        *_sizes(card.sizes),
        f"evaluated on: {card.reported_split}",
    ]
    here = found.available_offline()
    for split, text in card.splits.items():
        lines.append(f"split {split}: {text} ({_count(found, split) if here else 'not on this machine'})")
    lines += [f"checksum {file}: {value}" for file, value in card.checksums.items()]
    lines.append(f"cite: {card.citation}")
    return "\n".join(lines)


def _sizes(sizes: Mapping[str, int]) -> list[str]:
    sizes_text = ", ".join(f"{part} {size:,}" for part, size in sizes.items())
    return [f"published sizes: {sizes_text}"] if sizes else []


def _count(found: Task, split: str) -> str:
    left_out = len(found.left_out(split))
    lost = f"; {left_out:,} records of its file left out" if left_out else ""
    return f"{len(found.examples(split)):,} examples here{lost}"


def suite(name: str) -> str:
    """The runs of a suite with their conditions."""
    loaded = ragtrials.suite.load_suite(name)
    lines = [f"{loaded.name}: {loaded.description}"]
    for request in ragtrials.suite.expand(loaded, {}):
        conditions = ", ".join(f"{k}={v}" for k, v in plain(request.conditions).items() if v is not None)
        options = f" -o {' -o '.join(request.options)}" if request.options else ""
        note = " (left out where its data are missing)" if request.optional else ""
        lines.append(f"{request.method} on {request.task}: {conditions}{options}{note}")
    lines.append(f"records: {loaded.output.results}; leaderboard: {loaded.output.leaderboard or 'none'}")
    return "\n".join(lines)


def run(identity: str, results: Path) -> Mapping[str, Any]:
    """The record whose id starts with `identity`.

    Raises:
        UserError: None or several do.
    """
    stored, _ = read_all(results)
    found = [entry for entry in stored if entry.record.id.startswith(identity)]
    if len(found) != 1:
        known = suggestion(identity, [entry.record.id for entry in stored])
        raise UserError(f"{len(found)} runs in {results} have an id that starts with {identity!r}{known}")
    value: Mapping[str, Any] = plain(found[0].record)
    return value


def checkpoints(runs: Path) -> tuple[list[str], list[str]]:
    """One line for each training in a folder of runs, and one for each checkpoint that cannot be read.

    A training without a manifest has been killed, or goes on at present.
    """
    lines, problems = [], []
    for folder in sorted(runs.glob("train/*/*/")):
        if not is_checkpoint(folder):
            named, _, identity = folder.name.rpartition("-")
            method, _, seed = named.rpartition("-s")
            lines.append(f"{identity}  {method:14} {folder.parent.name:12} seed={seed}  not finished")
            continue
        try:
            made = read_checkpoint(folder).manifest
        except UserError as error:
            problems.append(str(error))
            continue
        report = made.report
        steps = sum(stage.steps for stage in report.stages)
        lines.append(
            f"{made.train_id}  {made.method:14} {made.task:12} seed={made.seed}  {made.profile:8} "
            f"{made.model}  examples={report.examples}  steps={steps}  seconds={report.seconds:.0f}"
        )
    return lines, problems
