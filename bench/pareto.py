"""The Pareto front of cost against score: what more money buys, and what only costs more."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """The points that no other point dominates.

    A point dominates another when it costs no more and scores no less, and is better in one of the two.

    Args:
        points: Cost and score of each point. A lower cost and a higher score are better.

    Returns:
        Indices into `points` in order of rising cost. Points equal in cost and in score do not dominate
        each other; they are all kept, in input order.

    Raises:
        ValueError: A cost or a score is not a number (NaN): it would have no place in the order.
    """
    if any(cost != cost or score != score for cost, score in points):
        raise ValueError("a Pareto front needs numbers: a cost or a score is NaN")
    kept: list[int] = []
    # Ties of cost come with the best score first, so the last kept point is the one to beat.
    for index in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not kept or points[index][1] > points[kept[-1]][1] or points[index] == points[kept[-1]]:
            kept.append(index)
    return kept
