"""Runs methods on tasks: plans everything first, answers chunk by chunk, writes one record per run."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ragtrials.chunks import Chunk, read_chunk, write_chunk
from ragtrials.config import override, plain, suggestion
from ragtrials.data import Example
from ragtrials.driver import Driver
from ragtrials.environment import environment
from ragtrials.errors import RunFailure, UserError
from ragtrials.locking import exclusive
from ragtrials.method import Method
from ragtrials.progress import progress
from ragtrials.registry import METHODS
from ragtrials.resources import Resources
from ragtrials.results import RECORD_FILE, SCHEMA, RunRecord, read_record, write_record
from ragtrials.scoring import COST_COLUMNS, RETRIEVAL_COLUMNS, score_columns, score_row
from ragtrials.seeding import derive_seed
from ragtrials.signature import digest
from ragtrials.spec import RunSpec
from ragtrials.stats import bootstrap
from ragtrials.suite import Conditions, Request
from ragtrials.task import Task, sample


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things go: records (`results`), and chunks with all texts (`runs`)."""

    results: Path
    runs: Path


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that is ready to start: names are resolved, data are read, its id is known."""

    request: Request
    spec: RunSpec
    method: Method
    task: Task
    examples: Sequence[Example]

    @property
    def label(self) -> str:
        """What a person calls the run."""
        return f"{self.request.method} on {self.request.task}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one requested run ended.

    Attributes:
        request: What was asked for.
        status: "done", "already done" (its record was there), "left out", "failed" or "refused".
        message: Why, for the last three.
        record: The record, for the first two.
        folder: The record's folder.
    """

    request: Request
    status: Literal["done", "already done", "left out", "failed", "refused"]
    message: str = ""
    record: RunRecord | None = None
    folder: Path | None = None


def build_method(request: Request) -> Method:
    """The method with its profile and options applied.

    Raises:
        UserError: Method, profile or option does not exist, or a value does not fit.
    """
    kind = METHODS.load(request.method)
    profile = request.conditions.profile
    if profile not in kind.PROFILES:
        raise UserError(f"method {kind.name} has no profile {profile!r}{suggestion(profile, kind.PROFILES)}")
    return kind(override(kind.PROFILES[profile], request.options))


def make_plan(request: Request, resources: Resources) -> Plan | None:
    """Everything about a run that can be known before a model is loaded.

    Returns:
        None if the run is optional and its task's data are not on this machine.

    Raises:
        UserError: Something that the request names does not exist or cannot be read.
    """
    conditions = request.conditions
    method = build_method(request)
    task = resources.task(request.task)
    if request.optional and not task.available_offline():
        return None
    split = conditions.split or task.card.reported_split
    examples = resources.examples(task, split)
    chosen = sample(examples, conditions.limit)
    shots = resources.few_shot(task, method.shots, conditions.seed)
    method.prepare(shots)
    retriever = resources.describe_retriever(conditions, task) if method.retrieves else None
    total = len(examples)
    spec = RunSpec(
        method=method.name,
        config=plain(method.config),
        task=task.name,
        task_version=task.card.version,
        split=split,
        sample=f"all {total}" if len(chosen) == total else f"{len(chosen)} of {total}",
        examples=digest(list(chosen)),
        training=digest(shots) if shots else "",
        metrics=task.card.metrics,
        retriever=retriever,
        engine=resources.describe_engine(conditions),
        seed=conditions.seed,
        chunk=conditions.chunk,
    )
    return Plan(request, spec, method, task, chosen)


