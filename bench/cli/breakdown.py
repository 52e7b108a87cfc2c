"""`breakdown`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtrials.cli.options import data_dir
from ragtrials.cli.show import table
from ragtrials.errors import UserError

if TYPE_CHECKING:
    from ragtrials.breakdown import Breakdown, Series
    from ragtrials.stats import Estimate


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--by", "field", required=True, help="What the dataset says of a question, e.g. popularity.")
@click.option("--bins", type=click.IntRange(min=2), default=10, show_default=True, help="Parts of a number.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="A score or a cost of predictions.parquet, repeatable [default: retrieval_calls and f1].",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Where ids are looked for.",
)
@data_dir
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Also draw it; needs the extra `plots`.",
)
def breakdown(
    runs: tuple[str, ...],
    field: str,
    bins: int,
    columns: tuple[str, ...],
    results: Path,
    data_dir: Path | None,
    output: Path | None,
) -> None:
    """Show how scores and costs of RUNs depend on what the dataset says of each question.

    A RUN is a record's folder or its id. Numbers are cut into --bins parts of about equally many questions;
    the last lines tell Spearman's rank correlation with the number over all questions, and the share of
    shuffled orders in which it is at least as strong.
    """
    from ragtrials.breakdown import breakdown as break_down
    from ragtrials.breakdown import find_runs
    from ragtrials.resources import Resources

    if output is not None and output.suffix != ".svg":
        raise UserError(f"--output {output}: it is drawn as SVG; give a name that ends in .svg")
    found = find_runs(runs, results)
    record = found[0].record
    resources = Resources(data_dir)
    examples = resources.examples(resources.task(record.task), record.split)
    view = break_down(found, examples, field, columns or ("retrieval_calls", "f1"), bins)
    title = f"{record.task} ({record.split}, {record.sample} questions) by {field}"
    if output is not None:
        from ragtrials.breakdown_plots import draw_breakdown
        from ragtrials.chunks import write_atomically

        write_atomically(output, draw_breakdown(view, title))
    click.echo(f"{title}\n")
    click.echo(_table(view))
    if output is not None:
        click.echo(f"\nDrawn to {output}")


def _table(view: Breakdown) -> str:
    several = len({series.run for series in view.series}) > 1
    heads = [f"{s.run} {s.column}" if several else s.column for s in view.series]
    rows = [
        [group.label, str(len(group.ids)), *(_mean(s, s.values[place]) for s in view.series)]
        for place, group in enumerate(view.groups)
    ]
    if any(series.correlation for series in view.series):
        shown = [s.correlation for s in view.series]
        rows.append(["rank correlation", "", *(f"{c.rho:+.3f}" if c else "–" for c in shown)])
        rows.append(["p", "", *(f"{c.p:.4f}" if c else "–" for c in shown)])
    return table((view.field, "n", *heads), rows, left=1)


def _mean(series: Series, value: Estimate) -> str:
    from ragtrials.scoring import COST_COLUMNS

    return f"{value.mean:.2f}" if series.column in COST_COLUMNS else f"{100 * value.mean:.1f}"


COMMANDS = (breakdown,)
