"""Runs methods on tasks: plans everything first, answers chunk by chunk, writes one record per run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ragtrials.chunks import Chunk, read_chunk, write_chunk
from ragtrials.driver import Driver
from ragtrials.errors import RunFailure, UserError
from ragtrials.locking import exclusive
from ragtrials.planning import Plan, make_plan
from ragtrials.progress import progress
from ragtrials.recording import make_record
from ragtrials.resources import Resources
from ragtrials.results import RECORD_FILE, RunRecord, read_record, write_record
from ragtrials.scoring import score_row
from ragtrials.suite import Request
from ragtrials.trained import trained


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things go: records (`results`), and chunks with all texts (`runs`)."""

    results: Path
    runs: Path


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
            Outcome(
                request,
                "left out",
                "its data are not on this machine (name their folder with --data-dir or RAGTRIALS_DATA)",
            )
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
        record = execute(plan, resources, folders, overwrite)
        return Outcome(plan.request, "done", record=record, folder=folder)
    except UserError as error:
        return Outcome(plan.request, "refused", str(error))
    except (RunFailure, OSError, MemoryError, RuntimeError) as error:
        return Outcome(plan.request, "failed", f"{type(error).__name__}: {error}")


def execute(plan: Plan, resources: Resources, folders: Folders, overwrite: bool = False) -> RunRecord:
    """Train if need be, answer what is missing of one run, and write its record.

    Args:
        plan: The run.
        resources: Where the model and the retriever come from.
        folders: Where the record goes, and where checkpoints and finished chunks are kept; those that are
            there are not done again.
        overwrite: Throw finished chunks away first. A finished checkpoint stays: `ragtrials train` can
            make it again.

    Raises:
        UserError: Another process works on the same run, or a stored chunk is damaged.
        RunFailure: The method or the engine failed.
    """
    started = datetime.now(UTC)
    checkpoint = plan.checkpoint
    if plan.training is not None:
        checkpoint = trained(plan.training, resources, folders.runs)
    clock = time.perf_counter()
    work = folders.runs / plan.request.suite / plan.spec.folder
    with exclusive(work, plan.label):
        if overwrite:
            for old in work.glob("chunk-*.jsonl"):
                old.unlink()
        policies = {} if checkpoint is None else checkpoint.policies
        chunks, loading, earlier = _answer(plan, resources, work, policies)
        scoring = time.perf_counter()
        traces = [trace for chunk in chunks for trace in chunk.traces]
        rows = [
            score_row(plan.task, example, trace, plan.method.retrieves)
            for example, trace in zip(plan.examples, traces, strict=True)
        ]
        now = time.perf_counter()
        times = {
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(plan.seconds + plan.model_seconds + earlier + now - clock, 3),
            "planning_seconds": round(plan.seconds, 3),
            "load_seconds": round(plan.model_seconds + loading, 3),
            "answer_seconds": round(sum(chunk.header.seconds for chunk in chunks), 3),
            "engine_seconds": round(sum(chunk.header.engine_seconds for chunk in chunks), 3),
            "retriever_seconds": round(sum(chunk.header.retriever_seconds for chunk in chunks), 3),
            "scoring_seconds": round(now - scoring, 3),
        }
        record = make_record(plan, rows, times, checkpoint)
        write_record(folders.results / plan.request.suite / plan.spec.folder, record, rows)
    return record


def _answer(
    plan: Plan, resources: Resources, work: Path, policies: Mapping[str, Path]
) -> tuple[list[Chunk], float, float]:
    """Answer the chunks that are not stored yet, with trained weights by role.

    Returns:
        All chunks; the seconds that loading took now; the seconds that the stored chunks had taken.
    """
    size = plan.spec.chunk
    batches = [plan.examples[start : start + size] for start in range(0, len(plan.examples), size)]
    chunks = [read_chunk(work, plan.spec.id, i, [e.id for e in batch]) for i, batch in enumerate(batches)]
    missing = [i for i, chunk in enumerate(chunks) if chunk is None]
    stored = [chunk for chunk in chunks if chunk is not None]
    earlier = sum(chunk.header.seconds for chunk in stored)
    if not missing:
        return stored, 0.0, earlier
    clock = time.perf_counter()
    conditions = plan.request.conditions
    engine = resources.engine(conditions, policies, plan.method.tokens)
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
    return [chunk for chunk in chunks if chunk is not None], loading, earlier
