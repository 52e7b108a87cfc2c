"""The record of a finished run, from its plan and its rows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ragtrials.config import plain
from ragtrials.environment import environment
from ragtrials.metrics import count_flags
from ragtrials.planning import Plan
from ragtrials.results import SCHEMA, RunRecord
from ragtrials.scoring import COST_COLUMNS, RETRIEVAL_COLUMNS, score_columns
from ragtrials.seeding import derive_seed
from ragtrials.stats import bootstrap
from ragtrials.suite import Conditions, Request
from ragtrials.training.checkpoint import Checkpoint


def make_record(
    plan: Plan,
    rows: Sequence[Mapping[str, Any]],
    times: Mapping[str, Any],
    checkpoint: Checkpoint | None = None,
) -> RunRecord:
    """The record of a finished run from its rows, and from the checkpoint that was evaluated if any."""
    spec, engine = plan.spec, plan.spec.engine
    n = len(rows)

    def mean(name: str) -> float | None:
        values = [row[name] for row in rows if row[name] is not None]
        return sum(values) / len(values) if values else None

    return RunRecord(
        schema=SCHEMA,
        id=spec.id,
        suite=plan.request.suite,
        method=spec.method,
        profile=plan.request.conditions.profile,
        task=spec.task,
        split=spec.split,
        seed=spec.seed,
        sample=spec.sample,
        n=n,
        model=engine["model"],
        model_digest=engine.get("digest", "none"),
        retriever=spec.retriever["name"] if spec.retriever else "none",
        corpus=spec.retriever["corpus"] if spec.retriever else "none",
        metrics=spec.metrics,
        main_metric=plan.task.card.main_metric,
        scores={
            name: bootstrap([row[name] for row in rows], derive_seed(spec.id, name))
            for name in score_columns(rows)
        },
        retrieval={name: value for name in RETRIEVAL_COLUMNS if (value := mean(name)) is not None},
        cost={name: mean(name) or 0.0 for name in COST_COLUMNS},
        flags=count_flags(row["flags"] for row in rows),
        config=spec.config,
        signature=spec.signature,
        environment=environment(),
        command=command(plan.request),
        times=times,
        training=None if checkpoint is None else _training(checkpoint),
    )


def _training(checkpoint: Checkpoint) -> dict[str, Any]:
    """How a checkpoint came about, as JSON values."""
    manifest = checkpoint.manifest
    return {
        "train_id": manifest.train_id,
        "task": manifest.task,
        "seed": manifest.seed,
        "profile": manifest.profile,
        "weights": {role: weights.digest for role, weights in manifest.roles.items()},
        **plain(manifest.report),
    }


def command(request: Request) -> str:
    """The command line that makes the run again; files and a model folder stand by their last part alone."""
    given = request.conditions
    if Path(given.model).is_dir():
        given = replace(given, model=Path(given.model).name or given.model)
    if given.corpus is not None:
        given = replace(given, corpus=Path(given.corpus).name)
    task, colon, file = request.task.partition(":")
    name = f"{task}{colon}{Path(file).name}"
    words = ["ragtrials", "run", "--method", request.method, "--task", name]
    if request.checkpoint is not None or not request.train:
        words = ["ragtrials", "eval", request.method, name]
    if request.checkpoint is not None:
        words += ["--checkpoint", request.checkpoint.name]
    for condition in fields(Conditions):
        value = getattr(given, condition.name)
        if value is not None and value != condition.default:
            words += [f"--{condition.name.replace('_', '-')}", str(value)]
    for option in request.options:
        words += ["-o", option]
    return shlex.join(words)
