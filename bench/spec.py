"""The one frozen object that names everything which can change a number; its digest is the run's id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ragtrials
from ragtrials.config import plain
from ragtrials.signature import digest


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run computes.

    Attributes:
        method: Name of the method.
        config: The method's settings, all of them.
        task: Name of the task.
        task_version: Version of the task's adapter.
        split: The evaluated split.
        sample: "all", or "N of M".
        examples: Digest of the evaluated examples, answers included.
        training: Digest of the training examples that the method may look at ("" if it looks at none).
        metrics: Names of the metrics, versions included.
        retriever: The retriever's signature, the corpus included; none if the method never retrieves.
        engine: The engine's signature, the model's weights included.
        seed: Decides few-shot examples and sampling.
        chunk: How many questions are driven together; it decides which prompts share a batch.
        version: Version of this package.
    """

    method: str
    config: Mapping[str, Any]
    task: str
    task_version: str
    split: str
    sample: str
    examples: str
    training: str
    metrics: tuple[str, ...]
    retriever: Mapping[str, Any] | None
    engine: Mapping[str, Any]
    seed: int
    chunk: int
    version: str = ragtrials.__version__

    @property
    def id(self) -> str:
        """Ten hex digits."""
        return digest(plain(self))

    @property
    def folder(self) -> str:
        """The run's folder below its suite: `task/method-sSEED-ID`."""
        return f"{self.task}/{self.method}-s{self.seed}-{self.id}"
