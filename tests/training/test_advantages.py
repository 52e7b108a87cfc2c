"""Rewards, advantages and whitening: oracle 9.9 of the spec page, and naive loops over Python floats."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from ragtrials.training.advantages import explained_variance, gae, masked_mean, shaped_rewards, whiten

Rows = list[list[float]]
SEEDS = range(20)
POISON = (math.nan, math.inf, -math.inf, 1e30)


def random_rows(draw: random.Random, lengths: Sequence[int]) -> Rows:
    return [[draw.gauss(0, 2) for _ in range(length)] for length in lengths]


def random_lengths(draw: random.Random) -> list[int]:
    return [draw.choice([0, 1, 2, 5, 9]) for _ in range(draw.randint(1, 6))]


def padded(rows: Rows, filler: float = 0.0, width: int = 11, dtype: torch.dtype = torch.float64) -> Tensor:
    """(B, width), with `filler` behind each row."""
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows], dtype=dtype)


def mask_of(rows: Rows, width: int = 11, dtype: torch.dtype = torch.bool) -> Tensor:
    return torch.tensor([[i < len(row) for i in range(width)] for row in rows]).to(dtype)


def assert_close(found: Tensor, expected: Rows, tolerance: float = 1e-10) -> None:
    """Equal on real tokens, and exactly 0 behind them."""
    wanted = padded(expected, width=found.shape[1])
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)
    assert (found[~mask_of(expected, found.shape[1])] == 0).all()


# Naive loops


def naive_rewards(scores: Sequence[float], kl: Rows, beta: float, at: str) -> Rows:
    found = []
    for score, row in zip(scores, kl, strict=True):
        if at == "token":
            out = [-beta * k for k in row]
            found.append([*out[:-1], out[-1] + score] if out else [])
        else:
            found.append([0.0] * (len(row) - 1) + [score - beta * sum(row)] if row else [])
    return found


def naive_gae(rewards: Rows, values: Rows, gamma: float, lam: float) -> tuple[Rows, Rows]:
    """By the definition: the sum over all later deltas."""
    advantages: Rows = []
    for r, v in zip(rewards, values, strict=True):
        deltas = [r[t] + gamma * (v[t + 1] if t + 1 < len(v) else 0.0) - v[t] for t in range(len(r))]
        advantages.append(
            [sum((gamma * lam) ** n * delta for n, delta in enumerate(deltas[t:])) for t in range(len(r))]
        )
    returns = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(advantages, values, strict=True)]
    return advantages, returns


def naive_whiten(rows: Rows, groups: Sequence[int]) -> Rows:
    out = [list(row) for row in rows]
    for group in set(groups):
        members = [row for row, of in zip(out, groups, strict=True) if of == group]
        tokens = [x for row in members for x in row]
        mean = statistics.fmean(tokens) if tokens else 0.0
        variance = statistics.variance(tokens) if len(tokens) > 1 else 0.0
        for row in members:
            row[:] = [(x - mean) / math.sqrt(variance + 1e-8) for x in row]
    return out


# Oracle 9.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rewards", "values", "advantages", "returns"),
    [
        ([0, 0, 1], [0, 0, 0], [0.9025, 0.95, 1], [0.9025, 0.95, 1]),
        ([0, 0, -0.6], [0.1, 0.2, 0.3], [-0.61725, -0.755, -0.9], [-0.51725, -0.555, -0.6]),
        ([-0.02, 0.01, 0.5], [0.4, 0.4, 0.4], [0.07975, 0.105, 0.1], [0.47975, 0.505, 0.5]),
    ],
)
def test_the_spec_s_advantages(
    dtype: torch.dtype,
    rewards: list[float],
    values: list[float],
    advantages: list[float],
    returns: list[float],
) -> None:
    mask = mask_of([rewards])
    found = gae(padded([rewards], dtype=dtype), padded([values], math.nan, dtype=dtype), mask, 1.0, 0.95)
    tolerance = 1e-6 if dtype is torch.float32 else 1e-12
    assert [x.dtype for x in found] == [dtype, dtype]
    assert_close(found[0], [advantages], tolerance)
    assert_close(found[1], [returns], tolerance)


# Against the naive loops, with padding poisoned


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("at", ["token", "end"])
def test_rewards_are_the_naive_ones(seed: int, at: Any) -> None:
    draw = random.Random(seed)
    kl = random_rows(draw, random_lengths(draw))
    scores = [draw.gauss(0, 1) for _ in kl]
    beta = draw.uniform(0, 1)
    poisoned = [math.nan if not row else score for score, row in zip(scores, kl, strict=True)]
    for filler in POISON:
        found = shaped_rewards(
            torch.tensor(poisoned, dtype=torch.float64), padded(kl, filler), mask_of(kl), beta, at
        )
        assert_close(found, naive_rewards(scores, kl, beta, at))
        totals = [score - beta * sum(row) if row else 0 for score, row in zip(scores, kl, strict=True)]
        assert found.sum(1).tolist() == pytest.approx(totals, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 0.95), (0.9, 0.5), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
def test_advantages_are_the_naive_ones(seed: int, gamma: float, lam: float) -> None:
    draw = random.Random(seed)
    lengths = random_lengths(draw)
    rewards, values = random_rows(draw, lengths), random_rows(draw, lengths)
    expected = naive_gae(rewards, values, gamma, lam)
    for filler in POISON:
        found = gae(padded(rewards, filler), padded(values, filler), mask_of(rewards), gamma, lam)
        assert_close(found[0], expected[0])
        assert_close(found[1], expected[1])


def test_lambda_1_gives_the_rewards_to_come() -> None:
    _, returns = gae(padded([[1.0, 2.0, 4.0]]), padded([[9.0, -3.0, 5.0]]), mask_of([[0.0] * 3]), 1.0, 1.0)
    assert_close(returns, [[7.0, 6.0, 4.0]])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("grouped", [False, True])
def test_whitened_values_are_the_naive_ones(seed: int, grouped: bool) -> None:
    draw = random.Random(seed)
    rows = random_rows(draw, random_lengths(draw))
    groups = [draw.choice([0, 3, 7]) if grouped else 0 for _ in rows]
    expected = naive_whiten(rows, groups)
    for filler in POISON:
        found = whiten(padded(rows, filler), mask_of(rows), torch.tensor(groups) if grouped else None)
        assert_close(found, expected)


def test_each_group_is_whitened_by_itself() -> None:
    rows = [[1.0, 2.0, 3.0], [100.0, 300.0], [2.0, 4.0]]
    found = whiten(padded(rows), mask_of(rows), torch.tensor([0, 1, 0]))
    assert found[1, :2].tolist() == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    rest = torch.cat([found[0, :3], found[2, :2]])
    assert (float(rest.mean()), float(rest.var())) == pytest.approx((0.0, 1.0), abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.1, -3.7, 1e6])
def test_equal_values_become_exactly_0(dtype: torch.dtype, value: float) -> None:
    rows = [[value] * 3, [value] * 7]
    assert (whiten(padded(rows, math.nan, dtype=dtype), mask_of(rows)) == 0).all()


def test_the_only_token_of_a_group_becomes_0() -> None:
    rows = [[5.0], [1.0, 2.0], []]
    found = whiten(padded(rows, math.nan), mask_of(rows), torch.tensor([4, 2, 9]))
    assert found[0].tolist() == [0.0] * 11
    assert found[1, 0] == -found[1, 1] != 0


@pytest.mark.parametrize("seed", SEEDS)
def test_explained_variance_is_the_naive_one(seed: int) -> None:
    draw = random.Random(seed)
    lengths = [*random_lengths(draw), 3]
    values, returns = random_rows(draw, lengths), random_rows(draw, lengths)
    v, r = (tuple(x for row in rows for x in row) for rows in (values, returns))
    missed = statistics.variance([a - b for a, b in zip(r, v, strict=True)])
    expected = 1 - missed / statistics.variance(r)
    for filler in POISON:
        found = explained_variance(padded(values, filler), padded(returns, filler), mask_of(values))
        assert found == pytest.approx(expected, abs=1e-10)


def test_explained_variance_of_a_perfect_critic_and_of_a_constant() -> None:
    returns, mask = padded([[1.0, 2.0], [4.0]]), mask_of([[1.0, 2.0], [4.0]])
    assert explained_variance(returns, returns, mask) == 1.0
    assert explained_variance(torch.full_like(returns, 9), returns, mask) == pytest.approx(0.0, abs=1e-12)
    assert explained_variance(-returns, returns, mask) == pytest.approx(-3.0)


@pytest.mark.parametrize("rows", [[[]], [[0.7]], [[0.1] * 3], [[0.1] * 11, [0.1] * 8]])
def test_explained_variance_where_returns_do_not_vary(rows: Rows) -> None:
    values = padded([[float(n) for n, _ in enumerate(row)] for row in rows])
    for dtype in (torch.float32, torch.float64):
        assert explained_variance(values.to(dtype), padded(rows, math.nan, dtype=dtype), mask_of(rows)) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_is_the_naive_one(seed: int) -> None:
    draw = random.Random(seed)
    rows = random_rows(draw, random_lengths(draw))
    tokens = [x for row in rows for x in row]
    expected = statistics.fmean(tokens) if tokens else 0.0
    for filler in POISON:
        found = masked_mean(padded(rows, filler), mask_of(rows))
        assert found.shape == ()
        assert float(found) == pytest.approx(expected, abs=1e-10)


# One token, no token, and the format of numbers

FUNCTIONS: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, ...]]] = {
    "rewards at tokens": lambda x, mask: (shaped_rewards(x[:, 0], x, mask, 0.1),),
    "rewards at the end": lambda x, mask: (shaped_rewards(x[:, 0], x, mask, 0.1, "end"),),
    "gae": lambda x, mask: gae(x, x, mask, 1.0, 0.95),
    "whiten": lambda x, mask: (whiten(x, mask),),
    "whiten by group": lambda x, mask: (whiten(x, mask, torch.arange(len(x)) % 2),),
    "mean": lambda x, mask: (masked_mean(x, mask),),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_a_token_all_is_0(name: str, dtype: torch.dtype) -> None:
    for x in FUNCTIONS[name](torch.full((3, 4), math.nan, dtype=dtype), torch.zeros(3, 4, dtype=torch.bool)):
        assert x.dtype is dtype
        assert (x == 0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_float_mask_is_a_bool_mask(name: str) -> None:
    rows = [[1.0, -2.0, 0.5], [], [4.0]]
    as_bool = FUNCTIONS[name](padded(rows), mask_of(rows))
    as_float = FUNCTIONS[name](padded(rows), mask_of(rows, dtype=torch.float32))
    assert all(torch.equal(a, b) and b.dtype is torch.float64 for a, b in zip(as_bool, as_float, strict=True))


@pytest.mark.parametrize("at", ["token", "end"])
def test_a_single_token_gets_all(at: Any) -> None:
    rewards = shaped_rewards(torch.tensor([1.0]), torch.tensor([[0.5]]), torch.tensor([[True]]), 0.2, at)
    assert rewards.tolist() == [[pytest.approx(0.9)]]
    advantages, returns = gae(rewards, torch.tensor([[0.4]]), torch.tensor([[True]]), 1.0, 0.95)
    assert (advantages.item(), returns.item()) == pytest.approx((0.5, 0.9))


def test_the_penalty_comes_where_it_is_asked_for() -> None:
    scores, kl, mask = (
        torch.tensor([1.0]),
        torch.tensor([[0.5, -1.0, 2.0, 7.0]]),
        torch.tensor([[1, 1, 1, 0]]),
    )
    assert shaped_rewards(scores, kl, mask, 0.1).tolist() == [pytest.approx([-0.05, 0.1, 0.8, 0])]
    assert shaped_rewards(scores, kl, mask, 0.1, "end").tolist() == [pytest.approx([0, 0, 0.85, 0])]
