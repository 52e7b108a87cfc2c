"""The metrics by name, and the one entry point."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ragtrials.errors import UserError
from ragtrials.metrics import qa, sets


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with a version in its name; what it computes never changes under that name.

    Attributes:
        name: How tasks and records refer to it.
        values: The names of its values, the main one first.
        compute: `compute(prediction, gold)` returns those values, fractions of 1.
        source: What it reproduces.
    """

    name: str
    values: tuple[str, ...]
    compute: Callable[[Any, Any], dict[str, float]]
    source: str


_ALL = (
    Metric("hotpotqa_v1", ("f1", "em", "precision", "recall"), qa.hotpotqa, "hotpot_evaluate_v1.py"),
    Metric("squad_v1", ("f1", "em"), qa.squad, "SQuAD evaluate-v1.1.py"),
    Metric("containment_v1", ("acc",), qa.containment, "normalised containment, degenerate golds guarded"),
    Metric("ambigqa_v1", ("f1",), sets.ambigqa, "ambigqa_evaluate_script.py, F1 of answers"),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in alphabetical order."""
    return tuple(sorted(METRICS))


def get_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        UserError: There is none; the message suggests the nearest.
    """
    if name in METRICS:
        return METRICS[name]
    near = difflib.get_close_matches(name, METRICS, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(metric_names())}"
    raise UserError(f"unknown metric {name!r}: {advice}")


def score(name: str, prediction: Any, gold: Any) -> dict[str, float]:
    """The values of metric `name` for one prediction, fractions of 1.

    Args:
        name: See `metric_names()`.
        prediction: The predicted text, None if there is none. For `ambigqa_v1`: a list of answers.
        gold: The list of aliases; one string is one alias. For `ambigqa_v1`: a list of annotations, each a
            list of slots, each a list of aliases.

    Raises:
        UserError: The metric is unknown, or prediction or gold have the wrong shape.
    """
    return get_metric(name).compute(prediction, gold)
