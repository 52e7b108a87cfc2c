"""From scores to advantages: KL-shaped rewards, generalised advantage estimation, whitening.

The sources are MMOA-RAG (arXiv:2501.15228, eq. 10-16) and Schulman et al. 2015 (arXiv:1506.02438).

Tensors are (B, T): B responses (or trajectories) of at most T tokens, padded on the right. A mask (B, T),
bool or float, is 1 on real tokens; a row may have none. What stands on padding, NaN included, never matters,
and results are 0 there. Results have the dtype of the (B, T) arguments. Nothing is detached.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

EPSILON = 1e-8
"""Added to a variance before its root is taken."""


def shaped_rewards(
    scores: Tensor, kl: Tensor, mask: Tensor, beta: float, at: Literal["token", "end"] = "token"
) -> Tensor:
    """The reward of every token: the response's score, less what it costs to leave the reference policy.

    Both forms sum to score - beta · sum(kl) over a response. They differ in where the credit lands when
    lambda is below 1.

    Args:
        scores: (B) The score R_i of each response, e.g. the shared F1 plus the agent's penalty.
        kl: (B, T) log pi - log pi_reference of each sampled token, in nats.
        mask: (B, T) Real tokens.
        beta: Units of score per nat.
        at: "token" takes -beta · kl at each token and adds the score at the last one (as MMOA-RAG's
            released code does); "end" takes all at the last token (its paper, eq. 13-15).

    Returns:
        (B, T) Rewards; a response without tokens gets none.
    """
    real = mask.bool()
    penalty = beta * torch.where(real, kl, 0)
    following = torch.nn.functional.pad(real[:, 1:], (0, 1))
    last = real & ~following
    if at == "end":
        penalty = torch.where(last, penalty.sum(1, keepdim=True), 0)
    return torch.where(last, scores.to(kl.dtype).unsqueeze(1), 0) - penalty


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates (Schulman et al. 2015, eq. 16; among MMOA-RAG's eq. 10-16).

    A_t = sum over l of (gamma · lambda)^l · delta_{t+l}, delta_t = r_t + gamma · V_{t+1} - V_t. A trajectory
    ends with its last real token: V is 0 after it.

    Args:
        rewards: (B, T) Reward of each token.
        values: (B, T) V of the state in which each token was chosen.
        mask: (B, T) Real tokens.
        gamma: Discount per token.
        lam: Lambda; 0 trusts the values, 1 the rewards.

    Returns:
        Advantages and returns, both (B, T). Returns are advantages + values, what the critic should learn.
    """
    real = mask.bool()
    rewards, values = torch.where(real, rewards, 0), torch.where(real, values, 0)
    after = torch.zeros_like(values[:, :1]).sum(1)  # V and A of the token behind, here of the end
    estimate = torch.zeros_like(after)
    backwards = []
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + gamma * after - values[:, t]
        estimate = delta + gamma * lam * estimate
        after = values[:, t]
        backwards.append(estimate)
    advantages = torch.stack(backwards[::-1], 1) if backwards else torch.zeros_like(rewards)
    return advantages, advantages + values


def whiten(x: Tensor, mask: Tensor, groups: Tensor | None = None) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over real tokens (unbiased variance, 1e-8 under the root).

    Equal values become exactly 0, and so does the only token of a group.

    Args:
        x: (B, T) E.g. advantages. MMOA-RAG's released code whitens over all agents together.
        mask: (B, T) Real tokens.
        groups: (B) int64. If given, each group of rows (say, each role) is whitened by itself.

    Returns:
        (B, T) Whitened values.
    """
    real = mask.bool()
    whitened = torch.zeros_like(x)
    for group in [None] if groups is None else groups.unique():
        chosen = real if group is None else real & (groups == group).unsqueeze(1)
        whitened[chosen] = _whitened(x[chosen])
    return whitened


def _whitened(x: Tensor) -> Tensor:
    """(N) values whitened. From the first one on, so that the mean of equal values has no rounding error."""
    if len(x) == 0:
        return x
    shifted = x - x[0]
    centred = shifted - shifted.mean()
    return centred * torch.rsqrt(centred.var() + EPSILON) if len(x) > 1 else centred


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """How much of the returns' variance the critic foresees: 1 - Var(returns - values) / Var(returns).

    1 is perfect, 0 no better than a constant, below 0 worse.

    Args:
        values: (B, T) What the critic said.
        returns: (B, T) What came.
        mask: (B, T) Real tokens.

    Returns:
        The share; 0.0 if there are fewer than two tokens or the returns do not vary.
    """
    real = mask.bool()
    came = returns[real].detach().to("cpu", torch.float64)
    missed = came - values[real].detach().to("cpu", torch.float64)
    if len(came) < 2 or (variance := float((came - came[0]).var())) == 0:
        return 0.0
    return 1 - float(missed.var()) / variance


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """The mean of x (B, T) over real tokens, a scalar; 0 if there are none."""
    real = mask.bool()
    return torch.where(real, x, 0).sum() / real.sum().clamp(min=1)
