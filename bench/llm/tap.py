"""Keeps hidden states that an engine computes on its way, for those who would compute them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch


class StateTap:
    """The hidden states that enter one layer while an engine generates.

    PPO reads what it has just sampled. What enters its lowest adapter has then been computed already, by the
    engine that sampled, and is the same in every later reading.

    Args:
        layer: A decoder layer of transformers; a hook stays on it.
    """

    def __init__(self, layer: Any) -> None:
        self._heard: list[torch.Tensor] | None = None
        self._kept: dict[tuple[tuple[int, ...], tuple[int, ...]], torch.Tensor] = {}
        layer.register_forward_pre_hook(self._hear, with_kwargs=True)

    def _hear(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._heard is not None:
            self._heard.append(args[0] if args else kwargs["hidden_states"])

    @contextmanager
    def listening(self) -> Iterator[list[torch.Tensor]]:
        """The time of one batch's generation; what is heard is (batch, new positions, H) for each pass."""
        heard: list[torch.Tensor] = []
        self._heard = heard
        try:
            yield heard
        finally:
            self._heard = None

    def keep(
        self,
        heard: Sequence[torch.Tensor],
        prompts: Sequence[tuple[int, ...]],
        sampled: Sequence[tuple[int, ...]],
    ) -> None:
        """Keep a batch's states.

        Args:
            heard: Those of a left-padded batch, from its first position on.
            prompts: (batch,) The ids of each row without padding.
            sampled: (batch,) What each row went on with, up to its own end.
        """
        states = torch.cat(list(heard), dim=1)
        longest = max(map(len, prompts))
        for row, prompt, ids in zip(states, prompts, sampled, strict=True):
            start = longest - len(prompt)
            # The last token was sampled, but nothing has read it.
            self._kept[prompt, ids] = row[start : longest + len(ids) - 1].clone()

    def take(self, prompt: tuple[int, ...], sampled: tuple[int, ...]) -> torch.Tensor | None:
        """The (length - 1, H) states of a prompt and what followed, but the last; None if unknown."""
        return self._kept.get((prompt, sampled))

    def forget(self) -> None:
        """Free the memory of all that is kept."""
        self._kept.clear()
