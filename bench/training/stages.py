"""`sft` and `dpo`: train the weights of one role on rows, once. A finished stage is not done again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrials.chunks import write_atomically
from ragtrials.config import parse, plain
from ragtrials.errors import RunFailure, UserError
from ragtrials.progress import progress
from ragtrials.seeding import derive_seed
from ragtrials.training.report import StageReport, last_scalars
from ragtrials.training.rows import Demonstration, Preference, RowEncoder, tokens_of
from ragtrials.training.settings import Optimisation

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

REPORT_FILE = "stage.json"


def sft(
    run: TrainRun,
    stage: str,
    role: str,
    rows: Sequence[Demonstration],
    settings: Optimisation,
    held_out: Sequence[Demonstration] = (),
) -> None:
    """Fine-tune a role on demonstrations: the loss is on the completion and the end of its turn alone.

    Args:
        run: The training; the role's weights are replaced in it.
        stage: A name of its own, e.g. "sft".
        role: Whose weights.
        rows: What the role should say.
        settings: How to optimise.
        held_out: Rows that pick the best step; without any the last step counts.

    Raises:
        UserError: There are no rows, or settings and model do not fit together.
        RunFailure: Memory ran out, or the loss is not a number.
    """
    _train(run, stage, role, "sft", settings, lambda e: ([*map(e.sft, rows)], [*map(e.sft, held_out)]))


def dpo(
    run: TrainRun,
    stage: str,
    role: str,
    rows: Sequence[Preference],
    settings: Optimisation,
    beta: float,
    held_out: Sequence[Preference] = (),
) -> None:
    """Train a role on preferences by DPO (Rafailov et al. 2023), with its own start as the reference.

    Args:
        run: The training; the role's weights are replaced in it.
        stage: A name of its own, e.g. "generator".
        role: Whose weights.
        rows: Preferences.
        settings: How to optimise.
        beta: Strength of the tie to the reference.
        held_out: Rows that pick the best step; without any the last step counts.

    Raises:
        UserError: There are no rows, or settings and model do not fit together.
        RunFailure: Memory ran out, or the loss is not a number.
    """
    _train(run, stage, role, "dpo", settings, lambda e: ([*map(e.dpo, rows)], [*map(e.dpo, held_out)]), beta)


def _train(
    run: TrainRun,
    stage: str,
    role: str,
    kind: str,
    settings: Optimisation,
    encode: Callable[[RowEncoder], tuple[list[Any], list[Any]]],
    beta: float | None = None,
) -> None:
    folder = run.folder / "stages" / stage
    weights = folder / "weights"
    if not (folder / REPORT_FILE).is_file():
        run.free_engine()  # two models would not fit into one memory
        rows, held_out = encode(run.encoder)
        if not rows:
            raise UserError(f"{run.label}: stage {stage} has nothing to train on")
        try:
            report = _optimise(run, stage, role, kind, settings, rows, held_out, folder, beta)
        except RuntimeError as error:
            from ragtrials.llm.devices import out_of_memory

            if not out_of_memory(error):
                raise
            raise RunFailure(
                f"stage {stage} ran out of memory with {settings.micro_batch} rows at once: "
                "lower micro_batch, or set gradient_checkpointing=true"
            ) from error
        write_atomically(folder / REPORT_FILE, json.dumps(plain(report), indent=1).encode())
        shutil.rmtree(folder / "steps", ignore_errors=True)
    report = parse(
        StageReport, json.loads((folder / REPORT_FILE).read_text("utf-8")), str(folder / REPORT_FILE)
    )
    run.finish_stage(role, weights, report)


def _optimise(
    run: TrainRun,
    stage: str,
    role: str,
    kind: str,
    settings: Optimisation,
    rows: list[Any],
    held_out: list[Any],
    folder: Path,
    beta: float | None,
) -> StageReport:
    """Train, save the weights under their name when they are whole, and say what was done."""
    from ragtrials.training import _trl, weights

    seed = derive_seed(run.seed, stage) % 2**32  # numpy takes no more
    model = weights.load_trainable(run.base, run.policies.get(role), settings, run.dtype, run.device, seed)
    parameters = weights.trainable_parameters(model)
    with progress(f"{run.label}: {stage} ({kind} on {len(rows)} rows)", settings.steps(len(rows))) as bar:

        def log(scalars: Any, step: int) -> None:
            run.log_step(stage, scalars, step)

        setup = _trl.Setup(settings, seed, run.device, run.dtype, folder / "steps", log, bar)
        if beta is None:
            trained = _trl.run_sft(model, run.tokenizer, rows, held_out, setup)
        else:
            trained = _trl.run_dpo(model, run.tokenizer, rows, held_out, setup, beta)
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    weights.save_weights(model, run.tokenizer, run.base, unfinished)
    shutil.rmtree(folder / "weights", ignore_errors=True)
    unfinished.rename(folder / "weights")
    del model
    weights.release(run.device)
    return StageReport(
        stage,
        role,
        kind,
        len(rows),
        len(held_out),
        tokens_of(rows) * settings.epochs,
        trained.steps,
        parameters,
        round(trained.seconds, 3),
        trained.loss,
        last_scalars(trained.history),
    )
