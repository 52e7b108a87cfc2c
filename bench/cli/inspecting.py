"""`list`, `show` and `doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ragtrials.cli.options import data_dir

LISTS = ("methods", "tasks", "retrievers", "models", "suites", "runs")
_results = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the records.",
)


@click.command("list")
@click.argument("what", type=click.Choice(LISTS))
@_results
def list_(what: str, results: Path) -> None:
    """List what there is of a kind."""
    lines, problems = _lines(what, results)
    for line in lines:
        click.echo(line)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(2)


def _lines(what: str, results: Path) -> tuple[list[str], list[str]]:
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
@click.argument("name")
@_results
@data_dir
def show(kind: str, name: str, results: Path, data_dir: Path | None) -> None:
    """Show one thing in full: a method's paper and options, a task's card, a suite's runs, a run's record."""
    from ragtrials import describing

    if kind == "method":
        click.echo(describing.method(name))
    elif kind == "task":
        click.echo(describing.task(name, data_dir))
    elif kind == "suite":
        click.echo(describing.suite(name))
    else:
        click.echo(json.dumps(describing.run(name, results), indent=1, ensure_ascii=False))


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
