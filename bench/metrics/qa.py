"""Metrics of one answer string against its aliases, equal to the official scripts item by item.

Where an official script has a single gold answer and the data have aliases, each value is the maximum over
the aliases, taken independently of the others: that is what the official multi-gold scripts do.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ragtrials.metrics.inputs import aliases_of, text_of
from ragtrials.metrics.text import normalise

_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})
_NOTHING = (0.0, 0.0, 0.0)


def token_overlap(prediction: list[str], gold: list[str]) -> tuple[float, float, float]:
    """(F1, precision, recall) of two token multisets; all 0 without a common token, so for two empty ones."""
    if not prediction or not gold:
        return _NOTHING
    if prediction == gold:
        return 1.0, 1.0, 1.0
    common = sum((Counter(prediction) & Counter(gold)).values())
    if common == 0:
        return _NOTHING
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall), precision, recall


def closed_answer_overlap(prediction: str, gold: str) -> tuple[float, float, float]:
    """`token_overlap` of two normal forms under HotpotQA's rule: part of a yes/no answer is no answer."""
    if prediction != gold and (prediction in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS):
        return _NOTHING
    return token_overlap(prediction.split(), gold.split())


def hotpotqa(prediction: Any, gold: Any) -> dict[str, float]:
    """`hotpot_evaluate_v1.py`: em, f1, precision, recall.

    EM of two empty normal forms is 1 while their F1 is 0, as in the script.
    """
    predicted = normalise(text_of(prediction))
    em = f1 = precision = recall = 0.0
    for alias in map(normalise, aliases_of(gold)):
        overlap = closed_answer_overlap(predicted, alias)
        em = max(em, float(predicted == alias))
        f1, precision, recall = max(f1, overlap[0]), max(precision, overlap[1]), max(recall, overlap[2])
    return {"em": em, "f1": f1, "precision": precision, "recall": recall}


def squad(prediction: Any, gold: Any) -> dict[str, float]:
    """SQuAD v1.1 `evaluate-v1.1.py`: em, f1, without a yes/no rule."""
    predicted = normalise(text_of(prediction))
    tokens = predicted.split()
    em = f1 = 0.0
    for alias in map(normalise, aliases_of(gold)):
        em = max(em, float(predicted == alias))
        f1 = max(f1, token_overlap(tokens, alias.split())[0])
    return {"em": em, "f1": f1}


def containment(prediction: Any, gold: Any) -> dict[str, float]:
    """acc: some alias's normal form is a substring of the prediction's.

    Known in the literature as accuracy, "match" or sub-EM. Unlike most code that counts it, an alias with an
    empty normal form is never found: otherwise the gold answers "The" and "A" would credit every prediction.
    """
    predicted = normalise(text_of(prediction))
    return {"acc": float(any(alias and alias in predicted for alias in map(normalise, aliases_of(gold))))}
