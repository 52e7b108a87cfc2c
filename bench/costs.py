"""What an answer costs: the runs of a table as points of cost and score, and what more cost buys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragtrials.leaderboard import Table
from ragtrials.pareto import front
from ragtrials.run_labels import unique_labels
from ragtrials.stats import Estimate


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of cost.

    Attributes:
        name: What is counted, in one word.
        key: Its name in a record's cost.
        column: How its mean per question is called in tables.
        digits: Decimal places of that mean in tables.
        size, unit: Gains are per so much more of it, and what so much is called.
    """

    name: str
    key: str
    column: str
    digits: int
    size: int
    unit: str


KINDS = (
    Kind("retrievals", "retrieval_calls", "retrievals/q", 2, 1, "retrieval"),
    Kind("tokens", "prompt_tokens", "prompt tokens/q", 0, 1000, "1000 prompt tokens"),
)


@dataclass(frozen=True, slots=True)
class Point:
    """A run: what it scores and what an answer of it costs.

    Attributes:
        name: The method, told apart from all others of the table.
        score: Mean score with its interval, fractions of 1.
        costs: Mean cost per question of each of `KINDS`, in their order.
    """

    name: str
    score: Estimate
    costs: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CostView:
    """A table's points and their Pareto fronts.

    Attributes:
        metric: The score: F1, or the table's main metric where a run has no F1.
        points: One for each row of the table, in its order.
        fronts: For each of `KINDS` the points on the front of score against it: indices into `points`, in
            order of rising cost.
    """

    metric: str
    points: tuple[Point, ...]
    fronts: tuple[tuple[int, ...], ...]

    def on(self, index: int) -> str:
        """The fronts that a point stands on: a kind's name, "both", or "–" for none."""
        names = [kind.name for kind, kept in zip(KINDS, self.fronts, strict=True) if index in kept]
        return "both" if len(names) == len(KINDS) else "".join(names) or "–"


def cost_view(table: Table) -> CostView | None:
    """The points and fronts of a table; None for a single row, which there is nothing to compare with."""
    records = table.records
    if len(records) < 2:
        return None
    metric = "f1" if all("f1" in record.scores for record in records) else records[0].main_metric
    points = tuple(
        Point(name, record.scores[metric], tuple(record.cost[kind.key] for kind in KINDS))
        for name, record in zip(unique_labels(records), records, strict=True)
    )
    fronts = tuple(
        tuple(front([(point.costs[place], point.score.mean) for point in points]))
        for place in range(len(KINDS))
    )
    return CostView(metric, points, fronts)


def gains(points: Sequence[tuple[float, float]]) -> list[float | None]:
    """What more cost gave along a front: gain in score over the point before, per unit of cost.

    The first point has none, and neither has one that costs what the point before costs.

    Args:
        points: Cost and score of each point of the front, in order of rising cost.
    """
    found: list[float | None] = [None] * len(points)
    for i in range(1, len(points)):
        (cost, score), (less, before) = points[i], points[i - 1]
        if cost > less:
            found[i] = (score - before) / (cost - less)
    return found
