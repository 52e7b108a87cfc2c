"""Our metrics as modules of Hugging Face `evaluate`, without a network."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from ragtrials.errors import UserError
from ragtrials.metrics.registry import Metric, get_metric

_INPUTS = """
Args:
    predictions: One per question, nested as `ragtrials.metrics.score` wants the prediction.
    references: The gold of each question, nested as `ragtrials.metrics.score` wants it.
"""


def as_evaluate(name: str) -> Any:
    """The metric as an `evaluate.Metric`; `compute` returns the means of its values, fractions of 1.

    It works offline, keeps what it collects in memory, and combines with `evaluate.combine`.

    Raises:
        UserError: The metric is unknown, or `evaluate` is not installed.
    """
    metric = get_metric(name)
    try:
        import datasets
        import evaluate
    except ImportError as error:
        raise UserError(f"as_evaluate({name!r}) needs `pip install evaluate`") from error

    class Module(evaluate.Metric):  # type: ignore[misc]
        def _info(self) -> Any:
            return evaluate.MetricInfo(
                description=f"{metric.name}: {metric.source}",
                citation="",
                inputs_description=_INPUTS,
                features=[datasets.Features(option) for option in _feature_options(metric)],
            )

        def _compute(self, predictions: list[Any], references: list[Any]) -> dict[str, float]:
            pairs = zip(predictions, references, strict=True)
            scores = [metric.compute(prediction, reference) for prediction, reference in pairs]
            return {value: fmean(each[value] for each in scores) for value in metric.values}

    Module.__name__ = name  # `evaluate` names a module after its class
    return Module(keep_in_memory=True)


def _feature_options(metric: Metric) -> list[dict[str, Any]]:
    """The shapes that `evaluate` tells apart: the full one, and one string for a list of one alias."""
    from datasets import Value

    if metric.name == "strategyqa_acc":
        return [{"predictions": _nested(0), "references": gold} for gold in (Value("bool"), _nested(0))]
    options = [(metric.prediction_depth, metric.gold_depth)]
    if metric.gold_depth == 1:
        options.append((metric.prediction_depth, 0))
    return [{"predictions": _nested(p), "references": _nested(g)} for p, g in options]


def _nested(depth: int) -> Any:
    from datasets import Sequence, Value

    return Sequence(_nested(depth - 1)) if depth else Value("string")
