from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations
from statistics import fmean

import pytest

from ragtrials.stats import (
    Correlation,
    Estimate,
    Trend,
    bootstrap,
    linear_trend,
    paired_permutation_test,
    spearman,
)


def test_bootstrap_interval_of_a_share() -> None:
    estimate = bootstrap([1.0] * 30 + [0.0] * 70)
    # Normal approximation: 0.30 ± 1.96 * sqrt(0.3 * 0.7 / 100) = 0.30 ± 0.090
    assert estimate.mean == pytest.approx(0.3)
    assert estimate.low == pytest.approx(0.21, abs=0.02)
    assert estimate.high == pytest.approx(0.39, abs=0.02)


def test_bootstrap_is_seeded_and_pinned() -> None:
    values = [i / 10 for i in range(11)]
    assert bootstrap(values, 1) == bootstrap(values, 1)
    assert bootstrap(values, 1) != bootstrap(values, 2)
    # The stream must never change under a stored number.
    assert bootstrap(values, 1) == Estimate(
        0.5, pytest.approx(0.3181818181818182), pytest.approx(0.6909090909090909)
    )


def test_bootstrap_covers_the_truth() -> None:
    generator = random.Random(0)
    covered = 0
    for trial in range(100):
        data = [float(generator.random() < 0.4) for _ in range(80)]
        estimate = bootstrap(data, trial, samples=400)
        covered += estimate.low <= 0.4 <= estimate.high
    assert 88 <= covered <= 100


def test_bootstrap_of_nothing() -> None:
    with pytest.raises(ValueError, match="no values"):
        bootstrap([])


def test_equal_methods_are_not_separated() -> None:
    assert paired_permutation_test([0.5] * 20, [0.5] * 20) == 1.0


def test_p_value_equals_the_exact_sign_test() -> None:
    # Ten wins of ten: exact two-sided sign-flip p = 2 / 2**10 = 0.00195.
    p = paired_permutation_test([1.0] * 10, [0.0] * 10, permutations=20_000)
    assert p == pytest.approx(2 / 1024, abs=0.001)


def test_p_value_is_never_zero_and_seeded() -> None:
    p = paired_permutation_test([1.0] * 100, [0.0] * 100, permutations=999)
    assert p == 1 / 1000
    generator = random.Random(3)
    a, b = ([generator.random() for _ in range(50)] for _ in range(2))
    assert paired_permutation_test(a, b, seed=1) == paired_permutation_test(a, b, seed=1)


def test_p_value_is_symmetric() -> None:
    a, b = [1.0, 0.0, 1.0, 1.0, 0.5], [0.0, 0.0, 1.0, 0.5, 0.0]
    assert paired_permutation_test(a, b) == paired_permutation_test(b, a)


def test_unpaired_values_are_refused() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        paired_permutation_test([1.0], [1.0, 0.0])


def noise(count: int, seed: int) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(0.0, 1.0) for _ in range(count)]


def least_squares(values: Sequence[float]) -> float:
    """The textbook's formula, in plain Python."""
    middle, mean = (len(values) - 1) / 2, fmean(values)
    above = sum((step - middle) * (value - mean) for step, value in enumerate(values))
    return above / sum((step - middle) ** 2 for step in range(len(values)))


def test_the_slope_is_that_of_the_least_squares_line() -> None:
    assert linear_trend([1.0, 3.0, 5.0, 7.0]).slope == pytest.approx(2.0)
    values = noise(40, 1)
    assert linear_trend(values).slope == pytest.approx(least_squares(values))


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0, 3.0, 6.0, 5.0], [1e-7, 2e-7, 2e-7, 5e-7, 1e-7, 3e-7]])
def test_the_p_value_is_that_of_all_orders(values: list[float]) -> None:
    slopes = [abs(least_squares(order)) for order in permutations(values)]
    exact = fmean(slope >= abs(least_squares(values)) * (1 - 1e-9) for slope in slopes)
    assert linear_trend(values, permutations=40_000).p == pytest.approx(exact, abs=0.008)


def test_a_clear_rise_and_a_clear_fall_are_told_from_chance() -> None:
    rising = [0.05 * step + error for step, error in enumerate(noise(60, 2))]
    up, down = linear_trend(rising), linear_trend([-value for value in rising])
    assert up.slope == pytest.approx(0.05, abs=0.02)
    assert up.p < 0.001
    assert down == Trend(-up.slope, up.p)


def test_p_values_of_flat_noise_are_spread_evenly() -> None:
    ps = [linear_trend(noise(20, seed), seed, permutations=400).p for seed in range(300)]
    for level in (0.05, 0.25, 0.5, 0.75):
        share = fmean(p <= level for p in ps)
        assert share == pytest.approx(level, abs=4 * (level * (1 - level) / 300) ** 0.5)


def test_a_trend_is_seeded_and_pinned_and_its_p_never_zero() -> None:
    values = noise(30, 3)
    assert linear_trend(values, 1) == linear_trend(values, 1)
    assert linear_trend(values, 1).p != linear_trend(values, 2).p
    assert linear_trend(list(range(50)), permutations=999).p == 1 / 1000
    # The stream must never change under a stored number.
    assert linear_trend([3.0, 1.0, 2.0, 5.0, 4.0, 6.0], 1).p == pytest.approx(1014 / 10_001)


