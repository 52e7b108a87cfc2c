"""What a training did and what it cost, as it stands in the checkpoint and in the record of a run."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragtrials.chunks import SERVED

_COUNTS_OR_TIMES = re.compile(r"^(step|epoch|total_flos|num_tokens|train_.*)$|_(runtime|per_second)$")


@dataclass(frozen=True, slots=True)
class RolloutReport:
    """What making the training data cost: requests that a model or the retriever really served.

    Attributes:
        seconds: Driving, engine and retriever included.
        retrieval_calls: Served queries.
        llm_calls: Served generations and scorings.
        prompt_tokens: Tokens read.
        completion_tokens: Tokens sampled.
    """

    seconds: float = 0.0
    retrieval_calls: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @classmethod
    def of(cls, seconds: float, served: Mapping[str, Any]) -> RolloutReport:
        """What requests took, by the names of `Timing`; those that are not named were none."""
        return cls(seconds, *(served.get(name, 0) for name in SERVED))

    def __add__(self, more: RolloutReport) -> RolloutReport:
        return RolloutReport(
            self.seconds + more.seconds, *(getattr(self, name) + getattr(more, name) for name in SERVED)
        )


@dataclass(frozen=True, slots=True)
class StageReport:
    """One role trained once.

    Attributes:
        stage: Its name, unique in the training.
        role: The agent that was trained; several with "+" between them.
        kind: "sft", "dpo" or "ppo".
        rows: Demonstrations, preferences or sampled turns that were trained on.
        held_out: Rows that picked the best step; 0 if the last step counts.
        tokens: Tokens read by the policy, prompts included, over all epochs; a preference's prompt is read
            twice, once before each continuation. Padding does not count.
        steps: Optimiser steps.
        parameters: Numbers that were trained.
        seconds: In the trainer, without the rollouts between its steps.
        loss: Mean training loss.
        last: The last scalars of the log (loss, token accuracy, DPO's margin and accuracy, ...).
        rollouts: What sampling between its steps cost.
    """

    stage: str
    role: str
    kind: str
    rows: int
    held_out: int
    tokens: int
    steps: int
    parameters: int
    seconds: float
    loss: float
    last: Mapping[str, float] = field(default_factory=dict)
    rollouts: RolloutReport = field(default_factory=RolloutReport)


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """A whole training.

    Attributes:
        examples: Training examples that were used.
        stages: The trained stages, in order.
        rollouts: What making the training data cost, that of stages included.
        seconds: Everything, earlier killed processes included as far as their work was kept.
        device: Where it ran.
        peak_memory_mb: Largest memory: of the device on a GPU, else of the process.
        statistics: What the method says about its data (kept pairs, reward spread, ...).
    """

    examples: int
    stages: tuple[StageReport, ...]
    rollouts: RolloutReport
    seconds: float
    device: str
    peak_memory_mb: int
    statistics: Mapping[str, Any] = field(default_factory=dict)


def peak_memory_mb(device: str) -> int:
    """The largest memory so far: what torch allocated on a GPU, else the process's resident size."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.max_memory_allocated(device) / 2**20)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak / (2**20 if sys.platform == "darwin" else 2**10))  # macOS counts bytes, Linux kB


def last_scalars(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The last value of every scalar in a trainer's history that is no count of work and no time."""
    last: dict[str, float] = {}
    for entry in entries:
        last.update({name: float(v) for name, v in entry.items() if isinstance(v, int | float)})
    return {name: round(value, 6) for name, value in last.items() if not _COUNTS_OR_TIMES.search(name)}
