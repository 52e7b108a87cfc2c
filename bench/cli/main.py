"""The root command: groups the others and turns user errors into one line and an exit code."""

from __future__ import annotations

import sys
from typing import Any

import click

import ragtrials
from ragtrials.cli import board, breakdown, curve, indexing, inspecting, running, scoring, sweeping, training
from ragtrials.errors import RunFailure, UserError

FAILED, WRONG_REQUEST, INTERRUPTED = 1, 2, 130


class OneLineErrors(click.Group):
    """A group whose commands end a known error with one line: exit code 2 (request) or 1 (run)."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command; `--debug` lets the traceback through."""
        try:
            return super().invoke(context)
        except (UserError, RunFailure) as error:
            if context.params.get("debug"):
                raise
            click.echo(f"Error: {' '.join(str(error).split())}", err=True)
            context.exit(WRONG_REQUEST if isinstance(error, UserError) else FAILED)
        except KeyboardInterrupt:
            click.echo("Interrupted. The same command goes on where this one stopped.", err=True)
            context.exit(INTERRUPTED)


@click.group(cls=OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ragtrials.__version__, prog_name="ragtrials")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Train and evaluate retrieval-augmented generation methods under equal conditions, and rank them.

    Exit codes: 0 done; 1 a run failed (the others went on); 2 the request was wrong.
    """


for command in (
    *running.COMMANDS,
    *sweeping.COMMANDS,
    *training.COMMANDS,
    *curve.COMMANDS,
    *breakdown.COMMANDS,
    *scoring.COMMANDS,
    *board.COMMANDS,
    *indexing.COMMANDS,
    *inspecting.COMMANDS,
):
    main.add_command(command)

if __name__ == "__main__":
    sys.exit(main())
