"""Metrics of questions that have several answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragtrials.metrics.inputs import annotations_of, answer_list
from ragtrials.metrics.text import normalise


def slot_f1(answers: Sequence[str], slots: Sequence[Sequence[str]]) -> float:
    """AmbigQA's `get_f1` of predicted answers against slots, all given as normal forms.

    Greedy in the order of the slots, then of the answers; each is used once, a repeated answer counts as
    another one. An optimal assignment may score higher: this is not one, on purpose.
    """
    free = list(answers)
    for slot in slots:
        match = next((i for i, answer in enumerate(free) if answer in slot), None)
        if match is not None:
            del free[match]
    matched = len(answers) - len(free)
    if matched == 0:
        return 0.0
    recall, precision = matched / len(slots), matched / len(answers)
    return 2 * recall * precision / (recall + precision)


def ambigqa(prediction: Any, gold: Any) -> dict[str, float]:
    """`ambigqa_evaluate_script.py`, F1 of answers: the best annotation counts.

    Args:
        prediction: A list of answers; none scores 0.
        gold: A list of annotations, each a list of slots, each a list of aliases. A single-answer annotation
            is one slot.
    """
    answers = [normalise(answer) for answer in answer_list(prediction)]
    annotations = [
        [[normalise(alias) for alias in slot] for slot in annotation] for annotation in annotations_of(gold)
    ]
    return {"f1": max((slot_f1(answers, slots) for slots in annotations), default=0.0)}
