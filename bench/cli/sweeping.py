"""`sweep`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtrials.cli.options import (
    checkpoint_folder,
    conditions,
    data_dir,
    given,
    results_folder,
    resume,
    runs,
    to_evaluate,
)
from ragtrials.cli.outcomes import end, report
from ragtrials.cli.show import interval, table

if TYPE_CHECKING:
    from ragtrials.results import RunRecord
    from ragtrials.runner import Outcome
    from ragtrials.sweep import Member

_HEADER = ("EM", "F1", "acc", "retr/q", "prompt/q", "gen/q", "front")


@click.command()
@click.argument("method")
@click.argument("task")
@click.option(
    "--over",
    "words",
    multiple=True,
    metavar="NAME=V1,V2,...",
    help="Vary config.SETTING of the method, or a condition such as seed. May be repeated: all combinations.",
)
@click.option("--name", default="sweep", show_default=True, help="The suite that the records belong to.")
@checkpoint_folder("train where a method is trained")
@conditions
@data_dir
@results_folder
@runs
@resume
def sweep(
    method: str,
    task: str,
    words: tuple[str, ...],
    name: str,
    checkpoint: Path | None,
    options: tuple[str, ...],
    data_dir: Path | None,
    results: Path | None,
    runs: Path,
    resume: bool,
    **values: Any,
) -> None:
    """Run METHOD on TASK once for each value of what --over names, and show what is worth its cost.

    A method that is trained is trained as often as the values make a difference to its training; with a
    checkpoint nothing is trained. A killed sweep goes on when the same command is given again.

    The table's last column says whether a run is on the Pareto front of F1 against retrievals, prompt tokens
    or both: no other run of the family costs no more and scores no less, and is better in one.
    """
    from ragtrials.resources import Resources
    from ragtrials.runner import Folders, run_all
    from ragtrials.suite import Conditions, Output, Request
    from ragtrials.sweep import check_suite_name, family, parse_over

    check_suite_name(name)
    overs = [parse_over(word) for word in words]
    changes, trained = to_evaluate(checkpoint, given(values))
    base = Request(
        name,
        method,
        task,
        replace(Conditions(), **changes),
        options,
        checkpoint=trained,
        train=checkpoint is None,
    )
    members = family(base, overs, changes)
    names = [over.name for over in overs]
    about = {
        member.request: ", ".join(f"{n}={v}" for n, v in zip(names, member.values, strict=True))
        for member in members
    }
    folders = Folders(results or Path(Output().results), runs)
    outcomes = run_all(
        list(about),
        Resources(data_dir),
        folders,
        not resume,
        lambda outcome: report(outcome, about[outcome.request]),
    )
    if records := [outcome.record for outcome in outcomes if outcome.record is not None]:
        click.echo(f"\n{_heading(records)}")
    click.echo(table((*names, *_HEADER), _rows(members, outcomes), left=len(names)))
    click.echo(
        f"\nRecords in {folders.results / name}; `ragtrials leaderboard` compares them with all others"
    )
    end(outcomes)


def _heading(records: Sequence[RunRecord]) -> str:
    """Method and task, and what all runs share of the rest."""
    views: list[Callable[[RunRecord], str]] = [
        lambda record: f"{record.split}, {record.sample} questions",
        lambda record: record.model,
        lambda record: (
            f"{record.retriever} over {record.corpus}" if record.corpus != "none" else "no retrieval"
        ),
    ]
    shared = [view(records[0]) for view in views if len({view(record) for record in records}) == 1]
    return ", ".join([f"{records[0].method} on {records[0].task}", *shared])


def _rows(members: Sequence[Member], outcomes: Sequence[Outcome]) -> list[list[str]]:
    fronts = _fronts([outcome.record for outcome in outcomes])
    return [
        [*member.values, *_cells(outcome), mark]
        for member, outcome, mark in zip(members, outcomes, fronts, strict=True)
    ]


def _cells(outcome: Outcome) -> list[str]:
    record = outcome.record
    if record is None:
        return [outcome.status, *"–––––"]
    return [
        *(interval(record.scores.get(score)) for score in ("em", "f1", "acc")),
        f"{record.cost['retrieval_calls']:.2f}",
        f"{record.cost['prompt_tokens']:.0f}",
        f"{record.cost['completion_tokens']:.1f}",
    ]


def _fronts(records: Sequence[RunRecord | None]) -> list[str]:
    """For each run, which costs put it on the Pareto front of F1; runs without an F1 are on none."""
    from ragtrials.pareto import front

    judged = [(i, record) for i, record in enumerate(records) if record is not None and "f1" in record.scores]
    fronts = [
        {judged[i][0] for i in front([(record.cost[cost], record.scores["f1"].mean) for _, record in judged])}
        for cost in ("retrieval_calls", "prompt_tokens")
    ]
    marks = {(True, True): "both", (True, False): "retrievals", (False, True): "tokens", (False, False): "–"}
    return [marks[i in fronts[0], i in fronts[1]] for i in range(len(records))]


COMMANDS = (sweep,)
