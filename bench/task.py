"""The contract of a task: where its questions come from and how an answer is judged."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ragtrials import metrics
from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError

DATA_VARIABLE = "RAGTRIALS_DATA"


@dataclass(frozen=True, slots=True)
class TaskCard:
    """What a reader needs to know before trusting a number on this task.

    Attributes:
        title: The dataset's name.
        version: Version of this adapter's output; raised whenever an example or passage changes.
        source: Where the data come from (a paper's site, a hub id, a package).
        revision: The pinned revision of the source.
        checksums: SHA-256 of source files, by file name, where they are known.
        licence: The licence of the data.
        sizes: Number of examples of each published split, and "corpus" for passages, as published.
        metrics: Names of the metrics, versions included; their values are merged.
        main_metric: The value that ranks methods.
        reported_split: The split that is evaluated and never trained on.
        splits: What each split is made of.
        citation: How to cite the dataset.
    """

    title: str
    version: str
    source: str
    revision: str
    licence: str
    sizes: Mapping[str, int]
    metrics: tuple[str, ...]
    main_metric: str
    reported_split: str
    splits: Mapping[str, str]
    citation: str
    checksums: Mapping[str, str] = field(default_factory=dict)


class Task(ABC):
    """A dataset in its published format.

    Args:
        data_dir: A folder with one sub-folder per task; by default what RAGTRIALS_DATA names.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    card: ClassVar[TaskCard]
    has_corpus: ClassVar[bool] = True
    """Whether the task brings passages to retrieve.

    If not, `corpus` raises a UserError, and `supporting` can only name passages of a corpus that is given
    with --corpus.
    """
    reads_file: ClassVar[bool] = False
    """Whether the questions are a file of the user's: `TASKS.load("NAME:FILE")` then gives the class that
    `of_file` makes, and the class that is called NAME alone is no task yet but a card."""
    file: ClassVar[Path | None] = None
    """The file that `of_file` bound the class to."""

    choices: ClassVar[tuple[str, ...]] = ()
    """The answers that the task chooses among; empty where any text may be one. Between choices there is no
    partly right, so a reward made of scores takes the exact match alone (SmartRAG)."""
    several_answers: ClassVar[bool] = False
    """Whether a question may have several answers, so that a prediction may be a list of them."""
    own_parts: ClassVar[tuple[str, ...]] = ()
    """What a prediction in the dataset's own format gives beside the answer, e.g. ("sp",)."""

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_folder(data_dir)

    @classmethod
    def of_file(cls, file: str) -> type[Task]:
        """The task of the questions in a user's file, for classes with `reads_file`.

        Args:
            file: What stands behind the colon of NAME:FILE.

        Raises:
            UserError: The task reads no such file (the default), or none is named. Whether it exists is
                found when it is read.
        """
        raise UserError(
            f"task {cls.name} reads no file of yours: write {cls.name} instead of {cls.name}:{file}"
        )

    @abstractmethod
    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order.

        Raises:
            UserError: The split is unknown, or the data are missing or damaged.
        """

    @abstractmethod
    def corpus(self) -> Corpus:
        """The passages that retrieval searches."""

    def training_corpus(self) -> Corpus:
        """The passages that retrieval searches while training, on train and validation; by default `corpus`.

        A corpus that is made of the evaluated questions' own paragraphs has nothing to do with training
        questions, so that such a task has another one for them. `supporting` of an example that is not
        evaluated names passages of this corpus.
        """
        return self.corpus()

    def left_out(self, split: str) -> Mapping[str, str]:
        """Published records of a split's file that are in no split, by id with the reason; none by default.

        Training examples with a question that is evaluated, and questions without an answer, are left out.
        """
        return {}

    def available_offline(self) -> bool:
        """Whether `examples` works without a network."""
        return True

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """The card's metrics for one prediction, merged; values in 0..1."""
        scores: dict[str, float] = {}
        for name in self.card.metrics:
            scores.update(metrics.score(name, prediction, example.aliases))
        return scores

    def score_several(self, answers: Sequence[str], example: Example) -> dict[str, float]:
        """The scores of a prediction that is a list of answers; needed where `several_answers` is set."""
        raise UserError(f"task {self.name} takes one answer to a question, not a list of {len(answers)}")

    def score_parts(self, answer: str | None, parts: Mapping[str, Any], example: Example) -> dict[str, float]:
        """What a prediction in the dataset's own format scores beside the answer.

        Args:
            answer: The predicted answer; None if there is none.
            parts: The `own_parts` that are predicted; None where this question has none.
            example: The question.

        Raises:
            UserError: The dataset has no such format (the default).
        """
        raise UserError(f"task {self.name} scores answers alone, not {' and '.join(parts)}")

    def remarks(self, examples: Sequence[Example]) -> list[str]:
        """What a reader of scores on these examples should know; nothing by default."""
        return []

    def unknown_split(self, split: str) -> UserError:
        """The error for a split that this task does not have."""
        return UserError(f"task {self.name} has no split {split!r}: use one of {', '.join(self.card.splits)}")


def data_folder(given: Path | None) -> Path | None:
    """The folder of data files: the one that is given, else what RAGTRIALS_DATA names, if anything."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if given is None and named else given


def sample(examples: Sequence[Example], limit: int | None) -> list[Example]:
    """`limit` examples, the same ones for every method and seed, in published order.

    Those with the smallest SHA-256 of their id are taken, so a smaller sample is part of a larger one
    and neither the file's order nor its length decides who is in.
    """
    if limit is None or limit >= len(examples):
        return list(examples)
    chosen = sorted(examples, key=lambda e: hashlib.sha256(e.id.encode("utf-8", "surrogatepass")).digest())
    ids = {example.id for example in chosen[:limit]}
    return [example for example in examples if example.id in ids]
