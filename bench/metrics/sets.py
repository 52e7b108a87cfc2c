"""Metrics of questions that have several answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragtrials.metrics.inputs import annotations_of, answer_list, slots_of, text_of
from ragtrials.metrics.qa import contained
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


def asqa_str_em(prediction: Any, gold: Any) -> dict[str, float]:
    """ASQA's and ALCE's string exact match: the share of slots of which a short answer occurs in the text.

    `str_em_hit` is 1 if every slot is found. As in the scripts, a short answer with an empty normal form is
    found in any text. Citation marks must be gone from the prediction, as ALCE removes them before.

    Args:
        prediction: The long answer.
        gold: A list of slots (question-answer pairs), each a list of short answers.
    """
    return _str_em(prediction, gold, guarded=False)


def asqa_str_em_guarded(prediction: Any, gold: Any) -> dict[str, float]:
    """`asqa_str_em`, but a short answer with an empty normal form ("The", "...") is never found."""
    return _str_em(prediction, gold, guarded=True)


def _str_em(prediction: Any, gold: Any, *, guarded: bool) -> dict[str, float]:
    text = normalise(text_of(prediction))
    found = [contained(text, slot, guarded=guarded) for slot in slots_of(gold)]
    if not found:
        return {"str_em": 0.0, "str_em_hit": 0.0}
    return {"str_em": sum(found) / len(found), "str_em_hit": float(all(found))}
