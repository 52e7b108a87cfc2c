"""Runs trl's trainers on rows of token ids, so that a kill costs at most `save_steps` steps."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

from datasets import Dataset
from datasets.utils.logging import disable_progress_bar
from peft.utils import AuxiliaryTrainingWrapper
from torch.nn.functional import cross_entropy
from transformers import PrinterCallback, ProgressCallback, TrainerCallback
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from ragtrials.chunks import write_atomically
from ragtrials.errors import RunFailure
from ragtrials.llm.quiet import quiet_transformers
from ragtrials.progress import Progress
from ragtrials.training.settings import Optimisation

COMPLETE = "complete.json"
"""Written into a saved step when all its files are there; steps without it are not gone on from."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What both trainers need.

    Attributes:
        settings: How to optimise.
        seed: Decides the order of rows and dropout.
        device: "cpu", "cuda", ...
        dtype: "bfloat16" computes in it on a GPU (mixed precision).
        folder: Where saved steps go.
        log: Called with scalars and the step they belong to.
        progress: Counts optimiser steps.
    """

    settings: Optimisation
    seed: int
    device: str
    dtype: str
    folder: Path
    log: Callable[[Mapping[str, float], int], None]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Trained:
    """How a trainer ended.

    Attributes:
        steps: Optimiser steps.
        seconds: Time in the trainer, that of earlier, killed processes up to their last saving included.
        loss: Mean training loss over all steps.
        history: The scalars of all steps, those of earlier processes included.
    """

    steps: int
    seconds: float
    loss: float
    history: Sequence[Mapping[str, float]]


def run_sft(
    model: Any, tokenizer: Any, rows: Sequence[Any], held_out: Sequence[Any], setup: Setup
) -> Trained:
    """Supervised fine-tuning with trl's `SFTTrainer` on `input_ids` and `labels`.

    trl computes the logits in chunks, of labelled positions alone, so they never stand in memory whole.
    """

    def trainer() -> SFTTrainer:
        config = SFTConfig(**_arguments(setup, len(rows), held_out), max_length=None, packing=False)
        data = _data(rows, held_out, setup)
        kind = _OutputEmbeddingsSFTTrainer if _trains_output_embeddings(model) else SFTTrainer
        return kind(model=model, args=config, processing_class=tokenizer, **data)

    return _run(trainer, setup)


def _trains_output_embeddings(model: Any) -> bool:
    """Whether an adapter changes rows of the output layer: those of added control tokens."""
    return isinstance(model.get_output_embeddings(), AuxiliaryTrainingWrapper)


class _OutputEmbeddingsSFTTrainer(SFTTrainer):  # type: ignore[misc]
    """An `SFTTrainer` that calls the output layer: trl multiplies by its weights, past an adapter's part."""

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The mean over labelled tokens, and their accuracy.

        The model itself is called, so that whatever it does with its logits is done here, too. They stand in
        memory for the columns of the batch that hold a label.
        """
        labels = inputs["labels"][:, 1:]
        columns = (labels != -100).any(dim=0).nonzero().flatten()
        reads = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        logits = model(**reads, use_cache=False, logits_to_keep=columns).logits
        kept = labels[:, columns]
        learnt = kept != -100
        said, right = logits[learnt].float(), kept[learnt]
        total = cross_entropy(said, right, reduction="sum")
        loss = total / (len(right) if num_items_in_batch is None else num_items_in_batch)
        accuracy = (said.argmax(dim=-1) == right).float().mean().item()
        self._metrics["train" if self.model.training else "eval"]["mean_token_accuracy"].append(accuracy)
        return (loss, {"loss": loss}) if return_outputs else loss


class _EncodedDPOTrainer(DPOTrainer):  # type: ignore[misc]
    """A `DPOTrainer` for rows that are token ids already: trl would render and tokenise them again."""

    def _prepare_dataset(self, dataset: Dataset, *_: Any, **__: Any) -> Dataset:
        return dataset


def run_dpo(
    model: Any, tokenizer: Any, rows: Sequence[Any], held_out: Sequence[Any], setup: Setup, beta: float
) -> Trained:
    """DPO with trl's `DPOTrainer` on `prompt_ids`, `chosen_ids` and `rejected_ids`.

    The reference is the model as it comes in: for an adapter a frozen copy of it (the base model where it
    is new), for all weights their log-probabilities, computed before the first step.
    """

    def trainer() -> DPOTrainer:
        full = setup.settings.tuning == "full"
        config = DPOConfig(
            **_arguments(setup, len(rows), held_out),
            beta=beta,
            max_length=None,
            precompute_ref_log_probs=full,
        )
        data = _data(rows, held_out, setup)
        return _EncodedDPOTrainer(model=model, args=config, processing_class=tokenizer, **data)

    return _run(trainer, setup)


def _data(rows: Sequence[Any], held_out: Sequence[Any], setup: Setup) -> dict[str, Any]:
    return {
        "train_dataset": Dataset.from_list(list(rows)),
        "eval_dataset": Dataset.from_list(list(held_out)) if held_out else None,
        "callbacks": [_Reporter(setup)],
    }


def _arguments(setup: Setup, rows: int, held_out: Sequence[Any]) -> dict[str, Any]:
    """What transformers' trainer is told; every default that could change a number is named."""
    settings = setup.settings
    # A short training, too, has a step at which the held-out rows can pick.
    every = min(settings.save_steps, settings.steps(rows))
    mixed = setup.dtype == "bfloat16" and setup.device.startswith("cuda")
    return {
        "output_dir": str(setup.folder),
        "per_device_train_batch_size": settings.micro_batch,
        "per_device_eval_batch_size": settings.micro_batch,
        "gradient_accumulation_steps": settings.batch_size // settings.micro_batch,
        "num_train_epochs": settings.epochs,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.schedule,
        "warmup_steps": settings.warmup,  # below 1 it is a share of all steps
        "weight_decay": settings.weight_decay,
        "max_grad_norm": settings.clip,
        "optim": "adamw_torch",
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "bf16": mixed,
        "fp16": False,
        "use_cpu": setup.device == "cpu",
        "seed": setup.seed,
        "data_seed": setup.seed,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,  # a NaN must be seen, not replaced by the last good value
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": setup.device.startswith("cuda"),
        "save_strategy": "steps",
        "save_steps": every,
        "save_total_limit": 2,  # the older one is whole while the newer is being written
        "eval_strategy": "steps" if held_out else "no",
        "eval_steps": every if held_out else None,
        # The step with the lowest loss on held-out rows is what counts (RAG-DDR picks its checkpoints so).
        "load_best_model_at_end": bool(held_out),
        "metric_for_best_model": "eval_loss" if held_out else None,
    }


