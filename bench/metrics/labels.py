"""Metrics of closed questions: the prediction is read as a label, and what cannot be read is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragtrials.errors import UserError
from ragtrials.metrics.inputs import aliases_of, text_of
from ragtrials.metrics.text import normalise

_TRUTH = {"yes": True, "true": True, "no": False, "false": False}

_FEVER_PHRASES: Mapping[str, str] = {
    **dict.fromkeys(("not enough info", "not enough information", "nei"), "NOT ENOUGH INFO"),
    **dict.fromkeys(("supports", "supported", "true", "yes"), "SUPPORTS"),
    **dict.fromkeys(("refutes", "refuted", "false", "no"), "REFUTES"),
}


def strategyqa(prediction: Any, gold: Any) -> dict[str, float]:
    """acc: the first word of the prediction that is yes, no, true or false agrees with the gold.

    There is no official reading of free text; a prediction without such a word is wrong.

    Args:
        prediction: The predicted text.
        gold: The published truth value, or "yes", "no", "true" or "false".
    """
    wanted = gold if isinstance(gold, bool) else _truth_of(_single(gold))
    if wanted is None:
        raise UserError(f"the gold of strategyqa_acc must be true or false, not {gold!r}")
    return {"acc": float(_truth_of(text_of(prediction)) == wanted)}


def fever(prediction: Any, gold: Any) -> dict[str, float]:
    """acc: the label that the prediction begins with is the gold one.

    "supported", "true" and "yes" are read as SUPPORTS, "refuted", "false" and "no" as REFUTES, "nei" as NOT
    ENOUGH INFO. Evidence is not judged. A prediction that begins with none of these is wrong.
    """
    wanted = _fever_label(_single(gold))
    if wanted is None:
        raise UserError(f"the gold of fever_acc must be SUPPORTS, REFUTES or NOT ENOUGH INFO, not {gold!r}")
    return {"acc": float(_fever_label(text_of(prediction)) == wanted)}


def _single(gold: Any) -> str:
    labels = aliases_of(gold)
    return labels[0] if len(labels) == 1 else ""


def _truth_of(text: str) -> bool | None:
    return next((_TRUTH[word] for word in normalise(text).split() if word in _TRUTH), None)


def _fever_label(text: str) -> str | None:
    words = normalise(text.replace("_", " ")) + " "
    return next((label for phrase, label in _FEVER_PHRASES.items() if words.startswith(phrase + " ")), None)
