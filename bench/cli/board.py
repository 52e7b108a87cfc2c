"""`leaderboard`."""

from __future__ import annotations

from pathlib import Path

import click


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
@click.option("--check", is_flag=True, help="Write nothing; fail if the file is not what the records give.")
def leaderboard(results: Path, output: Path, check: bool) -> None:
    """Make the leaderboard from the records."""
    from ragtrials.chunks import write_atomically
    from ragtrials.errors import UserError
    from ragtrials.leaderboard_page import render

    if not results.is_dir():
        raise UserError(f"no results folder {results}: run something first, or give --results")
    text, problems = render(results, output)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if check:
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


COMMANDS = (leaderboard,)
