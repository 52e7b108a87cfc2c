"""The value head: one number for each state, from a language model's last hidden state."""

from __future__ import annotations

import torch
from torch import nn


class ValueHead(nn.Module):  # type: ignore[misc]
    """A linear map from a hidden state to an estimate of the return, 0 before any training.

    It stays in float32 whatever the language model computes in: its targets are rewards, not directions.

    Args:
        hidden_size: H, the size of a hidden state.
        device: Where it is.
    """

    def __init__(self, hidden_size: int, device: str = "cpu") -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size, device=device))
        self.bias = nn.Parameter(torch.zeros((), device=device))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """From (..., H) hidden states to (...) values in float32."""
        # Not `F.linear`, which mixed precision would compute in bfloat16.
        return (states.float() * self.weight).sum(dim=-1) + self.bias
