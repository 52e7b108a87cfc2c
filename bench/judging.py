"""Official metrics for a file of predictions, and what does not fit between the two."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
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

MANY = 20_000
"""From so many questions on, resampling would take longer than scoring."""

_BEFORE, _BEHIND = ("id", "prediction"), ("type", "flags")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The scores of a file of predictions. A million of them are held in columns, not in rows.

    Attributes:
        columns: Values of all questions of the split, in its order: id, prediction (several answers joined
            by "; ", None if there is none), the scores, type (the kind of question, where the dataset says
            it) and flags joined by commas. Without a prediction all scores are 0, as in the official scripts.
        read: How many predictions the file has, repeated ids once.
        extra: Ids, or questions, of predictions that no question of the split asks for.
        repeated: Ids that came more than once; the last prediction counted.
        parts: For each part of the dataset's own format that the file has, how many questions lack it.
        remarks: What the task says of its questions.
    """

    columns: Mapping[str, Sequence[Any]]
    read: int
    extra: Sequence[str]
    repeated: Sequence[str]
    parts: Mapping[str, int]
    remarks: Sequence[str]

    def __len__(self) -> int:
        """The number of questions."""
        return len(self.columns["id"])

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of the scores."""
        return tuple(name for name in self.columns if name not in _BEFORE + _BEHIND)

    @property
    def flags(self) -> dict[str, int]:
        """How many questions have each flag."""
        return metrics.count_flags(self.columns["flags"])

    def groups(self) -> dict[str, Sequence[int]]:
        """The questions to average, by place: "all", "answered" if some are not, each type of question."""
        found: dict[str, Sequence[int]] = {"all": range(len(self))}
        answered = [place for place, text in enumerate(self.columns["prediction"]) if text is not None]
        if len(answered) < len(self):
            found["answered"] = answered
        by_type: dict[str, list[int]] = {}
        for place, kind in enumerate(self.columns["type"]):
            if kind:
                by_type.setdefault(kind, []).append(place)
        if len(by_type) > 1:
            found |= {f"type {kind}": by_type[kind] for kind in sorted(by_type)}
        return found

    def means(self, places: Sequence[int]) -> dict[str, float]:
        """The mean of every score over some of the questions, fractions of 1."""
        columns = {name: self.columns[name] for name in self.score_names}
        return {name: sum(values[p] for p in places) / len(places) for name, values in columns.items()}

    def estimate(self, name: str) -> Estimate:
        """Mean and 95 % interval of one score over all questions.

        It is the bootstrap's, as in a run's record; from `MANY` questions on, where the two agree to about
        0.01 %, it is mean ± 1.96 standard errors.
        """
        values = self.columns[name]
        if len(values) < MANY:
            return bootstrap(values, derive_seed(0, "judge", name))
        mean, half = fmean(values), 1.96 * stdev(values) / len(values) ** 0.5
        return Estimate(mean, mean - half, mean + half)


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
    parts = predictions.parts.values()
    if not given and not any(example.id in by_id for by_id in parts for example in examples):
        raise UserError(
            f"{predictions.path}: no prediction belongs to the {len(examples)} questions of {task.name} "
            f"{split}: the file has {extra[0][:60]!r}, the split {examples[0].id!r}; check task and split"
        )
    scores: dict[str, array[float]] = {}
    for place, example in enumerate(examples):
        found = _scores(task, example, given, predictions)
        for name in found:
            if name not in scores:
                scores[name] = array("d", bytes(8 * place))  # 0 for all before
        for name, values in scores.items():
            values.append(found.get(name, 0.0))
    texts = [_text(given[example.id]) if example.id in given else None for example in examples]
    return Judgement(
        columns={
            "id": [example.id for example in examples],
            "prediction": texts,
            **scores,
            "type": [_type(example) for example in examples],
            "flags": [_flags(example, text) for example, text in zip(examples, texts, strict=True)],
        },
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
    by_id = predictions.by_id
    given = {example.id: by_id[example.id] for example in examples if example.id in by_id}
    extra = [key for key in by_id if key not in given]
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


def _type(example: Example) -> str:
    kind = example.meta.get("type", "")
    return kind if isinstance(kind, str) else ""


def _flags(example: Example, text: str | None) -> str:
    flags = metrics.flags(text, example.aliases)
    if text is None:
        flags = (MISSING, *(flag for flag in flags if flag != "empty_pred"))
    return ",".join(flags)


def _text(prediction: Prediction) -> str:
    return "; ".join(prediction) if isinstance(prediction, tuple) else prediction or ""


def _squeezed(question: str) -> str:
    return " ".join(question.split())
