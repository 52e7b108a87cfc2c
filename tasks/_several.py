"""Scores of a prediction that gives several answers, one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragtrials import metrics

Slots = Sequence[Sequence[str]]
"""One alias list per answer."""

_BETWEEN_ANSWERS = re.compile(r"[;\n]")


def answers_in(prediction: str) -> list[str]:
    """The answers that a text gives, divided by ";" or line breaks; empty ones are none."""
    return [part.strip() for part in _BETWEEN_ANSWERS.split(prediction) if part.strip()]


def score_annotations(answers: Sequence[str], annotations: Sequence[Slots]) -> dict[str, float]:
    """Scores against what several people annotated; each is the best over the annotations.

    Args:
        answers: The predicted answers.
        annotations: The slots of each annotation.

    Returns:
        f1: AmbigQA's F1 of answers. em: 1 where f1 is 1. acc: the share of slots that the prediction
        contains an alias of.
    """
    f1 = metrics.score("ambigqa_v1", answers, annotations)["f1"]
    shares = [_share_found("; ".join(answers), slots) for slots in annotations]
    return {"f1": f1, "em": float(f1 == 1.0), "acc": max(shares, default=0.0)}


def _share_found(prediction: str, slots: Slots) -> float:
    found = [metrics.score("containment_v1", prediction, slot)["acc"] for slot in slots]
    return sum(found) / len(found) if found else 0.0
