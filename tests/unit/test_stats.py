from __future__ import annotations

import random

import pytest

from ragtrials.stats import Estimate, bootstrap, paired_permutation_test


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
