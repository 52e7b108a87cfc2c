"""`sft` and `dpo`: train weights on rows, once. A finished stage is not done again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

REPORT_FILE, WEIGHTS, STEPS = "stage.json", "weights", "steps"
"""What a stage's folder holds: its report when it is finished, its weights, and saved steps before."""


@dataclass(frozen=True, slots=True)
class _Done:
    """A finished stage: what it did, and the folder of each role's weights below its own."""

    report: StageReport
    weights: Mapping[str, str]


def sft(
    run: TrainRun,
    stage: str,
    roles: str | Sequence[str],
    rows: Sequence[Demonstration],
    settings: Optimisation,
    held_out: Sequence[Demonstration] = (),
) -> None:
    """Fine-tune on demonstrations: the loss is on the completion and the end of its turn alone.

    Args:
        run: The training; the roles' weights are replaced in it.
        stage: A name of its own, e.g. "sft".
        roles: Whose weights: those of one role, or of several that share them.
        rows: What the roles should say.
        settings: How to optimise.
        held_out: Rows that pick the best step; without any the last step counts.

    Raises:
        UserError: There are no rows, or settings and model do not fit together.
        RunFailure: Memory ran out, or the loss is not a number.
    """
    shared = [roles] if isinstance(roles, str) else list(roles)
    _train(run, stage, shared, "sft", settings, lambda e: ([*map(e.sft, rows)], [*map(e.sft, held_out)]))


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
    _train(
        run, stage, [role], "dpo", settings, lambda e: ([*map(e.dpo, rows)], [*map(e.dpo, held_out)]), beta
    )


def _train(
    run: TrainRun,
    stage: str,
    roles: Sequence[str],
    kind: str,
    settings: Optimisation,
    encode: Callable[[RowEncoder], tuple[list[Any], list[Any]]],
    beta: float | None = None,
) -> None:
    def train(folder: Path) -> tuple[StageReport, dict[str, Path]]:
        rows, held_out = encode(run.encoder)
        if not rows:
            raise UserError(f"{run.label}: stage {stage} has nothing to train on")
        report = _optimise(run, stage, roles, kind, settings, rows, held_out, folder, beta)
        return report, dict.fromkeys(roles, folder / WEIGHTS)

    once(run, stage, settings.micro_batch, train)


def once(
    run: TrainRun,
    stage: str,
    micro_batch: int,
    train: Callable[[Path], tuple[StageReport, Mapping[str, Path]]],
) -> None:
    """Do a stage, or find that it is done.

    Args:
        run: The training; it takes the stage's weights and report.
        stage: The stage's name.
        micro_batch: Rows that it reads at once, for the word when memory runs out.
        train: Trains in the stage's folder. It writes weights to `WEIGHTS` there, and what a later process
            needs to go on from to `STEPS`; it returns its report and the folder of each role's weights.

    Raises:
        RunFailure: Memory ran out.
    """
    folder = run.folder / "stages" / stage
    if not (folder / REPORT_FILE).is_file():
        run.free_engine()  # two models would not fit into one memory
        try:
            report, weights = train(folder)
        except RuntimeError as error:
            from ragtrials.llm.devices import out_of_memory

            if not out_of_memory(error):
                raise
            raise RunFailure(
                f"stage {stage} ran out of memory with {micro_batch} rows at once: "
                "lower micro_batch, or set gradient_checkpointing=true"
            ) from error
        done = _Done(report, {role: str(path.relative_to(folder)) for role, path in weights.items()})
        write_atomically(folder / REPORT_FILE, json.dumps(plain(done), indent=1).encode())
        shutil.rmtree(folder / STEPS, ignore_errors=True)
    done = parse(_Done, json.loads((folder / REPORT_FILE).read_text("utf-8")), str(folder / REPORT_FILE))
    run.finish_stage({role: folder / path for role, path in done.weights.items()}, done.report)


def _optimise(
    run: TrainRun,
    stage: str,
    roles: Sequence[str],
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
    start = run.start_of(roles)
    model = weights.load_trainable(run.base, start, settings, run.dtype, run.device, seed)
    parameters = weights.trainable_parameters(model)
    with progress(f"{run.label}: {stage} ({kind} on {len(rows)} rows)", settings.steps(len(rows))) as bar:

        def log(scalars: Any, step: int) -> None:
            run.log_step(stage, scalars, step)

        setup = _trl.Setup(settings, seed, run.device, run.dtype, folder / STEPS, log, bar)
        if beta is None:
            trained = _trl.run_sft(model, run.tokenizer, rows, held_out, setup)
        else:
            trained = _trl.run_dpo(model, run.tokenizer, rows, held_out, setup, beta)
    unfinished = folder / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    weights.save_weights(model, run.tokenizer, run.base, unfinished)
    shutil.rmtree(folder / WEIGHTS, ignore_errors=True)
    unfinished.rename(folder / WEIGHTS)
    del model
    weights.release(run.device)
    return StageReport(
        stage,
        "+".join(roles),
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
