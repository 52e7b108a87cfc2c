"""Passages on disk: written once, memory-mapped, found by position or id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.retrieval.strings import DuplicateKeyError, StringTable, write_table


class PassageStore:
    """The passages of one corpus in its order, never held in memory. Made by `write`, opened by `open`."""

    def __init__(self, table: StringTable) -> None:
        self._table = table

    @staticmethod
    def write(folder: Path, passages: Iterable[Passage]) -> int:
        """Stream passages into `folder` (created if missing) and return their number.

        Raises:
            UserError: Two passages have the same id.
            FileExistsError: The folder has a store already.
        """
        folder.mkdir(parents=True, exist_ok=True)
        rows = ((passage.id, passage.title, passage.text) for passage in passages)
        try:
            return write_table(folder, rows, width=3)
        except DuplicateKeyError as error:
            raise UserError(
                f"passages {error.first + 1} and {error.second + 1} of the corpus have the same id "
                f"{error.key!r}: give every passage an id of its own"
            ) from error

    @classmethod
    def open(cls, folder: Path) -> PassageStore:
        """Map what `write` made.

        Raises:
            UserError: A file is missing or damaged.
        """
        return cls(StringTable(folder))

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, position: int) -> Passage:
        """The passage at a position, counted from 0.

        Raises:
            IndexError: There is none; negative positions are refused, not counted from the end.
        """
        return Passage(*self._table[position])

    def __iter__(self) -> Iterator[Passage]:
        return (Passage(*row) for row in self._table)

    def position(self, passage_id: str) -> int | None:
        """Where the passage with this id stands, or None if the corpus has none."""
        return self._table.position(passage_id)