def test_a_trend_does_not_depend_on_scale_and_offset() -> None:
    values = noise(25, 4)
    p = linear_trend(values).p
    assert linear_trend([1e-9 * value for value in values]).p == p
    assert linear_trend([100.0 + 7.0 * value for value in values]).p == p


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 9.0], [0.1] * 7])
def test_what_cannot_have_a_trend_has_none(values: list[float]) -> None:
    assert linear_trend(values) == Trend(0.0, 1.0)


def test_values_that_stand_apart_have_their_slope_per_step() -> None:
    assert linear_trend([1.0, 2.0, 4.0], steps=[10, 20, 40]).slope == pytest.approx(0.1)
    values = noise(20, 5)
    every_tenth = linear_trend(values, steps=range(10, 210, 10))
    assert every_tenth.slope == pytest.approx(linear_trend(values).slope / 10)
    assert every_tenth.p == linear_trend(values).p


@pytest.mark.parametrize(
    ("values", "steps", "told"),
    [([1.0, float("nan"), 2.0], None, "finite"), ([1.0, 2.0, 3.0], [1, 2], "not 2 for 3")],
)
def test_no_trend_of_broken_series(values: list[float], steps: list[int] | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        linear_trend(values, steps=steps)


def test_trends_agree_with_scipy() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    for seed, rise in ((6, 0.0), (7, 0.02), (8, 0.05)):
        values = [rise * step + error for step, error in enumerate(noise(50, seed))]
        line = scipy_stats.linregress(range(50), values)
        trend = linear_trend(values)
        assert trend.slope == pytest.approx(line.slope)
        # Under normal noise the t-test and the permutation test are all but the same.
        assert trend.p == pytest.approx(line.pvalue, abs=0.015)


def test_rank_correlations_worked_by_hand() -> None:
    # Without ties: 1 - 6 * (sum of squared differences of ranks) / (n * (n * n - 1)), here 1 - 6 * 8 / 120.
    assert spearman([1, 2, 3, 4, 5], [20, 10, 50, 30, 40]).rho == pytest.approx(0.6)
    # Ranks 1, 2.5, 2.5, 4 and 3.5, 3.5, 1.5, 1.5: covariance -3, squared deviations 4.5 and 4.
    assert spearman([10, 20, 20, 90], [1, 1, 0, 0]).rho == pytest.approx(-3 / 18**0.5)


def test_a_rank_correlation_looks_at_order_alone() -> None:
    rising = spearman([1.0, 10.0, 1e3, 1e9, 1e12], [1, 2, 3, 4, 5])
    assert rising.rho == pytest.approx(1.0)
    assert spearman([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]) == rising
    falling = spearman([5, 4, 3, 2, 1], [1, 2, 3, 4, 5])
    assert (falling.rho, falling.p) == (pytest.approx(-1.0), rising.p)


@pytest.mark.parametrize("second", [[2, 1, 3, 6, 4, 5], [0, 0, 1, 0, 1, 1]])
def test_the_p_value_of_a_correlation_is_that_of_all_orders(second: list[float]) -> None:
    first = [3.0, 5.0, 5.0, 8.0, 9.0, 12.0]
    found = spearman(first, second, permutations=40_000)
    orders = [abs(spearman(first, order, permutations=1).rho) for order in permutations(second)]
    exact = fmean(rho >= abs(found.rho) - 1e-9 for rho in orders)
    assert found.p == pytest.approx(exact, abs=0.008)


def test_a_correlation_is_seeded_and_pinned_and_its_p_never_zero() -> None:
    first, second = noise(30, 1), noise(30, 2)
    assert spearman(first, second, 1) == spearman(first, second, 1)
    assert spearman(first, second, 1).p != spearman(first, second, 2).p
    assert spearman(range(50), range(50), permutations=999).p == 1 / 1000
    # The stream must never change under a stored number.
    assert spearman([3, 1, 2, 5, 4, 6], [1, 2, 3, 4, 5, 6], 1).p == pytest.approx(0.1045895410458954)


@pytest.mark.parametrize("pair", [([], []), ([1, 2], [3, 4]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 0, 0])])
def test_what_cannot_have_a_correlation_has_none(pair: tuple[list[float], list[float]]) -> None:
    assert spearman(*pair) == Correlation(0.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [([1, 2, 3], [1, 2], "not 3 and 2"), ([1, 2, float("nan")], [1, 2, 3], "finite")],
)
def test_no_correlation_of_broken_pairs(first: list[float], second: list[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        spearman(first, second)


def test_correlations_agree_with_scipy() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    for seed, rise in ((6, 0.0), (7, 0.02), (8, 0.05)):
        values = [round(rise * step + error, 1) for step, error in enumerate(noise(50, seed))]  # with ties
        expected = scipy_stats.spearmanr(range(50), values)
        found = spearman(range(50), values)
        assert found.rho == pytest.approx(expected.statistic)
        assert found.p == pytest.approx(expected.pvalue, abs=0.015)
