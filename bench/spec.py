"""The one frozen object that names everything which can change a number; its digest is the run's id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ragtrials
from ragtrials.config import plain
from ragtrials.signature import digest


def named_settings(config: Any) -> dict[str, Any]:
    """The settings of a method and of their groups, as JSON values.

    A setting that is None is not named, so that a new optional setting renames no run.

    Args:
        config: A method's `Config`, or a group of settings in it.
    """
    settings: dict[str, Any] = _without_none(plain(config))
    return settings


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run computes.

    Attributes:
        method: Name of the method.
        config: The method's settings, as `named_settings` gives them.
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
        train_id: Digest of all that training saw; none for a method that is not trained.
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
    train_id: str | None = None

    @property
    def signature(self) -> dict[str, Any]:
        """What the id is the digest of, and what a record keeps of the spec, as JSON values.

        A part that is None is not named, so that a new optional part renames no run. `retriever` always is:
        it has been from the start.
        """
        return {
            name: value for name, value in plain(self).items() if value is not None or name == "retriever"
        }

    @property
    def id(self) -> str:
        """Ten hex digits."""
        return digest(self.signature)

    @property
    def folder(self) -> str:
        """The run's folder below its suite: `task/method-sSEED-ID`."""
        return f"{self.task}/{self.method}-s{self.seed}-{self.id}"


def _without_none(value: Any) -> Any:
    """A plain value without the entries of its tables, at any depth, that are None."""
    if not isinstance(value, dict):
        return value
    return {name: _without_none(entry) for name, entry in value.items() if entry is not None}
