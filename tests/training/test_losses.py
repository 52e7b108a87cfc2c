"""The losses of PPO against naive loops over Python floats, and their gradients."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Literal, get_args

import pytest
import torch
from torch import Tensor

from ragtrials.training.losses import masked_logprobs, policy_loss, token_weights, value_loss

SEEDS = range(20)
CLIPS = [None, 0.2, 0.05]
POISON = (math.nan, math.inf, -math.inf, 1e30)
How = Literal["token", "turn", "role"]
HOWS: tuple[How, ...] = get_args(How)


def normal(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale


def lengths_mask(lengths: Sequence[int], width: int) -> Tensor:
    return torch.arange(width) < torch.tensor(lengths).unsqueeze(1)


# The policy's loss


def naive_policy_loss(new: float, old: float, advantage: float, clip: float | None) -> tuple[float, bool]:
    ratio = math.exp(new - old)
    if clip is None:
        return -ratio * advantage, False
    bounded = min(max(ratio, 1 - clip), 1 + clip)
    return -min(ratio * advantage, bounded * advantage), bounded * advantage < ratio * advantage


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("clip", CLIPS)
def test_the_policy_loss_is_the_naive_one(seed: int, clip: float | None) -> None:
    new, old, advantages = (normal(3 * seed + n, 4, 7, scale=0.5) for n in range(3))
    loss, clipped = policy_loss(new, old, advantages, clip)
    assert loss.dtype is torch.float64
    for b in range(4):
        for t in range(7):
            expected = naive_policy_loss(float(new[b, t]), float(old[b, t]), float(advantages[b, t]), clip)
            assert float(loss[b, t]) == pytest.approx(expected[0], abs=1e-10)
            assert bool(clipped[b, t]) is expected[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("clip", [None, 0.2])
def test_at_ratio_1_the_gradient_is_the_policy_gradient(seed: int, clip: float | None) -> None:
    logits, advantages = normal(seed, 3, 5, 6).requires_grad_(), normal(seed + 1000, 3, 5)
    ids = torch.randint(6, (3, 5), generator=torch.Generator().manual_seed(seed))
    logprobs = logits.log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    (of_loss,) = torch.autograd.grad(
        policy_loss(logprobs, logprobs.detach(), advantages, clip)[0].sum(), logits, retain_graph=True
    )
    (of_policy,) = torch.autograd.grad((advantages * logprobs).sum(), logits)
    torch.testing.assert_close(of_loss, -of_policy, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("clip", [0.2, 0.05])
def test_the_gradient_ends_exactly_where_the_clip_is_in_force(clip: float) -> None:
    new, old, advantages = (normal(n, 20, 20) for n in range(3))
    new.requires_grad_()
    loss, clipped = policy_loss(new, old, advantages, clip)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    assert clipped.any()
    assert not clipped.all()
    assert (gradient[clipped] == 0).all()
    moved = -advantages * (new.detach() - old).exp()
    torch.testing.assert_close(gradient[~clipped], moved[~clipped], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "clipped"),
    [
        (1.5, 2.0, -2.4, True),  # good, and likelier already: no further
        (1.5, -2.0, 3.0, False),  # bad, and likelier: back
        (0.5, 2.0, -1.0, False),
        (0.5, -2.0, 1.6, True),
        (1.1, 2.0, -2.2, False),
        (1.5, 0.0, 0.0, False),
    ],
)
def test_the_clip_works_on_one_side(ratio: float, advantage: float, loss: float, clipped: bool) -> None:
    found = policy_loss(torch.tensor([[ratio]]).log(), torch.zeros(1, 1), torch.tensor([[advantage]]), 0.2)
    assert (float(found[0]), bool(found[1])) == (pytest.approx(loss), clipped)


@pytest.mark.parametrize("advantage", [0.0, 3.0])
def test_a_ratio_that_overflows_leaves_no_nan_where_nothing_is_learnt(advantage: float) -> None:
    new = torch.tensor([[-0.1]], requires_grad=True)
    loss, clipped = policy_loss(new, torch.tensor([[-200.0]]), torch.tensor([[advantage]]), 0.2)
    loss.sum().backward()
    assert bool(clipped) is (advantage > 0)
    assert loss.item() == pytest.approx(-1.2 * advantage)
    assert new.grad is not None
    assert float(new.grad) == 0


# The critic's loss


def naive_value_loss(value: float, old: float, target: float, clip: float | None) -> float:
    free = (value - target) ** 2
    if clip is None:
        return free
    return max(free, (min(max(value, old - clip), old + clip) - target) ** 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("clip", CLIPS)
def test_the_value_loss_is_the_naive_one(seed: int, clip: float | None) -> None:
    values, old, returns = (normal(3 * seed + n, 4, 7, scale=0.5) for n in range(3))
    loss = value_loss(values, old, returns, clip)
    assert loss.dtype is torch.float64
    for b in range(4):
        for t in range(7):
            expected = naive_value_loss(float(values[b, t]), float(old[b, t]), float(returns[b, t]), clip)
            assert float(loss[b, t]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(
    ("value", "loss", "gradient"),
    [
        (0.1, 0.81, -1.8),  # within the bounds
        (0.5, 0.64, 0.0),  # nearer than the bound allows: the bound counts
        (-0.5, 2.25, -3.0),  # further away: back
    ],
)
def test_a_value_learns_no_further_than_its_bound(value: float, loss: float, gradient: float) -> None:
    v = torch.tensor([[value]], dtype=torch.float64, requires_grad=True)
    found = value_loss(v, torch.zeros(1, 1), torch.ones(1, 1), 0.2)
    found.sum().backward()
    assert v.grad is not None
    assert (found.item(), v.grad.item()) == pytest.approx((loss, gradient))


@pytest.mark.parametrize("filler", POISON)
@pytest.mark.parametrize("clip", [None, 0.2])
def test_padding_changes_neither_losses_nor_gradients(filler: float, clip: float | None) -> None:
    mask = lengths_mask([3, 0, 1], 4)
    clean = [normal(n, 3, 4) * mask for n in range(4)]
    gradients = []
    for given in (clean, [x.masked_fill(~mask, filler) for x in clean]):
        first, second, target = given[0].clone().requires_grad_(), given[1], given[2]
        of_policy, clipped = policy_loss(first, second, target, clip, mask.float())
        of_critic = value_loss(first, second, target, clip, mask)
        assert (of_policy[~mask] == 0).all()
        assert (of_critic[~mask] == 0).all()
        assert not clipped[~mask].any()
        gradients.append(torch.autograd.grad((of_policy + of_critic).sum(), first)[0])
        assert (gradients[-1][~mask] == 0).all()
    assert torch.equal(*gradients)
    assert gradients[0].any()


def test_advantage_0_on_padding_does_without_a_mask() -> None:
    new = torch.tensor([[-1.0, math.nan]], requires_grad=True)
    loss, clipped = policy_loss(new, torch.tensor([[-1.0, math.inf]]), torch.tensor([[2.0, 0.0]]), 0.2)
    loss.sum().backward()
    assert loss.tolist() == [[-2.0, 0.0]]
    assert not clipped.any()
    assert new.grad is not None
    assert new.grad.tolist() == [[-2.0, 0.0]]


def test_losses_keep_float32() -> None:
    ones = torch.ones(2, 3)
    assert policy_loss(ones, ones, ones, 0.2, ones)[0].dtype is torch.float32
    assert value_loss(ones, ones, ones, 0.2, ones).dtype is torch.float32


# Weights


def naive_weights(lengths: Sequence[int], how: str, roles: Sequence[int], width: int) -> list[list[float]]:
    spoken = [(length, role) for length, role in zip(lengths, roles, strict=True) if length]
    rows = []
    for length, role in zip(lengths, roles, strict=True):
        if how == "token":
            weight = 1 / max(sum(lengths), 1)
        elif how == "turn":
            weight = 1 / len(spoken) / length if length else 0
        else:
            tokens = sum(n for n, of in spoken if of == role)
            weight = 1 / len({of for _, of in spoken}) / tokens if length else 0
        rows.append([weight] * length + [0.0] * (width - length))
    return rows


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", HOWS)
def test_weights_are_the_naive_ones(seed: int, how: How) -> None:
    draw = random.Random(seed)
    lengths = [draw.choice([0, 1, 2, 6]) for _ in range(draw.randint(1, 8))]
    roles = [draw.choice([0, 1, 5]) for _ in lengths]
    found = token_weights(lengths_mask(lengths, 6).double(), how, torch.tensor(roles))
    assert found.dtype is torch.float64
    expected = torch.tensor(naive_weights(lengths, how, roles, 6), dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert float(found.sum()) == pytest.approx(1 if any(lengths) else 0, abs=1e-12)


def test_weights_of_one_example() -> None:
    mask, roles = lengths_mask([4, 1, 1, 0], 4), torch.tensor([0, 1, 1, 2])
    per_row = {how: token_weights(mask, how, roles).sum(1).tolist() for how in HOWS}
    assert per_row["token"] == pytest.approx([4 / 6, 1 / 6, 1 / 6, 0])
    assert per_row["turn"] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert per_row["role"] == pytest.approx([1 / 2, 1 / 4, 1 / 4, 0])


@pytest.mark.parametrize("how", HOWS)
def test_no_token_has_no_weight(how: How) -> None:
    assert (
        token_weights(torch.zeros(2, 3, dtype=torch.bool), how, torch.tensor([0, 1])).tolist()
        == [[0] * 3] * 2
    )


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_micro_batches_give_the_gradient_of_the_whole(how: How, size: int) -> None:
    features, old, advantages = normal(0, 7, 5, 3), normal(1, 7, 5, scale=0.1), normal(2, 7, 5)
    mask, roles = lengths_mask([5, 1, 0, 3, 2, 1, 4], 5), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    weights = token_weights(mask.double(), how, roles)
    parameter = normal(3, 3, scale=0.1).requires_grad_()

    def gradient(rows: slice) -> Tensor:
        logprobs = features[rows] @ parameter
        loss, _ = policy_loss(logprobs, old[rows], advantages[rows], 0.2, mask[rows])
        return torch.autograd.grad((weights[rows] * loss).sum(), parameter)[0]

    whole = gradient(slice(0, 7))
    parts = sum(gradient(slice(at, at + size)) for at in range(0, 7, size))
    assert whole.abs().min() > 1e-4
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-14)


# Log-probabilities


def naive_logprobs(
    logits: Sequence[float], token: int, temperature: float, allowed: Sequence[bool]
) -> tuple[float, float]:
    kept = {i: math.exp(x / temperature) for i, x in enumerate(logits) if allowed[i]}
    total = math.fsum(kept.values())
    shares = [x / total for x in kept.values()]
    return math.log(kept[token] / total), -math.fsum(p * math.log(p) for p in shares)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("by_row", [False, True])
def test_logprobs_are_the_naive_ones(seed: int, limited: bool, by_row: bool) -> None:
    draw = random.Random(seed)
    logits = normal(seed, 6, 9, scale=3.0)
    ids = [draw.randrange(9) for _ in range(6)]
    allowed = [[not limited or i == token or draw.random() < 0.4 for i in range(9)] for token in ids]
    temperatures = [draw.uniform(0.3, 2) if by_row else 0.95 for _ in ids]
    found = masked_logprobs(
        logits,
        torch.tensor(ids),
        torch.tensor(temperatures, dtype=torch.float64) if by_row else 0.95,
        torch.tensor(allowed) if limited else None,
    )
    assert [x.dtype for x in found] == [torch.float64] * 2
    for n, row in enumerate(logits.tolist()):
        expected = naive_logprobs(row, ids[n], temperatures[n], allowed[n])
        assert (float(found[0][n]), float(found[1][n])) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("poison", POISON)
def test_a_single_allowed_token_is_certain(poison: float) -> None:
    logits = normal(0, 2, 4).masked_fill(torch.tensor([[0, 0, 1, 0], [0, 0, 0, 0]]).bool(), poison)
    logits.requires_grad_()
    allowed = torch.tensor([[0, 1, 0, 0], [1, 0, 1, 0]]).bool()
    logprobs, entropy = masked_logprobs(logits, torch.tensor([1, 2]), 0.7, allowed)
    assert (logprobs[0].item(), entropy[0].item()) == (0.0, 0.0)
    assert 0 < entropy[1].item() <= math.log(2)
    (gradient,) = torch.autograd.grad((logprobs + 0.1 * entropy).sum(), logits)
    assert gradient.isfinite().all()
    assert (gradient[0] == 0).all()
    assert (gradient[1] != 0).tolist() == allowed[1].tolist()


@pytest.mark.parametrize("hopeless", [-math.inf, -1e30, -1e4])
def test_a_logit_that_leaves_nothing_gives_no_nan(hopeless: float) -> None:
    logits = torch.tensor([[1.0, hopeless, 2.0]], requires_grad=True)
    logprobs, entropy = masked_logprobs(logits, torch.tensor([0]), 1.0, None)
    (logprobs + entropy).sum().backward()
    expected = naive_logprobs([1.0, 2.0], 0, 1.0, [True, True])
    assert (logprobs.item(), entropy.item()) == pytest.approx(expected, abs=1e-6)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("limited", [False, True])
def test_the_gradients_are_those_of_finite_differences(limited: bool) -> None:
    logits, ids = normal(5, 3, 5).requires_grad_(), torch.tensor([0, 3, 4])
    allowed = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]]).bool() if limited else None

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return masked_logprobs(x, ids, 0.8, allowed)

    assert torch.autograd.gradcheck(both, (logits,))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_less_than_float32_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits, ids = normal(0, 4, 50).to(dtype), torch.tensor([0, 1, 2, 3])
    found: Any = masked_logprobs(logits, ids, 0.9, None)
    exact: Any = masked_logprobs(logits.double(), ids, 0.9, None)
    for low, high in zip(found, exact, strict=True):
        assert low.dtype is torch.float32
        torch.testing.assert_close(low.double(), high, rtol=1e-5, atol=1e-5)


def test_a_token_that_could_not_be_sampled_is_refused() -> None:
    with pytest.raises(ValueError, match="not among the allowed"):
        masked_logprobs(torch.zeros(1, 3), torch.tensor([2]), 1.0, torch.tensor([[True, True, False]]))
    nothing = masked_logprobs(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long), 1.0, None)
    assert [x.shape for x in nothing] == [(0,), (0,)]