def run_all(
    requests: Sequence[Request],
    resources: Resources,
    folders: Folders,
    overwrite: bool = False,
    report: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run every request; one that fails does not stop the others.

    Everything is planned before anything runs, so a wrong request is found at once.

    Args:
        requests: What to run.
        resources: Keeps the model and indexes loaded between runs.
        folders: Where records and chunks go.
        overwrite: Do finished runs again.
        report: Called with each outcome as it is known.

    Raises:
        UserError: A request was wrong; nothing has run.
    """
    plans = [(request, make_plan(request, resources)) for request in requests]
    outcomes = []
    for request, plan in plans:
        outcome = (
            Outcome(request, "left out", f"no data of {request.task} on this machine (see its task page)")
            if plan is None
            else _attempt(plan, resources, folders, overwrite)
        )
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def _attempt(plan: Plan, resources: Resources, folders: Folders, overwrite: bool) -> Outcome:
    """Run one plan and turn the errors that a run can end with into its outcome."""
    folder = folders.results / plan.request.suite / plan.spec.folder
    try:
        if (folder / RECORD_FILE).exists() and not overwrite:
            return Outcome(
                plan.request, "already done", record=read_record(folder / RECORD_FILE), folder=folder
            )
        record = execute(
            plan, resources, folder, folders.runs / plan.request.suite / plan.spec.folder, overwrite
        )
        return Outcome(plan.request, "done", record=record, folder=folder)
    except UserError as error:
        return Outcome(plan.request, "refused", str(error))
    except (RunFailure, OSError, MemoryError, RuntimeError) as error:
        return Outcome(plan.request, "failed", f"{type(error).__name__}: {error}")


def execute(plan: Plan, resources: Resources, folder: Path, work: Path, overwrite: bool = False) -> RunRecord:
    """Answer what is missing of one run and write its record.

    Args:
        plan: The run.
        resources: Where the model and the retriever come from.
        folder: Where the record goes.
        work: Where finished chunks are kept; those that are there are not done again.
        overwrite: Throw finished chunks away first.

    Raises:
        UserError: Another process works on the same run, or a stored chunk is damaged.
        RunFailure: The method or the engine failed.
    """
    started = datetime.now(UTC)
    clock = time.perf_counter()
    with exclusive(work, plan.label):
        if overwrite:
            for old in work.glob("chunk-*.jsonl"):
                old.unlink()
        chunks, loading = _answer(plan, resources, work)
        scoring = time.perf_counter()
        traces = [trace for chunk in chunks for trace in chunk.traces]
        rows = [
            score_row(plan.task, example, trace, plan.method.retrieves)
            for example, trace in zip(plan.examples, traces, strict=True)
        ]
        times = {
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - clock, 3),
            "load_seconds": round(loading, 3),
            "answer_seconds": round(sum(chunk.header.seconds for chunk in chunks), 3),
            "engine_seconds": round(sum(chunk.header.engine_seconds for chunk in chunks), 3),
            "retriever_seconds": round(sum(chunk.header.retriever_seconds for chunk in chunks), 3),
            "scoring_seconds": round(time.perf_counter() - scoring, 3),
        }
        record = make_record(plan, rows, times)
        write_record(folder, record, rows)
    return record


def _answer(plan: Plan, resources: Resources, work: Path) -> tuple[list[Chunk], float]:
    """All chunks of a run, the stored ones read and the missing ones answered; and the loading time."""
    size = plan.spec.chunk
    batches = [plan.examples[start : start + size] for start in range(0, len(plan.examples), size)]
    chunks = [read_chunk(work, plan.spec.id, i, [e.id for e in batch]) for i, batch in enumerate(batches)]
    missing = [i for i, chunk in enumerate(chunks) if chunk is None]
    if not missing:
        return [chunk for chunk in chunks if chunk is not None], 0.0
    clock = time.perf_counter()
    conditions = plan.request.conditions
    engine = resources.engine(conditions)
    retriever = resources.retriever(conditions, plan.task) if plan.method.retrieves else None
    loading = time.perf_counter() - clock
    done = len(plan.examples) - sum(len(batches[i]) for i in missing)
    if done:
        print(f"{plan.label}: {done} of {len(plan.examples)} questions were answered before", file=sys.stderr)
    with progress(plan.label, len(plan.examples), done) as bar:
        for i in missing:
            driver = Driver(retriever, engine, plan.spec.seed)
            clock = time.perf_counter()
            traces = driver.run(plan.method.answer, [(e.id, e.question) for e in batches[i]])
            seconds = time.perf_counter() - clock
            chunks[i] = write_chunk(work, plan.spec.id, i, traces, seconds, driver.timing)
            bar.advance(len(batches[i]))
    return [chunk for chunk in chunks if chunk is not None], loading


def make_record(plan: Plan, rows: Sequence[Mapping[str, Any]], times: Mapping[str, Any]) -> RunRecord:
    """The record of a finished run from its rows."""
    spec, engine = plan.spec, plan.spec.engine
    n = len(rows)

    def mean(name: str) -> float | None:
        values = [row[name] for row in rows if row[name] is not None]
        return sum(values) / len(values) if values else None

    flags: dict[str, int] = {}
    for row in rows:
        for flag in filter(None, row["flags"].split(",")):
            flags[flag] = flags.get(flag, 0) + 1
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
        flags=dict(sorted(flags.items())),
        config=spec.config,
        signature=plain(spec),
        environment=environment(),
        command=command(plan.request),
        times=times,
    )


def command(request: Request) -> str:
    """The command line that makes the run again; a model folder stands by its last part alone."""
    given = replace(request.conditions, model=Path(request.conditions.model).name or request.conditions.model)
    if not Path(request.conditions.model).is_dir():
        given = request.conditions
    words = ["ragtrials", "run", "--method", request.method, "--task", request.task]
    for condition in fields(Conditions):
        value = getattr(given, condition.name)
        if value is not None and value != condition.default:
            words += [f"--{condition.name.replace('_', '-')}", str(value)]
    for option in request.options:
        words += ["-o", option]
    return shlex.join(words)
