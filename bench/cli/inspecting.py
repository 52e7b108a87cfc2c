"""`list`, `show` and `doctor`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtrials.cli.options import corpus, data_dir, records_folder, runs
from ragtrials.errors import UserError

if TYPE_CHECKING:
    from ragtrials.resources import Resources

LISTS = ("methods", "tasks", "retrievers", "models", "suites", "runs", "checkpoints")


@click.command("list")
@click.argument("what", type=click.Choice(LISTS))
@records_folder
@runs
def list_(what: str, results: Path, runs: Path) -> None:
    """List what there is of a kind.

    Runs are the records in --results; checkpoints are the trainings in --runs, unfinished ones too.
    """
    lines, problems = _lines(what, results, runs)
    for line in lines:
        click.echo(line)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(2)


def _lines(what: str, results: Path, runs: Path) -> tuple[list[str], list[str]]:
    from ragtrials.registry import METHODS, TASKS

    if what == "methods":
        return [f"{name:16} {_summary(METHODS.load(name))}" for name in METHODS.names()], []
    if what == "tasks":
        return [f"{name:16} {TASKS.load(name).card.title}" for name in TASKS.names()], []
    if what == "retrievers":
        from ragtrials.retrieval.build import RETRIEVERS

        return list(RETRIEVERS), []
    if what == "models":
        from ragtrials.llm.models import list_models

        return list(list_models()), []
    if what == "suites":
        from ragtrials.suite import load_suite, suite_names

        return [f"{name:16} {load_suite(name).description}" for name in suite_names()], []
    if what == "checkpoints":
        from ragtrials.describing import checkpoints

        return checkpoints(runs)
    from ragtrials.results import read_all

    stored, problems = read_all(results)
    lines = [
        f"{run.record.id}  {run.record.task:12} {run.record.method:14} {run.record.retriever:8} "
        f"{run.record.model}  n={run.record.n}  "
        f"{run.record.main_metric}={100 * run.record.scores[run.record.main_metric].mean:.1f}"
        for run in stored
    ]
    return lines, problems


def _summary(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


@click.command()
@click.argument("kind", type=click.Choice(("method", "task", "suite", "run")))
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--stats", is_flag=True, help="For tasks, all that are here by default: count what their data hold."
)
@click.option("--json", "as_json", is_flag=True, help="With --stats: a JSON list.")
@corpus
@records_folder
@data_dir
def show(
    kind: str,
    names: tuple[str, ...],
    stats: bool,
    as_json: bool,
    corpus: str | None,
    results: Path,
    data_dir: Path | None,
) -> None:
    """Show things in full: a method's paper and options, a task's card, a suite's runs, a run's record."""
    if stats and kind != "task":
        raise UserError(
            f"--stats counts the data of tasks, not of a {kind}: ragtrials show task NAME --stats"
        )
    for option, given in (("--json", as_json), ("--corpus", corpus)):
        if given and not stats:
            raise UserError(f"{option} goes with --stats: ragtrials show task NAME --stats {option}")
    if stats:
        _show_stats(names, as_json, corpus, data_dir)
        return
    if not names:
        raise UserError(f"say which {kind} to show; `ragtrials list {kind}s` names them")

    def describe(name: str) -> None:
        click.echo(_description(kind, name, results, data_dir))

    _each(names, describe)


def _description(kind: str, name: str, results: Path, data_dir: Path | None) -> str:
    from ragtrials import describing

    if kind == "method":
        return describing.method(name)
    if kind == "task":
        return describing.task(name, data_dir)
    if kind == "suite":
        return describing.suite(name)
    return json.dumps(describing.run(name, results), indent=1, ensure_ascii=False)


def _show_stats(names: Sequence[str], as_json: bool, corpus: str | None, data_dir: Path | None) -> None:
    from ragtrials.cli.task_table import task_table
    from ragtrials.config import plain
    from ragtrials.resources import Resources
    from ragtrials.task_stats import TaskStats, task_stats

    resources = Resources(data_dir)
    found: list[TaskStats] = []
    try:
        chosen = names or _tasks_here(resources)
        _each(chosen, lambda name: found.append(task_stats(name, resources, corpus)))
    finally:
        if as_json:
            click.echo(json.dumps(plain(found), indent=1, ensure_ascii=False))
        elif found:
            click.echo(task_table(found))


def _tasks_here(resources: Resources) -> list[str]:
    """The tasks whose data are on this machine; the others are named on stderr."""
    from ragtrials.registry import TASKS

    here = []
    for name in TASKS.names():
        if TASKS.load(name).reads_file:
            continue
        if resources.task(name).available_offline():
            here.append(name)
        else:
            click.echo(f"{name}: left out: its data are not on this machine", err=True)
    return here


def _each(names: Sequence[str], action: Callable[[str], None]) -> None:
    """Do it for each name. Where several are given, one that fails does not keep the others from going on."""
    if len(names) == 1:
        action(names[0])
        return
    failed = False
    for name in names:
        try:
            action(name)
        except UserError as error:
            click.echo(f"Error: {' '.join(str(error).split())}", err=True)
            failed = True
    if failed:
        raise click.exceptions.Exit(2)


@click.command()
@data_dir
def doctor(data_dir: Path | None) -> None:
    """Check this machine: versions, model, cache, data. Exit code 1 if the quick start cannot run."""
    from ragtrials.checkup import examine

    findings = examine(data_dir)
    for finding in findings:
        click.echo(f"{'ok  ' if finding.good else 'MISS' if finding.needed else 'note'}  {finding.text}")
    if any(finding.needed and not finding.good for finding in findings):
        raise click.exceptions.Exit(1)


COMMANDS = (list_, show, doctor)
