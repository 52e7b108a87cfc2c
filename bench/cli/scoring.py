"""`score`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtrials.cli.options import data_dir
from ragtrials.cli.show import table

if TYPE_CHECKING:
    from ragtrials.judging import Judgement
    from ragtrials.task import Task

_SHOWN = 3  # ids of a list that a terminal shows


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", "-t", "name", required=True, help="The task whose questions are answered.")
@click.option("--split", help="Split that is answered [default: the one the task reports].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, values as fractions of 1.")
@click.option(
    "--per-example",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OUT.parquet",
    help="Also write the scores of every question.",
)
@data_dir
def score(
    file: Path, name: str, split: str | None, as_json: bool, per_example: Path | None, data_dir: Path | None
) -> None:
    """Score anybody's predictions in FILE with the task's official metrics.

    FILE holds JSON lines of `id` (or `question`) and `prediction`; or one JSON object of predictions
    by id; or what HotpotQA's, 2WikiMultihopQA's and MuSiQue's own scripts read; or is a predictions.parquet
    of a run. Questions without a prediction count as wrong, as in the official scripts.
    """
    from ragtrials.judging import judge
    from ragtrials.predictions import read_predictions
    from ragtrials.resources import Resources

    task = Resources(data_dir).task(name)
    split = split or task.card.reported_split
    judgement = judge(task, split, read_predictions(file))
    if per_example is not None:
        _write_rows(per_example, judgement)
    if as_json:
        click.echo(json.dumps(_plain(task, split, judgement), indent=1, ensure_ascii=False))
        return
    _print(task, split, judgement)
    if per_example is not None:
        click.echo(f"scores of every question written to {per_example}")


def _write_rows(path: Path, judgement: Judgement) -> None:
    from ragtrials.chunks import write_atomically
    from ragtrials.parquet import encoded

    write_atomically(path, encoded({name: list(values) for name, values in judgement.columns.items()}))


def _plain(task: Task, split: str, judgement: Judgement) -> dict[str, Any]:
    main = judgement.estimate(task.card.main_metric)
    groups = judgement.groups()
    return {
        "task": task.name,
        "task_version": task.card.version,
        "split": split,
        "metrics": list(task.card.metrics),
        "main_metric": task.card.main_metric,
        "questions": len(judgement),
        "scores": judgement.means(groups["all"]),
        "interval": [main.low, main.high],
        "groups": {
            group: {"questions": len(rows), **judgement.means(rows)}
            for group, rows in groups.items()
            if rows and group != "all"
        },
        "predictions": judgement.read,
        "extra": list(judgement.extra),
        "repeated": list(judgement.repeated),
        "flags": judgement.flags,
        "parts_missing": dict(judgement.parts),
        "remarks": list(judgement.remarks),
    }


def _print(task: Task, split: str, judgement: Judgement) -> None:
    names = judgement.score_names
    click.echo(f"{task.name} ({split}, {len(judgement)} questions): {', '.join(task.card.metrics)}; in %\n")
    rows = [
        [group, str(len(found)), *(f"{100 * mean:.2f}" for mean in judgement.means(found).values())]
        for group, found in judgement.groups().items()
        if found
    ]
    click.echo(table(["questions", "n", *names], rows))
    main = judgement.estimate(task.card.main_metric)
    click.echo(
        f"\n{task.card.main_metric} over all: {100 * main.mean:.2f}, "
        f"95 % interval [{100 * main.low:.2f}, {100 * main.high:.2f}]"
    )
    flags = judgement.flags
    click.echo(
        f"{judgement.read} predictions; {flags.get('missing', 0)} questions without one (all scores 0)"
        f"; {len(judgement.extra)} of no question{_some(judgement.extra)}"
        f"; {len(judgement.repeated)} repeated ids, the last counts{_some(judgement.repeated)}"
        f"; {flags.get('empty_pred', 0)} empty"
        f"; {flags.get('degenerate_gold', 0)} questions with a degenerate gold"
    )
    for part, count in judgement.parts.items():
        if count:
            click.echo(f"{part}: missing for {count} questions (0, and so is every score that needs it)")
    for remark in judgement.remarks:
        click.echo(remark)


def _some(ids: Iterable[str]) -> str:
    shown = [repr(key[:40]) for key in ids]
    if not shown:
        return ""
    return f" ({', '.join(shown[:_SHOWN])}{', ...' if len(shown) > _SHOWN else ''})"


COMMANDS = (score,)
