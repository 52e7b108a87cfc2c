"""The one object that names everything a training sees; its digest names the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ragtrials
from ragtrials.config import plain
from ragtrials.signature import digest, version_of


def library_versions() -> dict[str, str]:
    """The libraries that do the training; the engine's signature names torch and transformers."""
    return {name: version_of(name) for name in ("trl", "peft", "accelerate")}


@dataclass(frozen=True, slots=True)
class TrainSpec:
    """What a training computes.

    Attributes:
        method: Name of the method.
        config: Its settings, without those that are None and those that only evaluation reads.
        task: Name of the task.
        task_version: Version of the task's adapter.
        examples: Digest of the training examples, in their order.
        development: Digest of the held-out examples ("" if there are none).
        metrics: Names of the metrics, which the reward comes from.
        reward: The score that is the reward.
        retriever: Signature of the retriever over the training corpus; none if nothing is retrieved.
        engine: Signature of the engine with the untrained model.
        seed: Decides the examples, their order, sampling and adapters.
        chunk: How many questions are driven together.
        libraries: Versions of what trains.
        version: Version of this package.
    """

    method: str
    config: Mapping[str, Any]
    task: str
    task_version: str
    examples: str
    development: str
    metrics: tuple[str, ...]
    reward: str
    retriever: Mapping[str, Any] | None
    engine: Mapping[str, Any]
    seed: int
    chunk: int
    libraries: Mapping[str, str] = field(default_factory=library_versions)
    version: str = ragtrials.__version__

    @property
    def id(self) -> str:
        """Ten hex digits, the `train_id`."""
        return digest(plain(self))

    @property
    def folder(self) -> str:
        """The checkpoint's folder: `train/task/method-sSEED-ID`."""
        return f"train/{self.task}/{self.method}-s{self.seed}-{self.id}"
