"""From traces to one row per question: scores, retrieval quality, cost and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragtrials import metrics
from ragtrials.data import Example
from ragtrials.metrics.retrieval import answer_recall, gold_recall
from ragtrials.program import Completion, Trace
from ragtrials.task import Task

COMMON_SCORES = ("em", "f1", "acc")
"""What every task reports, first; its own values follow."""
COST_COLUMNS = ("retrieval_calls", "passages", "llm_calls", "prompt_tokens", "completion_tokens")
RETRIEVAL_COLUMNS = ("gold_recall", "answer_recall")


def score_row(task: Task, example: Example, trace: Trace, retrieves: bool) -> dict[str, Any]:
    """One row of predictions.parquet.

    Columns: id, prediction, the task's scores, gold_recall and answer_recall of all retrieved passages
    (null where the method never retrieves, no gold passage is known, or the answer is yes or no, which
    every passage "holds"), the counts of `COST_COLUMNS`, and flags joined by commas.
    """
    row: dict[str, Any] = {"id": example.id, "prediction": trace.answer}
    scores = task.score(trace.answer, example)
    row.update({name: scores[name] for name in COMMON_SCORES} | scores)
    passages = trace.retrieved
    row["gold_recall"] = (
        gold_recall([passage.id for passage in passages], example.supporting)
        if retrieves and example.supporting
        else None
    )
    row["answer_recall"] = (
        answer_recall([f"{passage.title}\n{passage.text}" for passage in passages], example.aliases)
        if retrieves and not metrics.closed(example.aliases)
        else None
    )
    cost = trace.cost
    row.update({name: getattr(cost, name) for name in COST_COLUMNS})
    row["flags"] = ",".join(_flags(example, trace))
    return row


def _flags(example: Example, trace: Trace) -> list[str]:
    replies = [step.result for step in trace.steps if isinstance(step.result, Completion)]
    flags = list(metrics.flags(trace.answer, example.aliases))
    if any(reply.dropped_tokens for reply in replies):
        flags.append("passages_shortened")
    if any(reply.finish == "length" for reply in replies):
        flags.append("length_limit")
    return flags


def score_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the task's scores: what stands between the prediction and the retrieval columns."""
    names = list(rows[0])
    return tuple(names[2 : names.index(RETRIEVAL_COLUMNS[0])])
