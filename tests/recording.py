"""Makes run records by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragtrials.results import SCHEMA, RunRecord, write_record
from ragtrials.spec import RunSpec
from ragtrials.stats import Estimate


def spec(method: str, task: str = "geo_hop", retriever: str | None = "bm25", **changes: Any) -> RunSpec:
    made = RunSpec(
        method=method,
        config={"k": 5},
        task=task,
        task_version="1",
        split="test",
        sample="4 of 9",
        examples="e" * 10,
        training="",
        metrics=("squad_v1", "containment_v1"),
        retriever=None if retriever is None else {"name": retriever, "corpus": "geo", "corpus_digest": "c"},
        engine={"model": "tiny", "digest": "d" * 64},
        seed=0,
        chunk=10,
    )
    return replace(made, **changes)


def save(
    results: Path,
    method: str,
    f1: Sequence[float],
    task: str = "geo_hop",
    retriever: str | None = "bm25",
    suite: str = "s",
    command: str = "ragtrials run",
    cost: Mapping[str, float] | None = None,
    **changes: Any,
) -> Path:
    """Write one record whose F1 values are these; returns its folder.

    `cost` changes what its answers cost, and `changes` its specification.
    """
    made = spec(method, task, retriever, **changes)
    rows: list[Mapping[str, Any]] = [
        {"id": f"q{i}", "prediction": "x", "em": float(v == 1), "f1": v, "acc": v, "flags": ""}
        for i, v in enumerate(f1)
    ]
    mean = sum(f1) / len(f1)
    score = Estimate(mean, max(0.0, mean - 0.1), min(1.0, mean + 0.1))
    record = RunRecord(
        schema=SCHEMA,
        id=made.id,
        suite=suite,
        method=method,
        profile="laptop",
        task=task,
        split=made.split,
        seed=made.seed,
        sample=made.sample,
        n=len(f1),
        model=made.engine["model"],
        model_digest=made.engine["digest"],
        retriever=retriever or "none",
        corpus="none" if retriever is None else "geo",
        metrics=made.metrics,
        main_metric="f1",
        scores={"em": score, "f1": score, "acc": score},
        retrieval={} if retriever is None else {"gold_recall": 0.5, "answer_recall": 0.25},
        cost={
            "retrieval_calls": 0.0 if retriever is None else 1.0,
            "passages": 0.0 if retriever is None else 5.0,
            "llm_calls": 1.0,
            "prompt_tokens": 100.0,
            "completion_tokens": 3.0,
            **(cost or {}),
        },
        flags={},
        config=made.config,
        signature=made.signature,
        environment={"python": "3.11"},
        command=command,
        times={"seconds": 1.0},
    )
    folder = results / suite / made.folder
    write_record(folder, record, rows)
    return folder
