"""From a request to a run that is ready to start: names resolved, data read, everything that counts named."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragtrials.config import override, parse, suggestion
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.registry import METHODS
from ragtrials.resources import Resources, as_asked
from ragtrials.signature import digest
from ragtrials.spec import RunSpec, named_settings
from ragtrials.suite import Request
from ragtrials.task import Task, sample
from ragtrials.trained import TrainPlan, plan_training
from ragtrials.training.checkpoint import Checkpoint, check_fits, read_checkpoint


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that is ready to start: names are resolved, data are read, its id is known.

    The examples name no gold passages where those of the task are not passages of what is searched.
    """

    request: Request
    spec: RunSpec
    method: Method
    task: Task
    examples: Sequence[Example]
    seconds: float
    """How long it took to read the data and name the run, without the model."""
    model_seconds: float
    """How long it took to find the model, its conversion or download included."""
    training: TrainPlan | None = None
    """What has to be trained first; none if nothing has to."""
    checkpoint: Checkpoint | None = None
    """What was named to be evaluated."""

    @property
    def label(self) -> str:
        """What a person calls the run."""
        return f"{self.request.method} on {self.request.task}"


def build_method(request: Request, checkpoint: Checkpoint | None = None) -> Method:
    """The method with the settings of its profile, or of a checkpoint, and with the options applied.

    Raises:
        UserError: Method, profile or option does not exist, or a value does not fit.
    """
    kind = METHODS.load(request.method)
    if checkpoint is not None and checkpoint.manifest.method == kind.name:
        where = f"checkpoint {checkpoint.folder}: config"
        return kind(override(parse(kind.Config, checkpoint.manifest.config, where), request.options))
    profile = request.conditions.profile
    if profile not in kind.PROFILES:
        raise UserError(f"method {kind.name} has no profile {profile!r}{suggestion(profile, kind.PROFILES)}")
    return kind(override(kind.PROFILES[profile], request.options))


def named_checkpoint(request: Request) -> Checkpoint | None:
    """The checkpoint that a request names, if any.

    Raises:
        UserError: It is incomplete or damaged.
    """
    return None if request.checkpoint is None else read_checkpoint(request.checkpoint)


def checked_policies(
    checkpoint: Checkpoint | None, method: Method, engine: Mapping[str, Any]
) -> Mapping[str, Path]:
    """The weights of each role in a checkpoint; nothing without one.

    Args:
        checkpoint: What was named.
        method: The method that it has to be of.
        engine: The signature of the engine, with the model that it has to start from.

    Raises:
        UserError: The checkpoint belongs to another method or model.
    """
    if checkpoint is None:
        return {}
    check_fits(checkpoint, method.name, method.roles, engine["model"], engine["digest"])
    return checkpoint.policies


def make_plan(request: Request, resources: Resources) -> Plan | None:
    """Everything about a run that can be known before a model is loaded.

    Returns:
        None if the run is optional and its task's data are not on this machine.

    Raises:
        UserError: Something that the request names does not exist or cannot be read.
    """
    clock = time.perf_counter()
    conditions = request.conditions
    checkpoint = named_checkpoint(request)
    method = build_method(request, checkpoint)
    task = resources.task(request.task)
    if request.optional and not task.available_offline():
        return None
    split = conditions.split or task.card.reported_split
    examples = resources.examples(task, split)
    chosen = sample(examples, conditions.limit)
    shots = resources.few_shot(task, method.shots, conditions.seed)
    method.prepare(shots)
    retriever = resources.describe_retriever(conditions, task) if method.retrieves else None
    resolving = time.perf_counter()
    engine = resources.describe_engine(conditions, method.tokens)
    model_seconds = time.perf_counter() - resolving
    checked_policies(checkpoint, method, engine)
    training = (
        plan_training(request, method, task, resources)
        if method.trains and request.train and checkpoint is None
        else None
    )
    asked = as_asked(chosen, task, conditions.corpus)
    total = len(examples)
    spec = RunSpec(
        method=method.name,
        config=named_settings(method.config),
        task=task.name,
        task_version=task.card.version,
        split=split,
        sample=f"all {total}" if len(chosen) == total else f"{len(chosen)} of {total}",
        examples=digest(list(chosen)),
        training=digest(shots) if shots else "",
        metrics=task.card.metrics,
        retriever=retriever,
        engine=engine,
        seed=conditions.seed,
        chunk=conditions.chunk,
        train_id=training.spec.id if training else checkpoint.manifest.train_id if checkpoint else None,
    )
    seconds = time.perf_counter() - clock - model_seconds
    return Plan(request, spec, method, task, asked, seconds, model_seconds, training, checkpoint)
