"""Official metrics for a file of predictions, and what does not fit between the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragtrials import metrics
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.predictions import Prediction, Predictions
from ragtrials.seeding import derive_seed
from ragtrials.stats import Estimate, bootstrap
from ragtrials.task import Task

MISSING = "missing"
"""The flag of a question without a prediction."""

_NOT_SCORES = ("id", "prediction", "type", "flags")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The scores of a file of predictions.

    Attributes:
        rows: One per question of the split, in its order: id, prediction (several answers joined by "; "),
            the scores, type (the kind of question, where the dataset says it) and flags joined by commas.
            Without a prediction all scores are 0, as in the official scripts.
        read: How many predictions the file has, repeated ids once.
        extra: Ids, or questions, of predictions that no question of the split asks for.
        repeated: Ids that came more than once; the last prediction counted.
        parts: For each part of the dataset's own format that the file has, how many questions lack it.
        remarks: What the task says of its questions.
    """

    rows: Sequence[Mapping[str, Any]]
    read: int
    extra: Sequence[str]
    repeated: Sequence[str]
    parts: Mapping[str, int]
    remarks: Sequence[str]

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores."""
        return tuple(name for name in self.rows[0] if name not in _NOT_SCORES)

    @property
    def flags(self) -> dict[str, int]:
        """How many questions have each flag."""
        found: dict[str, int] = {}
        for row in self.rows:
            for flag in filter(None, row["flags"].split(",")):
                found[flag] = found.get(flag, 0) + 1
        return dict(sorted(found.items()))

    def groups(self) -> dict[str, list[Mapping[str, Any]]]:
        """The rows to average: "all", "answered" if some are missing, and each type of question."""
        found = {"all": list(self.rows)}
        answered = [row for row in self.rows if MISSING not in row["flags"].split(",")]
        if len(answered) < len(self.rows):
            found["answered"] = answered
        kinds = sorted({row["type"] for row in self.rows} - {""})
        if len(kinds) > 1:
            found |= {f"type {kind}": [row for row in self.rows if row["type"] == kind] for kind in kinds}
        return found

    def means(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """The mean of every score over some of the rows, fractions of 1."""
        return {name: sum(row[name] for row in rows) / len(rows) for name in self.score_names}

    def estimate(self, name: str) -> Estimate:
        """Mean and 95 % bootstrap interval of one score over all questions."""
        return bootstrap([row[name] for row in self.rows], derive_seed(0, "judge", name))


def judge(task: Task, split: str, predictions: Predictions) -> Judgement:
    """Score predictions on a split of a task.

    Raises:
        UserError: The split does not exist, no prediction belongs to it, or a prediction is of a kind that
            the task does not score.
    """
    examples = task.examples(split)
    if unknown := sorted(predictions.parts.keys() - set(task.own_parts)):
        raise UserError(
            f"{predictions.path}: task {task.name} does not score the part {unknown[0]!r}"
            + (f", only {' and '.join(task.own_parts)}" if task.own_parts else "; give the answers alone")
        )
    given, extra = _joined(examples, predictions)
    with_parts = {key for by_id in predictions.parts.values() for key in by_id}
    if not given and not any(example.id in with_parts for example in examples):
        raise UserError(
            f"{predictions.path}: no prediction belongs to the {len(examples)} questions of {task.name} "
            f"{split}: the file has {extra[0][:60]!r}, the split {examples[0].id!r}; check task and split"
        )
    found = [_scores(task, example, given, predictions) for example in examples]
    wrong = {name: 0.0 for scores in found for name in scores}
    return Judgement(
        rows=[_row(*pair, given, wrong) for pair in zip(examples, found, strict=True)],
        read=len(given) + len(extra),
        extra=extra,
        repeated=predictions.repeated,
        parts={
            name: sum(example.id not in by_id for example in examples)
            for name, by_id in predictions.parts.items()
        },
        remarks=task.remarks(examples),
    )


def _joined(examples: Sequence[Example], predictions: Predictions) -> tuple[dict[str, Prediction], list[str]]:
    """The predictions by id of the question, and the ids or questions that nothing asks for.

    The first prediction for a question's text goes to the first example with that text, and so on.
    """
    ids = {example.id for example in examples}
    given = {key: value for key, value in predictions.by_id.items() if key in ids}
    extra = [key for key in predictions.by_id if key not in ids]
    waiting = {_squeezed(question): list(found) for question, found in predictions.by_question.items()}
    for example in examples:
        if example.id not in given and (queue := waiting.get(_squeezed(example.question))):
            given[example.id] = queue.pop(0)
    return given, extra + [question for question, queue in waiting.items() for _ in queue]


def _scores(
    task: Task, example: Example, given: Mapping[str, Prediction], predictions: Predictions
) -> dict[str, float]:
    """The scores of one question; {} if nothing at all is predicted for it."""
    scores: dict[str, float] = {}
    answer: str | None = None
    if example.id in given:
        try:
            answer, scores = _answer_scores(task, example, given[example.id])
        except UserError as error:
            raise UserError(f"{predictions.path}: id {example.id!r}: {error}") from error
    if predictions.parts:
        parts = {name: by_id.get(example.id) for name, by_id in predictions.parts.items()}
        if example.id in given or any(part is not None for part in parts.values()):
            scores |= task.score_parts(answer, parts, example)
    return scores


def _answer_scores(task: Task, example: Example, prediction: Prediction) -> tuple[str, dict[str, float]]:
    if isinstance(prediction, tuple) and (task.several_answers or len(prediction) > 1):
        return _text(prediction), task.score_several(prediction, example)
    answer = _text(prediction)
    return answer, task.score(answer, example)


def _row(
    example: Example, scores: Mapping[str, float], given: Mapping[str, Prediction], wrong: Mapping[str, float]
) -> dict[str, Any]:
    answer = _text(given.get(example.id))
    flags = metrics.flags(answer, example.aliases)
    if example.id not in given:
        flags = (MISSING, *(flag for flag in flags if flag != "empty_pred"))
    kind = example.meta.get("type", "")
    return {
        "id": example.id,
        "prediction": answer if example.id in given else None,
        **wrong,
        **scores,
        "type": kind if isinstance(kind, str) else "",
        "flags": ",".join(flags),
    }


def _text(prediction: Prediction) -> str:
    return prediction or "" if not isinstance(prediction, tuple) else "; ".join(prediction)


def _squeezed(question: str) -> str:
    return " ".join(question.split())
