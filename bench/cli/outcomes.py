"""How runs ended: a line for each as it ends, and the exit code of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ragtrials.runner import Outcome


def report(outcome: Outcome, about: str = "") -> None:
    """Say on stderr how a run ended.

    Args:
        outcome: The run.
        about: What tells it from other runs of the same method on the same task.
    """
    what = f"{outcome.request.method} on {outcome.request.task}{about and f', {about}'}"
    if outcome.status in ("failed", "refused"):
        click.echo(f"Error: {what}: {' '.join(outcome.message.split())}", err=True)
    elif outcome.record is None:
        click.echo(f"{what}: {outcome.status}: {outcome.message}", err=True)
    else:
        seconds = outcome.record.times.get("seconds", 0.0)
        click.echo(f"{what}: {outcome.status} ({seconds:.0f} s)", err=True)


def end(outcomes: Sequence[Outcome]) -> None:
    """Leave the command with the exit code of its runs: 2 if one was refused, 1 if one failed."""
    statuses = {outcome.status for outcome in outcomes}
    if "refused" in statuses:
        raise click.exceptions.Exit(2)
    if "failed" in statuses:
        raise click.exceptions.Exit(1)
