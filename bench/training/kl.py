"""How strongly PPO is held to its reference policy: the weight beta of the KL penalty, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragtrials.errors import RunFailure, UserError

LARGEST_ERROR = 0.2
"""The relative error of the KL is cut to this size, so that one odd step moves beta little."""


@dataclass(frozen=True, slots=True)
class KlControl:
    """The controller of beta (Ziegler et al. 2019, §2.2), with the floor that MMOA-RAG adds (its Table 6).

    After a step beta grows where the policy was further from its reference than `target`, and shrinks
    where it was nearer. Nothing bounds it from above: the paper's "maximum" is the value it starts from.

    Attributes:
        init: Beta of the first step, in units of reward per nat.
        target: The wanted KL of a response, in nats: summed over its tokens.
        horizon: Samples in which a KL that is off by a fifth changes beta by about a fifth.
        floor: Beta never falls below this; 0 for no floor.
        adaptive: Whether beta changes at all; `target`, `horizon` and `floor` count only if it does.
    """

    init: float = 0.2
    target: float = 6.0
    horizon: int = 10000
    floor: float = 0.0
    adaptive: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.init < math.inf:
            raise UserError(f"kl.init must be at least 0 and finite, not {self.init}")
        if not 0 < self.target < math.inf:
            raise UserError(f"kl.target must be above 0 and finite, not {self.target}")
        if self.horizon < 1:
            raise UserError(f"kl.horizon must be at least 1, not {self.horizon}")
        if not 0 <= self.floor < math.inf:
            raise UserError(f"kl.floor must be at least 0 and finite, not {self.floor}")
        if self.adaptive and self.floor > self.init:
            raise UserError(f"kl.floor must be at most kl.init ({self.init}), not {self.floor}")

    def updated(self, beta: float, kl: float, samples: int) -> float:
        """Beta of the next step: max(floor, beta · (1 + clip(kl / target - 1, ±0.2) · samples / horizon)).

        Args:
            beta: What this step used.
            kl: What this step saw, in nats: the mean over its samples of the sum over their tokens of
                log pi - log pi_reference. A mean over few samples can be below 0.
            samples: Responses in this step, of all agents and all processes.

        Raises:
            RunFailure: `kl` is not a number.
        """
        if not self.adaptive:
            return beta
        if math.isnan(kl):
            raise RunFailure("the KL to the reference is not a number: lower the learning rate")
        error = min(max(kl / self.target - 1, -LARGEST_ERROR), LARGEST_ERROR)
        return max(beta * (1 + error * samples / self.horizon), self.floor)
