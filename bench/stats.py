"""Intervals, paired tests, trends and correlations, seeded.

The random bits come from `random.Random(seed).randbytes`, whose stream Python keeps stable, so a
number does not change with the version of numpy.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BOOTSTRAP_SAMPLES = 2_000
PERMUTATIONS = 10_000
_CELLS = 4_000_000  # random draws held at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The least squares line through a series.

    Attributes:
        slope: Change of the value per step.
        p: Two-sided p-value of the permutation test that the order of the values does not matter.
    """

    slope: float
    p: float


@dataclass(frozen=True, slots=True)
class Correlation:
    """Whether one quantity rises or falls with another.

    Attributes:
        rho: Spearman's rank correlation, -1 to 1.
        p: Two-sided p-value of the permutation test that the two have nothing to do with each other.
    """

    rho: float
    p: float


def bootstrap(values: Sequence[float], seed: int = 0, samples: int = BOOTSTRAP_SAMPLES) -> Estimate:
    """The mean of `values` with the percentile bootstrap's 95 % interval.

    Args:
        values: One value per example, at least one.
        seed: Decides the resamples.
        samples: Number of resamples.

    Raises:
        ValueError: There are no values.
    """
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    if n == 0:
        raise ValueError("no values to average")
    generator = random.Random(seed)
    means = []
    for rows in _blocks(samples, n):
        words = np.frombuffer(generator.randbytes(4 * rows * n), dtype="<u4").reshape(rows, n)
        means.append(data[(words.astype(np.uint64) * n) >> 32].mean(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Estimate(float(data.mean()), float(low), float(high))


def paired_permutation_test(
    first: Sequence[float], second: Sequence[float], seed: int = 0, permutations: int = PERMUTATIONS
) -> float:
    """Two-sided p-value that two methods differ on the same examples (sign-flip permutation test).

    Args:
        first: One method's values, example by example.
        second: The other method's values, in the same order.
        seed: Decides the sign flips.
        permutations: Number of sign flips m; the p-value is (b + 1) / (m + 1), never 0.

    Raises:
        ValueError: The two have different lengths, or none.
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(f"paired values need equal lengths above 0, not {len(first)} and {len(second)}")
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    n = len(difference)
    observed = abs(difference.sum()) - 1e-9  # a sum in another order must not count as smaller
    generator = random.Random(seed)
    extreme = 0
    for rows in _blocks(permutations, n):
        width = (n + 7) // 8
        bits = np.frombuffer(generator.randbytes(rows * width), dtype=np.uint8).reshape(rows, width)
        signs = np.unpackbits(bits, axis=1, count=n).astype(np.float64) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ difference) >= observed))
    return (extreme + 1) / (permutations + 1)


def linear_trend(
    values: Sequence[float],
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    *,
    steps: Sequence[float] | None = None,
) -> Trend:
    """Whether a series rises or falls: its slope, and how often a shuffled order has one as steep.

    The test takes values of different steps as exchangeable if there is no trend. Where neighbours
    resemble each other for another reason (a running mean, say), its p is too small.

    Args:
        values: One value per step, in order. Fewer than three, or all the same, have no trend: slope 0, p 1.
        seed: Decides the orders.
        permutations: Number of shuffled orders m; the p-value is (b + 1) / (m + 1), never 0.
        steps: Where the values stand, no two at the same place; by default one step apart.

    Raises:
        ValueError: A value is not finite, or there are not as many steps as values.
    """
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    if not np.isfinite(data).all():
        raise ValueError("a trend needs finite values")
    if steps is not None and len(steps) != n:
        raise ValueError(f"a trend needs a step for each value, not {len(steps)} for {n}")
    if n < 3 or data.min() == data.max():
        return Trend(0.0, 1.0)
    place = np.arange(n, dtype=np.float64) if steps is None else np.asarray(steps, dtype=np.float64)
    place = place - place.mean()
    data = data - data.mean()
    slope = float(place @ data / (place @ place))
    return Trend(slope, _shuffling_p(place, data, seed, permutations))


def spearman(
    first: Sequence[float], second: Sequence[float], seed: int = 0, permutations: int = PERMUTATIONS
) -> Correlation:
    """Spearman's rank correlation of two quantities: Pearson's of their ranks, equal values sharing a rank.

    Args:
        first: One value per example.
        second: The other quantity's values, in the same order. Fewer than three pairs, or a side that is
            all the same, have no correlation: rho 0, p 1.
        seed: Decides the orders.
        permutations: Number of shuffled orders m; the p-value is (b + 1) / (m + 1), never 0.

    Raises:
        ValueError: A value is not finite, or the two have different lengths.
    """
    if len(first) != len(second):
        raise ValueError(f"a correlation needs pairs, not {len(first)} and {len(second)} values")
    x, y = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a correlation needs finite values")
    if len(x) < 3 or x.min() == x.max() or y.min() == y.max():
        return Correlation(0.0, 1.0)
    x, y = _ranks(x), _ranks(y)
    x, y = x - x.mean(), y - y.mean()
    rho = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    return Correlation(rho, _shuffling_p(x, y, seed, permutations))


def _ranks(values: np.ndarray) -> np.ndarray:
    """The place of each value in their order, from 1; equal values share the mean of their places."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: np.ndarray = last - (counts - 1) / 2
    return means[which]


def _shuffling_p(place: np.ndarray, data: np.ndarray, seed: int, permutations: int) -> float:
    """Two-sided p-value of the product of two centred series, over shuffled orders of `data`."""
    n = len(data)
    # Of unit scale, so that one tolerance fits losses and learning rates alike.
    place = place / np.abs(place).max()
    data = data / np.abs(data).max()
    observed = abs(place @ data) - 1e-9  # a sum in another order must not count as smaller
    generator = random.Random(seed)
    extreme = 0
    for rows in _blocks(permutations, n):
        words = np.frombuffer(generator.randbytes(8 * rows * n), dtype="<u8").reshape(rows, n)
        shuffled = data[np.argsort(words, axis=1, kind="stable")]
        extreme += int(np.count_nonzero(np.abs(shuffled @ place) >= observed))
    return (extreme + 1) / (permutations + 1)


def _blocks(total: int, width: int) -> list[int]:
    """`total` rows of `width` draws, cut into blocks that fit in memory."""
    size = max(1, _CELLS // width)
    return [min(size, total - start) for start in range(0, total, size)]
