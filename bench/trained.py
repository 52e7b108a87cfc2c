"""Trains a method on a task, or finds the checkpoint that the same training left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragtrials.config import plain
from ragtrials.data import Example
from ragtrials.environment import environment
from ragtrials.errors import UserError
from ragtrials.locking import exclusive
from ragtrials.method import Method
from ragtrials.resources import Resources, as_asked
from ragtrials.seeding import derive_seed
from ragtrials.signature import digest
from ragtrials.spec import named_settings
from ragtrials.suite import Request
from ragtrials.task import Task
from ragtrials.training.checkpoint import (
    FORMAT,
    Checkpoint,
    Manifest,
    RoleWeights,
    is_checkpoint,
    read_checkpoint,
    weights_digest,
    write_manifest,
)
from ragtrials.training.scalars import ScalarLog
from ragtrials.training.spec import TrainSpec

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


TRAINING_ENGINE: Final = "hf"
"""Draws the rollouts of every training: PPO acts with the very model that it trains, and vLLM cannot. So one
checkpoint, of one `train_id`, is evaluated with either engine."""


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """A training that is ready to start: data are read, its id is known."""

    request: Request
    spec: TrainSpec
    method: Method
    task: Task
    examples: Sequence[Example]
    development: Sequence[Example]

    @property
    def label(self) -> str:
        """What a person calls the training."""
        return f"{self.request.method} on {self.request.task}"


def plan_training(request: Request, method: Method, task: Task, resources: Resources) -> TrainPlan:
    """Everything about a training that can be known before a model is loaded.

    Args:
        request: What somebody asked for.
        method: With its settings and few-shot examples.
        task: Where the training examples come from.
        resources: Where data, model and retriever come from.

    Raises:
        UserError: The task has nothing to train on, or something that the request names is not there.
    """
    conditions = request.conditions
    examples = _training_examples(method, task, conditions.seed)
    development = _development(method, task, conditions.seed)
    settings = {
        name: value
        for name, value in named_settings(method.config).items()
        if name not in method.evaluation_settings
    }
    spec = TrainSpec(
        method=method.name,
        config=settings | ({"shown": digest(list(method.shown))} if method.shown else {}),
        task=task.name,
        task_version=task.card.version,
        examples=digest(list(examples)),
        development=digest(list(development)) if development else "",
        metrics=task.card.metrics,
        reward=task.card.main_metric,
        retriever=resources.describe_retriever(conditions, task, training=True) if method.retrieves else None,
        engine=resources.describe_engine(replace(conditions, engine=TRAINING_ENGINE), method.tokens),
        seed=conditions.seed,
        chunk=conditions.chunk,
    )
    asked = as_asked(examples, task, conditions.corpus)
    return TrainPlan(request, spec, method, task, asked, as_asked(development, task, conditions.corpus))


def _training_examples(method: Method, task: Task, seed: int) -> list[Example]:
    """As many training examples as the setting `examples` says, in an order drawn by seed.

    Few-shot examples are left out: the model sees their answers.
    """
    if "train" not in task.card.splits:
        raise UserError(
            f"task {task.name} has no training part: train {method.name} on another task and evaluate it "
            f"here with `ragtrials eval {method.name} {task.name} --checkpoint DIR`"
        )
    shown = {example.id for example in method.shown}
    found = [example for example in task.examples("train") if example.id not in shown]
    if not found:
        raise UserError(f"task {task.name}: the training split is empty, so {method.name} cannot be trained")
    found.sort(key=lambda example: derive_seed(seed, "train", example.id))
    wanted: int | None = method.config.examples
    return found[:wanted]


def _development(method: Method, task: Task, seed: int) -> list[Example]:
    """As many examples as the setting `development` says, of the part that is carved from train."""
    wanted = int(getattr(method.config, "development", 0))
    if not wanted:
        return []
    parts = [split for split in task.card.splits if split not in ("train", task.card.reported_split)]
    if not parts:
        raise UserError(f"task {task.name} has no part to pick checkpoints with: set -o development=0")
    found = sorted(task.examples(parts[0]), key=lambda example: derive_seed(seed, "development", example.id))
    return found[:wanted]


def trained(plan: TrainPlan, resources: Resources, runs: Path, overwrite: bool = False) -> Checkpoint:
    """The checkpoint of a training: an earlier one of the same id, or a new one.

    Args:
        plan: The training.
        resources: Where the model and the retriever come from.
        runs: Folder of unfinished work; the checkpoint is `spec.folder` below it.
        overwrite: Train again from the start.

    Raises:
        UserError: Another process trains the same, or a stored part is damaged.
        RunFailure: The method, the engine or the trainer failed.
    """
    folder = runs / plan.spec.folder
    with exclusive(folder, f"the training of {plan.label}"):
        if overwrite:
            _clear(folder)
        if is_checkpoint(folder):
            print(f"{plan.label}: trained before, checkpoint {folder}", file=sys.stderr)
            return read_checkpoint(folder)
        with ScalarLog(folder) as log:
            run = _train_run(plan, resources, folder, log)
            plan.method.train(run)
        write_manifest(folder, _manifest(plan, run))
    return read_checkpoint(folder)


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != "lock":
            entry.unlink()


def _train_run(plan: TrainPlan, resources: Resources, folder: Path, log: ScalarLog) -> TrainRun:
    from ragtrials.llm.models import resolve_model
    from ragtrials.training.run import Surroundings, TrainRun

    # Whatever evaluates: with one engine for all trainings, both engines evaluate the same checkpoint.
    conditions = replace(plan.request.conditions, engine=TRAINING_ENGINE)
    engine = plan.spec.engine
    _hold_one_gpu(engine["device"])
    retriever = resources.retriever(conditions, plan.task, plan.examples) if plan.method.retrieves else None
    return TrainRun(
        plan.examples,
        plan.development,
        Surroundings(
            label=f"training {plan.label}",
            task=plan.spec.task,
            train_id=plan.spec.id,
            folder=folder,
            seed=conditions.seed,
            chunk=conditions.chunk,
            base=resolve_model(conditions.model, plan.method.tokens),
            dtype=engine["dtype"],
            device=engine["device"],
            batch_size=conditions.batch_size,
            max_prompt_tokens=conditions.max_prompt_tokens,
            retriever=retriever,
            load_engine=lambda policies: resources.engine(conditions, policies, plan.method.tokens),
            load_other=lambda model: resources.engine(replace(conditions, model=model)),
            describe_other=lambda model: resources.describe_engine(replace(conditions, model=model)),
            free_engine=resources.free_engine,
            scores=plan.task.score,
            main_metric=plan.task.card.main_metric,
            choices=plan.task.choices,
            log=log,
        ),
    )


def _hold_one_gpu(device: str) -> None:
    """transformers' trainer would spread one process over all GPUs that it sees, which trl refuses."""
    if device == "cuda":
        import torch

        if (seen := torch.cuda.device_count()) > 1:
            raise UserError(
                f"training sees {seen} GPUs and uses one: choose it with CUDA_VISIBLE_DEVICES, "
                "and leave --device at auto"
            )


def _manifest(plan: TrainPlan, run: TrainRun) -> Manifest:
    spec, engine = plan.spec, plan.spec.engine
    return Manifest(
        format=FORMAT,
        train_id=spec.id,
        method=spec.method,
        task=spec.task,
        seed=spec.seed,
        profile=plan.request.conditions.profile,
        config=plain(plan.method.config),
        model=engine["model"],
        model_digest=engine["digest"],
        roles={
            role: RoleWeights(str(weights.relative_to(run.folder)), weights_digest(weights))
            for role, weights in run.policies.items()
        },
        report=run.report(),
        signature=plain(spec),
        environment=environment(),
    )
