"""The losses of PPO, token by token, and the weights with which tokens enter their sum.

The sources are MMOA-RAG (arXiv:2501.15228, eq. 10-16) and Schulman et al. 2017 (arXiv:1707.06347).

Tensors are (B, T): B responses of at most T tokens, padded on the right. A mask (B, T), bool or float, is 1
on real tokens; a row may have none. What stands on padding, NaN included, never matters: losses, weights and
gradients are 0 there. The loss of a minibatch is the sum of losses times `token_weights`.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor


def policy_loss(
    logprobs: Tensor, old: Tensor, advantages: Tensor, clip: float | None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The clipped surrogate (Schulman et al. 2017, eq. 7): -min(r A, clip(r, 1 ± c) A).

    MMOA-RAG has it among its eq. 10-16, printed without the minus, with c = 0.2.

    Args:
        logprobs: (B, T) log pi of each sampled token, with gradient, in nats.
        old: (B, T) The same under the policy that sampled it; r = exp(logprobs - old).
        advantages: (B, T) A. A token with A = 0 has loss and gradient 0 whatever its probabilities are.
        clip: c; None switches the clip off: the plain surrogate -r A, whose gradient at r = 1 is that of
            the policy gradient.
        mask: (B, T) Real tokens; needed where something else than A = 0 stands on padding.

    Returns:
        The loss of each token, and where the clip is in force (bool), which is where the gradient ends:
        r is beyond the bound on the side to which A pushes it. Both (B, T).
    """
    if mask is not None:
        advantages = torch.where(mask.bool(), advantages, 0)
    log_ratio = logprobs - old
    up, down = advantages > 0, advantages < 0
    clipped = torch.zeros_like(up)
    bound = torch.ones_like(advantages)
    if clip is not None:
        ratio = log_ratio.detach().exp()
        clipped = (up & (ratio > 1 + clip)) | (down & (ratio < 1 - clip))
        bound = 1 + clip * advantages.sign()
    # exp() sees only the tokens that have a gradient: elsewhere it may overflow, and 0 · inf is NaN.
    moving = (up | down) & ~clipped
    ratio = torch.where(moving, log_ratio, 0).exp()
    return -advantages * torch.where(clipped, bound, ratio), clipped


def value_loss(
    values: Tensor, old: Tensor, returns: Tensor, clip: float | None, mask: Tensor | None = None
) -> Tensor:
    """The critic's squared error, with the larger one of the free and the clipped value (MMOA-RAG eq. 16).

    max((V - return)², (clip(V, V_old ± c) - return)²). The paper has no factor 1/2; its released code has
    one, so that the paper's weight alpha = 0.1 of this loss is 0.05 there.

    Args:
        values: (B, T) V, with gradient.
        old: (B, T) V when the tokens were sampled.
        returns: (B, T) What V should have been.
        clip: c; None switches the clip off.
        mask: (B, T) Real tokens; without it all are.

    Returns:
        (B, T) The loss of each token.
    """
    if mask is not None:
        real = mask.bool()
        values, old, returns = (torch.where(real, x, 0) for x in (values, old, returns))
    free = (values - returns).square()
    if clip is None:
        return free
    return torch.maximum(free, (torch.clamp(values, old - clip, old + clip) - returns).square())


def token_weights(mask: Tensor, how: Literal["token", "turn", "role"], roles: Tensor) -> Tensor:
    """Weights of the tokens of a minibatch in its loss, the sum over tokens of weight times loss.

    They are made once for the whole minibatch. Micro-batches take their rows of them and add up their
    gradients, which are those of the whole however it is split. A mean inside each micro-batch would make
    a token weigh more the fewer tokens happen to lie beside it.

    Args:
        mask: (B, T) Real tokens.
        how: "token": every token weighs the same, so long responses more (MMOA-RAG's released code, within
            each of its micro-batches). "turn": every response the same, shared by its tokens. "role": every
            role that has tokens the same, shared by its tokens.
        roles: (B) int64 Which agent each response is of; only "role" looks at it.

    Returns:
        (B, T) Weights, at least 0, with the sum 1, or 0 if there is no real token. They have the mask's
        dtype, or torch's default one if the mask is bool.
    """
    real = mask.bool()
    lengths = real.sum(1)
    spoke = lengths > 0
    if how == "token":
        shared_by, parts = lengths.sum().expand_as(lengths), 1
    elif how == "turn":
        shared_by, parts = lengths, int(spoke.sum())
    else:
        shared_by = ((roles.unsqueeze(1) == roles) * lengths).sum(1)
        parts = len(roles[spoke].unique())
    dtype = mask.dtype if mask.is_floating_point() else torch.get_default_dtype()
    return real.to(dtype) / (shared_by * parts).clamp(min=1).unsqueeze(1)


def masked_logprobs(
    logits: Tensor, ids: Tensor, temperature: float | Tensor, allowed: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of sampled tokens, and the entropy of what they were sampled from.

    The distribution is softmax(logits / temperature), over the allowed tokens alone where these are given,
    as in constrained sampling. It is computed in float32, or in float64 if the logits are.

    Args:
        logits: (N, V) One row for each real token.
        ids: (N) int64 The sampled tokens.
        temperature: Above 0; one for all rows, or (N).
        allowed: (N, V) bool What could be sampled; None for the whole vocabulary.

    Returns:
        Log-probabilities and entropies, in nats, both (N) with finite gradients.

    Raises:
        ValueError: A sampled token is not among the allowed ones: its ratio would not be a number.
    """
    scaled = logits.to(torch.promote_types(logits.dtype, torch.float32))
    scaled = scaled / (
        temperature.unsqueeze(1).to(scaled) if isinstance(temperature, Tensor) else temperature
    )
    if allowed is not None:
        if not bool(allowed.gather(1, ids.unsqueeze(1)).all()):
            raise ValueError("a sampled token is not among the allowed ones")
        scaled = scaled.masked_fill(~allowed, -torch.inf)
    every = scaled.log_softmax(1)
    # The smallest number in place of -inf, since 0 · -inf is NaN.
    finite = every.clamp(min=torch.finfo(every.dtype).min)
    return every.gather(1, ids.unsqueeze(1)).squeeze(1), -(every.exp() * finite).sum(1)
