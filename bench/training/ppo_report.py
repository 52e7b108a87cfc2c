"""What a PPO step looked like, as scalars: over all agents, and for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ragtrials.training.advantages import explained_variance, masked_mean

if TYPE_CHECKING:
    from ragtrials.training.ppo import Buffer


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the optimiser.

    Attributes:
        policy_loss: The surrogate's loss on the minibatch.
        value_loss: The critic's loss on it.
        norm: Of the gradient, before it was clipped.
        clipped: For each micro-batch the places of its turns in the buffer, and in how many of their tokens
            the clip was in force.
    """

    policy_loss: float
    value_loss: float
    norm: float
    clipped: Sequence[tuple[Tensor, Tensor]]


def report(buffer: Buffer, passes: Sequence[Pass], beta: float, rate: float) -> dict[str, float]:
    """The scalars of a step.

    Args:
        buffer: What was learnt from.
        passes: The optimiser's steps.
        beta: Weight of the KL penalty in this step.
        rate: Learning rate of this step.

    Returns:
        Means over the step: `policy_loss`, `value_loss`, `grad_norm`; `beta`, `learning_rate`; and for all
        agents, and with "role/" in front for each: `score`, what a turn earned; `kl` of a turn, in nats,
        summed over its tokens; `length` in tokens; `entropy` in nats per token; `clip_fraction`, the share
        of tokens whose gradient the clip ended; `explained_variance` of the returns by the values.
    """
    scalars = {
        "policy_loss": _mean([p.policy_loss for p in passes]),
        "value_loss": _mean([p.value_loss for p in passes]),
        "grad_norm": _mean([p.norm for p in passes]),
        "beta": beta,
        "learning_rate": rate,
    }
    clipped = torch.zeros(len(buffer.rows))
    for one in passes:
        for places, counts in one.clipped:
            clipped[places] += counts
    reads = sum(len(places) for one in passes for places, _ in one.clipped) / len(buffer.rows)
    turns = [row.turn for row in buffer.rows]
    groups = {"": list(range(len(turns)))}
    for place, turn in enumerate(turns):
        groups.setdefault(f"{turn.role}/", []).append(place)
    for prefix, places in groups.items():
        mask = buffer.mask[places]
        kl = torch.where(mask, buffer.old[places] - buffer.reference[places], 0)
        scalars |= {
            f"{prefix}score": _mean([turns[place].reward for place in places]),
            f"{prefix}kl": float(kl.sum() / len(places)),
            f"{prefix}length": float(mask.sum() / len(places)),
            f"{prefix}entropy": float(masked_mean(buffer.entropy[places], mask)),
            f"{prefix}clip_fraction": float(clipped[places].sum() / (mask.sum() * reads)),
            f"{prefix}explained_variance": explained_variance(
                buffer.values[places], buffer.returns[places], mask
            ),
        }
    return scalars


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
