"""`train`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ragtrials.cli.options import conditions, data_dir, given, resume, runs


@click.command()
@click.argument("method")
@click.argument("task")
@conditions
@data_dir
@runs
@resume
def train(
    method: str,
    task: str,
    options: tuple[str, ...],
    data_dir: Path | None,
    runs: Path,
    resume: bool,
    **values: Any,
) -> None:
    """Train METHOD on the training part of TASK and print where its checkpoint is.

    `run` trains by itself what it needs, and finds what was trained here. A killed training goes on
    where it stopped when the same command is given again.
    """
    from ragtrials.errors import UserError
    from ragtrials.planning import make_plan
    from ragtrials.resources import Resources
    from ragtrials.suite import AD_HOC, Conditions, Request
    from ragtrials.trained import trained

    resources = Resources(data_dir)
    request = Request(AD_HOC, method, task, replace(Conditions(), **given(values)), options)
    plan = make_plan(request, resources)
    if plan is None or plan.training is None:
        raise UserError(f"method {method} is not trained: `ragtrials run -m {method} -t {task}` evaluates it")
    checkpoint = trained(plan.training, resources, runs, overwrite=not resume)
    report = checkpoint.manifest.report
    for stage in report.stages:
        click.echo(
            f"{stage.stage}: {stage.kind} on {stage.rows} rows, {stage.steps} steps, "
            f"{stage.tokens:,} tokens, {stage.seconds:.0f} s, mean loss {stage.loss:.4f}"
        )
    made = report.rollouts
    click.echo(
        f"data: {report.examples} examples; {made.llm_calls} model calls, {made.prompt_tokens:,} tokens "
        f"read, {made.completion_tokens:,} sampled, {made.retrieval_calls} retrievals, {made.seconds:.0f} s"
    )
    click.echo(f"{report.device}, peak memory {report.peak_memory_mb} MB, {report.seconds:.0f} s in all")
    click.echo(f"Checkpoint {checkpoint.folder}")


COMMANDS = (train,)
