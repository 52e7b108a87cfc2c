"""`run`, `eval` and `ask`."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from ragtrials.program import Step, Trace
    from ragtrials.suite import Output, Request


@click.command()
@click.argument("suite", required=False)
@click.option("--method", "-m", "methods", multiple=True, help="A method (may be repeated).")
@click.option("--task", "-t", "tasks", multiple=True, help="A task (may be repeated).")
@conditions
@data_dir
@results_folder
@runs
@resume
def run(
    suite: str | None,
    methods: tuple[str, ...],
    tasks: tuple[str, ...],
    options: tuple[str, ...],
    data_dir: Path | None,
    results: Path | None,
    runs: Path,
    resume: bool,
    **values: Any,
) -> None:
    """Run SUITE, or every --method on every --task, and show the leaderboard of the records.

    A killed run goes on where it stopped when the same command is given again.
    """
    from ragtrials.errors import UserError
    from ragtrials.suite import AD_HOC, Conditions, Output, Request, expand, load_suite

    changes = given(values)
    if suite is not None:
        if methods or tasks:
            raise UserError("give either a suite, or --method and --task")
        loaded = load_suite(suite)
        requests, output = expand(loaded, changes, options), loaded.output
    elif methods and tasks:
        base = replace(Conditions(), **changes)
        requests = [Request(AD_HOC, m, t, base, options) for t in tasks for m in methods]
        output = Output()
    else:
        raise UserError("say what to run: a suite (see `ragtrials list suites`), or --method and --task")
    _run(requests, replace(output, results=str(results)) if results else output, runs, data_dir, resume)


@click.command("eval")
@click.argument("method")
@click.argument("task")
@checkpoint_folder("the untrained model")
@conditions
@data_dir
@results_folder
@runs
@resume
def evaluate(
    method: str,
    task: str,
    checkpoint: Path | None,
    options: tuple[str, ...],
    data_dir: Path | None,
    results: Path | None,
    runs: Path,
    resume: bool,
    **values: Any,
) -> None:
    """Evaluate METHOD on TASK without any training.

    A checkpoint is evaluated with the settings that it was trained with; -o changes them. It may come
    from another task.
    """
    from ragtrials.suite import AD_HOC, Conditions, Output, Request

    changes, trained = to_evaluate(checkpoint, given(values))
    request = Request(
        AD_HOC, method, task, replace(Conditions(), **changes), options, checkpoint=trained, train=False
    )
    output = Output() if results is None else Output(results=str(results))
    _run([request], output, runs, data_dir, resume)


def _run(requests: list[Request], output: Output, runs: Path, data_dir: Path | None, resume: bool) -> None:
    """Run the requests, show their tables, write the suite's leaderboard, and set the exit code."""
    from ragtrials.chunks import write_atomically
    from ragtrials.cli.show import print_standings
    from ragtrials.leaderboard import standings
    from ragtrials.leaderboard_page import page
    from ragtrials.resources import Resources
    from ragtrials.runner import Folders, run_all

    results = Path(output.results)
    outcomes = run_all(requests, Resources(data_dir), Folders(results, runs), not resume, report)
    tables, problems = standings(results)
    print_standings(tables, {outcome.record.id for outcome in outcomes if outcome.record is not None})
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    if output.leaderboard is not None:
        board = Path(output.leaderboard)
        write_atomically(board, page(tables, results, board).encode())
        click.echo(f"Leaderboard written to {output.leaderboard}; records in {results}")
    else:
        click.echo(f"Records in {results}; `ragtrials leaderboard` makes the leaderboard of all of them")
    end(outcomes)


@click.command()
@click.argument("question")
@click.option("--method", "-m", required=True, help="The method that answers.")
@click.option("--task", "-t", required=True, help="The task whose corpus is searched.")
@checkpoint_folder("the untrained model")
@conditions
@data_dir
def ask(
    question: str,
    method: str,
    task: str,
    checkpoint: Path | None,
    options: tuple[str, ...],
    data_dir: Path | None,
    **values: Any,
) -> None:
    """Answer one QUESTION and print every step on the way: passages, prompts, replies, cost."""
    from ragtrials.asking import answer_question
    from ragtrials.resources import Resources
    from ragtrials.suite import AD_HOC, Conditions, Request

    changes, trained = to_evaluate(checkpoint, given(values))
    request = Request(
        AD_HOC, method, task, replace(Conditions(), **changes), options, checkpoint=trained, train=False
    )
    trace = answer_question(question, request, Resources(data_dir))
    _print_trace(trace)


def _print_trace(trace: Trace) -> None:
    for number, step in enumerate(trace.steps, 1):
        click.echo(f"\n--- step {number}: {_describe(step)} ({step.seconds:.2f} s)")
        click.echo(_body(step))
    cost = trace.cost
    click.echo(f"\nAnswer: {trace.answer}")
    click.echo(
        f"Cost: {cost.retrieval_calls} retrieval call(s), {cost.passages} passages, "
        f"{cost.llm_calls} model call(s), {cost.prompt_tokens} prompt tokens, "
        f"{cost.completion_tokens} generated tokens, {cost.seconds:.2f} s"
    )


def _describe(step: Step) -> str:
    from ragtrials.program import Retrieve

    if isinstance(step.request, Retrieve):
        return f"retrieve k={step.request.k} {step.request.query!r}"
    return f"{step.request.kind} as {step.request.role}"


def _body(step: Step) -> str:
    from ragtrials.program import Completion, Retrieve

    if isinstance(step.request, Retrieve):
        assert not isinstance(step.result, Completion)
        lines = [f"{hit.score:8.3f}  {hit.passage.title}: {hit.passage.text}" for hit in step.result]
        return "\n".join(lines) or "(nothing found)"
    assert isinstance(step.result, Completion)
    chat = "\n".join(f"{message.role}: {message.text}" for message in step.request.messages)
    note = f" [{step.result.dropped_tokens} passage tokens cut]" if step.result.dropped_tokens else ""
    return f"{chat}\n=> {step.result.text!r} ({step.result.finish}){note}"


COMMANDS = (run, evaluate, ask)