class _Reporter(TrainerCallback):  # type: ignore[misc]
    """Hands scalars and progress on, and marks saved steps that are complete."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.before = 0.0
        self.started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time spent so far, earlier processes included."""
        return self.before + time.perf_counter() - self.started

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        scalars = {
            name: float(value) for name, value in (logs or {}).items() if isinstance(value, int | float)
        }
        if "train_runtime" not in scalars:  # the summary at the end is in the record
            self.setup.log(scalars, state.global_step)
        # At once: what follows would be hours for nothing, and saved steps that no later run can mend.
        if broken := [name for name in ("loss", "grad_norm") if not isfinite(scalars.get(name, 0.0))]:
            raise RunFailure(
                f"the training {broken[0]} is not a number at step {state.global_step}: lower learning_rate"
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.setup.progress.advance(1)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        marker = {"step": state.global_step, "seconds": self.seconds}
        write_atomically(
            self.setup.folder / f"checkpoint-{state.global_step}" / COMPLETE, json.dumps(marker).encode()
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps the libraries' bars, tables and advice out of the user's terminal; ours tell the progress."""
    disable_progress_bar()
    with quiet_transformers(), warnings.catch_warnings(), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        yield


def _run(make: Callable[[], Any], setup: Setup) -> Trained:
    """Train to the end, from the last complete saving if there is one."""
    with _quiet():
        trainer = make()
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    reporter = next(c for c in trainer.callback_handler.callbacks if isinstance(c, _Reporter))
    saved = last_complete(setup.folder)
    if saved is not None:
        marker = json.loads((saved / COMPLETE).read_text("ascii"))
        reporter.before = float(marker["seconds"])
        setup.progress.advance(int(marker["step"]))
    with quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.train(resume_from_checkpoint=None if saved is None else str(saved))
    history = trainer.state.log_history
    losses = [entry["loss"] for entry in history if "loss" in entry]
    return Trained(int(trainer.state.global_step), reporter.seconds, sum(losses) / len(losses), history)


def last_complete(folder: Path) -> Path | None:
    """The latest saved step that is whole. Others are removed: a kill may have cut them short."""
    complete: list[tuple[int, Path]] = []
    for saved in folder.glob("checkpoint-*"):
        if (saved / COMPLETE).is_file():
            complete.append((int(saved.name.rpartition("-")[2]), saved))
        else:
            shutil.rmtree(saved)
    return max(complete)[1] if complete else None
