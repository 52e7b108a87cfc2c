"""The files that a task was published as: local copies, else the hub's at a pinned commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from ragtrials.files import find_data_file
from ragtrials.hub import read_hub
from ragtrials.records import Record


@dataclass(frozen=True, slots=True)
class Hub:
    """A dataset of the Hugging Face hub.

    Attributes:
        dataset: The hub's id, e.g. "hotpotqa/hotpot_qa".
        config: The dataset's configuration.
        revision: The commit that is read.
        splits: The hub's name of each published split.
        rows: How many records each published split has.
        original_layout: Turns the hub's columns back into the fields of the published file; by default they
            are those.
    """

    dataset: str
    config: str
    revision: str
    splits: Mapping[str, str]
    rows: Mapping[str, int]
    original_layout: Callable[[Record], Mapping[str, Any]] = attrgetter("fields")

    def records(self, split: str, instead: str) -> Iterator[Record]:
        """The records of a published split; `instead` says where a local file would be looked for."""
        rows = self.rows[split]
        for row in read_hub(self.dataset, self.config, self.splits[split], self.revision, rows, instead):
            yield Record(self.original_layout(row), row.path, row.number)


@dataclass(frozen=True, slots=True)
class Files:
    """The published files `<data_dir>/<task>/<split>.<suffix>[.gz]` of a task.

    Attributes:
        task: The task's name.
        splits: The published splits.
        suffix: What the files' names end with, e.g. "jsonl".
        read: Reads one of them.
        hub: Where to read if none of the files is local; None if nowhere.
    """

    task: str
    splits: tuple[str, ...]
    suffix: str
    read: Callable[[Path], Iterable[Record]]
    hub: Hub | None = None

    def has(self, data_dir: Path | None, *splits: str) -> bool:
        """Whether one of these splits (of all, if none is named) is a local file."""
        if data_dir is None:
            return False
        names = [f"{split}.{self.suffix}" for split in splits or self.splits]
        return any((data_dir / self.task / f"{name}{gz}").is_file() for name in names for gz in ("", ".gz"))

    def records(self, data_dir: Path | None, split: str) -> Iterable[Record]:
        """The records of a published split. Local files and the hub are never mixed.

        Raises:
            UserError: There is no such file; the message says where to put it.
        """
        if self.hub is None or split not in self.hub.splits or self.has(data_dir):
            return self.read(find_data_file(data_dir, self.task, split, [self.suffix]))
        name = f"{self.task}/{split}.{self.suffix}[.gz]"
        return self.hub.records(split, f"put {name} into a folder named by --data-dir or RAGTRIALS_DATA")
