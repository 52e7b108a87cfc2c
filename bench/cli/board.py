"""`leaderboard`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtrials.errors import UserError

if TYPE_CHECKING:
    from ragtrials.leaderboard import Table


@click.command()
@click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the records.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("leaderboard.md"),
    show_default=True,
    help="File to write.",
)
@click.option(
    "--plots",
    is_flag=True,
    help="Also draw score against cost, one SVG in RESULTS/plots for each table of two or more rows; needs "
    "the extra `plots`.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; fail if the file or a plot that is there is not what the records give.",
)
def leaderboard(results: Path, output: Path, plots: bool, check: bool) -> None:
    """Make the leaderboard from the records."""
    from ragtrials.chunks import write_atomically
    from ragtrials.leaderboard import standings
    from ragtrials.leaderboard_page import page

    if plots and check:
        raise UserError("--check looks at the plots that are there anyway: leave --plots out")
    if not results.is_dir():
        raise UserError(f"no results folder {results}: run something first, or give --results")
    tables, problems = standings(results)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if plots:
        _draw(results, tables)
    text = page(tables, results, output)
    if check:
        _check_plots(results, tables)
        current = output.read_text("utf-8") if output.is_file() else ""
        if current != text:
            raise UserError(
                f"{output} is not what {results} gives; run `ragtrials leaderboard` and commit it"
            )
        click.echo(f"{output} is up to date")
    else:
        write_atomically(output, text.encode())
        click.echo(f"Leaderboard written to {output}")
    if problems:
        raise click.exceptions.Exit(2)


def _draw(results: Path, tables: Sequence[Table]) -> None:
    """Draw all plots anew, and remove those whose table is gone."""
    from ragtrials.chunks import write_atomically
    from ragtrials.cost_plots import draw_costs
    from ragtrials.costs import cost_view
    from ragtrials.leaderboard_page import score_name
    from ragtrials.plot_files import mark, orphans, plot_names, plot_title, plots_folder

    folder = plots_folder(results)
    drawn = 0
    for table, name in zip(tables, plot_names(tables), strict=True):
        view = cost_view(table)
        if view is not None:
            svg = draw_costs(view, plot_title(table), score_name(view.metric), mark(table, view))
            write_atomically(folder / name, svg)
            drawn += 1
    for path in orphans(results, tables):
        path.unlink()
        click.echo(f"Removed {path}: there is no such table any more")
    click.echo(f"{drawn} plot(s) written to {folder}" if drawn else "No table has two rows: nothing to draw")


def _check_plots(results: Path, tables: Sequence[Table]) -> None:
    """Refuse plots on disk that are not of the present points.

    Raises:
        UserError: There is one; the first is named, the others counted.
    """
    from ragtrials.plot_files import orphans, outdated

    found = [f"{path} does not show the present points" for path in outdated(results, tables)]
    found += [f"{path} is of a table that does not exist" for path in orphans(results, tables)]
    if found:
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"{found[0]}{others}; run `ragtrials leaderboard --plots` and commit what it changes")


COMMANDS = (leaderboard,)
