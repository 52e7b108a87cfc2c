"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("hf", "vllm")

data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with one sub-folder of data files per task [default: RAGTRIALS_DATA].",
)

corpus = click.option(
    "--corpus", help='What is searched: a .jsonl or .tsv file, or "wiki18-100w" [default: the task\'s own].'
)

runs = click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder for unfinished work and traces.",
)
results_folder = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the records [default: the suite's, else results].",
)
records_folder = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the records.",
)
resume = click.option(
    "--resume/--overwrite",
    "resume",
    default=True,
    help="Go on with what is there (default), or do it again from the start.",
)

_CONDITIONS = (
    click.option("--seed", type=int, help="Decides few-shot examples and sampling."),
    click.option("--profile", help="Ready settings of the method, such as paper, laptop or smoke."),
    click.option("--model", help='"quickstart", a model folder, or a Hugging Face id[@revision].'),
    click.option("--retriever", help="See `ragtrials list retrievers`."),
    corpus,
    click.option("--split", help="Split to evaluate [default: the one the task reports]."),
    click.option("--limit", type=int, help="Evaluate so many questions, the same ones for every method."),
    click.option("--chunk", type=int, help="Questions driven together and saved at once."),
    click.option("--batch-size", type=int, help="Prompts per forward pass."),
    click.option("--max-prompt-tokens", type=int, help="Longer prompts have their passages shortened."),
    click.option("--dtype", help="auto, bfloat16, float16 or float32."),
    click.option("--device", help="auto, cpu, cuda or cuda:N."),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="What runs the model in evaluation: transformers (hf) or vLLM [default: hf].",
    ),
    click.option("-o", "options", multiple=True, metavar="NAME=VALUE", help="Set an option of the method."),
)


def conditions(command: F) -> F:
    """Add one option per field of `Conditions`, and `-o`."""
    for option in reversed(_CONDITIONS):
        command = option(command)
    return command


def run_options(command: F) -> F:
    """Add what every command takes that makes records: conditions, folders, and whether to go on."""
    for option in (resume, runs, results_folder, data_dir):
        command = option(command)
    return conditions(command)


def checkpoint_folder(otherwise: str) -> Callable[[F], F]:
    """The option --checkpoint.

    Args:
        otherwise: What happens without it, for the help.
    """
    told = f"What to evaluate: a checkpoint of `train`, or a model folder [default: {otherwise}]."
    return click.option("--checkpoint", type=click.Path(path_type=Path), help=told)


def given(values: dict[str, Any]) -> dict[str, Any]:
    """The conditions that were given on the command line."""
    return {name: value for name, value in values.items() if value is not None}


def to_evaluate(checkpoint: Path | None, changes: dict[str, Any]) -> tuple[dict[str, Any], Path | None]:
    """What --checkpoint comes to: the conditions, and the checkpoint if it is no whole model folder.

    Args:
        checkpoint: The folder that was given.
        changes: The conditions that were given.

    Raises:
        UserError: There is no such folder, or a condition contradicts it.
    """
    from ragtrials.errors import UserError
    from ragtrials.training.checkpoint import is_checkpoint

    if checkpoint is None:
        return changes, None
    if not checkpoint.is_dir():
        raise UserError(f"--checkpoint {checkpoint}: no such folder")
    if (checkpoint / "config.json").is_file() and not is_checkpoint(checkpoint):
        if "model" in changes:
            raise UserError(f"--checkpoint {checkpoint} is a whole model: give either it or --model")
        return changes | {"model": str(checkpoint)}, None
    if "profile" in changes:
        raise UserError("a checkpoint has its settings with it: change them with -o instead of --profile")
    return changes, checkpoint
