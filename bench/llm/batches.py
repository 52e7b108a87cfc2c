"""Requests on their way through a model: which are batched together, and how a batch is padded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ragtrials.llm.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Job:
    """One request on its way: where its result belongs and what the model reads.

    Attributes:
        index: The request's place.
        prompt: The prompt's ids.
        seed: What decides its sampling; 0 for greedy decoding.
        allowed: The ids that may be chosen; () for all.
        continuation: The ids to score, if any.
        text: Their text.
    """

    index: int
    prompt: Prompt
    seed: int = 0
    allowed: tuple[int, ...] = ()
    continuation: tuple[int, ...] = ()
    text: str = ""

    @property
    def order(self) -> tuple[Any, ...]:
        """Longest first, so that the batch that needs most memory comes first. The rest of the key makes
        the batches, and with them every last bit of the results, independent of the requests' order, and
        equal prompts neighbours, so that samples of one prompt share its reading."""
        ids = self.prompt.ids + self.continuation
        return (-len(ids), ids, self.seed, self.allowed)


def batches(jobs: Sequence[Job], size: int) -> Iterator[list[Job]]:
    """All jobs in their order, `size` at a time."""
    ordered = sorted(jobs, key=lambda job: job.order)
    return (ordered[start : start + size] for start in range(0, len(ordered), size))


def left_padded(
    rows: Sequence[tuple[int, ...]], pad: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """(batch, longest) ids with padding in front, and the mask of that shape that is 0 there."""
    longest = max(map(len, rows))
    ids = [[pad] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
