"""The Pareto front of cost against score."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.pareto import front


def test_front_keeps_what_no_other_point_dominates() -> None:
    # (3, 0.4) costs more than (1, 0.5) and scores less; (2, 0.5) only costs more.
    points = [(3.0, 0.4), (0.0, 0.3), (2.0, 0.5), (1.0, 0.5), (4.0, 0.6)]
    assert front(points) == [1, 3, 4]


def test_of_points_at_one_cost_only_the_best_stays() -> None:
    assert front([(1.0, 0.2), (1.0, 0.7), (1.0, 0.5)]) == [1]


def test_ties_are_all_kept_in_input_order() -> None:
    assert front([(2.0, 0.9), (1.0, 0.5), (1.0, 0.5), (0.5, 0.1), (1.0, 0.5)]) == [3, 1, 2, 4, 0]


def test_no_points_have_no_front_and_one_point_is_its_own() -> None:
    assert front([]) == []
    assert front([(5.0, 0.0)]) == [0]


def test_infinite_costs_are_ordered_and_nan_is_refused() -> None:
    assert front([(math.inf, 1.0), (0.0, 0.0)]) == [1, 0]
    with pytest.raises(ValueError, match="NaN"):
        front([(0.0, 1.0), (math.nan, 0.5)])


# Few distinct values, so that ties of cost, of score and of both are common.
_POINTS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda p: (float(p[0]), p[1] / 5)), max_size=14
)


@given(_POINTS)
def test_front_is_the_definition_over_all_pairs(points: list[tuple[float, float]]) -> None:
    def dominated(i: int) -> bool:
        cost, score = points[i]
        return any(c <= cost and s >= score and (c < cost or s > score) for c, s in points)

    expected = [i for i in range(len(points)) if not dominated(i)]
    assert front(points) == sorted(expected, key=lambda i: points[i][0])
