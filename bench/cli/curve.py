"""`curve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtrials.cli.show import table
from ragtrials.errors import UserError

if TYPE_CHECKING:
    from ragtrials.curves import Curve

_HEADER = ("stage", "scalar", "steps", "first fifth", "last fifth", "slope per step", "p")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--stage", help="A stage of the training [default: all].")
@click.option(
    "--scalar", "scalars", multiple=True, help="A scalar of the log, repeatable [default: reward, else loss]."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Also draw the curves; needs the extra `plots`.",
)
def curve(folder: Path, stage: str | None, scalars: tuple[str, ...], output: Path | None) -> None:
    """Show how the scalars of the training in FOLDER went, and whether they rose or fell.

    FOLDER is a checkpoint's, of a training that goes on as well. The slope is that of the least squares
    line; p is the share of shuffled orders of the same values whose slope is at least as steep.
    """
    from ragtrials.curves import read_curves, training_name

    if output is not None and output.suffix != ".svg":
        raise UserError(f"--output {output}: curves are drawn as SVG; give a name that ends in .svg")
    curves = read_curves(folder, stage, scalars)
    title = training_name(folder)
    if output is not None:
        from ragtrials.chunks import write_atomically
        from ragtrials.plots import draw

        write_atomically(output, draw(curves, title))
    click.echo(f"{title}\n")
    click.echo(table(_HEADER, [_row(found) for found in curves]))
    for found in curves:
        if found.broken:
            click.echo(
                f"{found.stage} {found.scalar}: not a finite number at {len(found.broken)} of "
                f"{len(found.broken) + len(found.values)} steps (first: step {found.broken[0]}); left out"
            )
    if output is not None:
        click.echo(f"\nCurves drawn to {output}")


def _row(found: Curve) -> list[str]:
    trend = found.trend()
    return [
        found.stage,
        found.scalar,
        str(len(found.values)),
        f"{found.first:.4g}",
        f"{found.last:.4g}",
        f"{trend.slope:+.3g}",
        f"{trend.p:.4f}",
    ]


COMMANDS = (curve,)
