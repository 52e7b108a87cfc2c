"""The trajectories that turns make up: along them credit is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from ragtrials.training.turns import Turn


def trajectories(
    turns: Sequence[Turn], credit: Literal["turn", "episode"]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the tokens of each trajectory stand in a buffer of responses.

    Args:
        turns: (B) turns; those of an episode in the order in which they were taken.
        credit: Whether a trajectory is one turn, or all turns of an episode one after the other.

    Returns:
        Positions in the flattened (B, T) responses, T the longest one, and the mask of real ones, both
        (trajectories, longest trajectory).
    """
    width = max(len(turn.response_ids) for turn in turns)
    found: dict[tuple[int, int], list[int]] = {}
    for row, turn in enumerate(turns):
        key = (turn.episode, row if credit == "turn" else 0)
        found.setdefault(key, []).extend(range(row * width, row * width + len(turn.response_ids)))
    longest = max(map(len, found.values()))
    places = torch.zeros(len(found), longest, dtype=torch.long)
    mask = torch.zeros(len(found), longest, dtype=torch.bool)
    for row, at in enumerate(found.values()):
        places[row, : len(at)] = torch.tensor(at)
        mask[row, : len(at)] = True
    return places, mask


def response_mask(turns: Sequence[Turn]) -> torch.Tensor:
    """(B, T) bool: which places of right-padded responses hold a token."""
    lengths = torch.tensor([len(turn.response_ids) for turn in turns])
    return torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
