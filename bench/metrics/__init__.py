"""Named, versioned answer and retrieval metrics.

`score(name, prediction, gold)` is the one entry point for answers; retrieval metrics are functions of
`ragtrials.metrics.retrieval`. Values are fractions of 1.
"""

from ragtrials.metrics.inputs import closed, count_flags, flags
from ragtrials.metrics.interop import as_evaluate
from ragtrials.metrics.registry import METRICS, Metric, metric_names, score
from ragtrials.metrics.text import normalise

__all__ = [
    "METRICS",
    "Metric",
    "as_evaluate",
    "closed",
    "count_flags",
    "flags",
    "metric_names",
    "normalise",
    "score",
]
