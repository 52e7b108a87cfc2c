"""What PPO learns from: turns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """One sampled response of one agent.

    Attributes:
        role: The agent.
        episode: Which question of the buffer it belongs to.
        prompt_ids: What the agent read.
        response_ids: What was sampled, the end of the turn included if it came; at least one token.
        reward: What the response earned, given at its last token.
        allowed: The ids that the choice was limited to; () if it was free.
        before: The prompts and responses of earlier turns of the episode, which a central critic sees.
    """

    role: str
    episode: int
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    reward: float
    allowed: tuple[int, ...] = ()
    before: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.prompt_ids or not self.response_ids:
            raise ValueError(f"a turn of {self.role} has no prompt, or nothing was sampled")
