"""Rows of strings on disk, read through memory maps: by position, and by the first string of a row.

A table is a folder of four flat files: all strings as one UTF-8 blob, where each string ends in it, the
sorted 64-bit hashes of the rows' keys, and the row each hash belongs to. Nothing is read before it is
asked for, so a table of 21 million rows opens as fast as one of twenty; and what was read is given back
to the system from time to time, so that whoever reads all of a table does not hold all of it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

from ragtrials.errors import UserError

FORMAT = 1
"""Raised whenever the layout changes."""

BUFFERED_ROWS = 2**16
"""Rows whose offsets and hashes wait in memory before they are written."""

SORTED_ROWS = 2**21
"""Rows whose hashes are sorted in memory together. With `BUFFERED_ROWS` it bounds the memory of writing."""

RELEASED_BYTES = 2**27
"""Mapped bytes that reading may bring into the process before they are given back."""

_AROUND = 2**16
"""What one read may bring in beside its own bytes: the system maps the pages around them as well."""

Integers: TypeAlias = "memoryview | array[int]"

_BLOB, _ENDS, _HASHES, _ROWS, _CARD = "strings.utf8", "ends.i64", "hashes.u64", "rows.i64", "table.json"


class DuplicateKeyError(ValueError):
    """Two rows of a table have the same key."""

    def __init__(self, key: str, first: int, second: int) -> None:
        super().__init__(f"rows {first} and {second} have the same key {key!r}")
        self.key, self.first, self.second = key, first, second


class StringTable:
    """A table that `write_table` made, memory-mapped.

    Raises:
        UserError: A file of the folder is missing, has the wrong size or another format.
    """

    def __init__(self, folder: Path) -> None:
        try:
            card = json.loads((folder / _CARD).read_text("utf-8"))
            if card["format"] != FORMAT:
                raise ValueError(f"{_CARD} has format {card['format']}, not {FORMAT}")
            self._maps = _Maps()
            self._strings = _Strings(folder, card["rows"], card["width"], self._maps)
            self._hashes = self._maps.integers(folder / _HASHES, "Q", card["rows"])
            self._rows = self._maps.integers(folder / _ROWS, "q", card["rows"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(folder, error) from error

    def __len__(self) -> int:
        return self._strings.rows

    def __getitem__(self, row: int) -> tuple[str, ...]:
        """The strings of one row.

        Raises:
            IndexError: There is no such row. A negative one is refused too: searches that say "nothing
                found" with −1 must not end at the last row.
        """
        if not 0 <= row < len(self):
            raise IndexError(f"no row {row} in a table of {len(self)}")
        return self._strings.row(row)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(self._strings.row, range(len(self)))

    def position(self, key: str) -> int | None:
        """The row whose first string is `key`, or None."""
        # The last 13 steps of a binary search stay within `_AROUND`; those before read somewhere else.
        self._maps.count(max(2, len(self).bit_length() - 11) * _AROUND)
        wanted = _hash(key)
        place = bisect_left(self._hashes, wanted)
        while place < len(self) and self._hashes[place] == wanted:
            row = self._rows[place]
            if self._strings.key(row) == key:
                return row
            place += 1
        return None


def write_table(folder: Path, rows: Iterable[Sequence[str]], width: int) -> int:
    """Stream rows of `width` strings into an existing folder and return their number.

    Memory stays below 200 MB for any number of rows. Lone surrogates survive.

    Raises:
        DuplicateKeyError: Two rows begin with the same string.
        FileExistsError: The folder has a table already; another process may have mapped it.
    """
    unsorted = folder / "hashes.unsorted"
    count = _write_strings(folder, unsorted, rows)
    strings = _Strings(folder, count, width, _Maps())
    _write_sorted_hashes(folder, unsorted, strings)
    unsorted.unlink()
    card = {"format": FORMAT, "rows": count, "width": width}
    (folder / _CARD).write_text(json.dumps(card), "utf-8")
    return count


def damaged(folder: Path, reason: Exception) -> UserError:
    """The one line for a derived folder that cannot be used."""
    return UserError(f"{folder} cannot be used ({reason}); delete this folder, it will be made again")


class _Maps:
    """Files that are mapped into memory, and how much was read of them since their pages were given back."""

    def __init__(self) -> None:
        self._maps: list[mmap.mmap] = []
        self._read = 0

    def content(self, path: Path, size: int) -> mmap.mmap | bytes:
        """The content of a file that must have this size."""
        actual = path.stat().st_size
        if actual != size:
            raise ValueError(f"{path.name} has {actual} bytes instead of {size}")
        if size == 0:  # an empty file cannot be mapped
            return b""
        with path.open("rb") as file:
            self._maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return self._maps[-1]

    def integers(self, path: Path, code: Literal["q", "Q"], count: int) -> Integers:
        """The content of a file that must hold so many integers."""
        data = self.content(path, 8 * count)
        return memoryview(data).cast(code) if count else array(code)

    def count(self, size: int) -> None:
        """Count bytes that are read; where they have become many, give all pages back to the system.

        Only the process lets go of them: as long as the system has memory to spare, they stay in its cache.
        """
        self._read += size
        if self._read >= RELEASED_BYTES and hasattr(mmap, "MADV_DONTNEED"):
            self._read = 0
            for pages in self._maps:
                pages.madvise(mmap.MADV_DONTNEED)


class _Strings:
    """The blob and its offsets, without the way from a key to its row."""

    def __init__(self, folder: Path, rows: int, width: int, maps: _Maps) -> None:
        self.rows, self._width, self._maps = rows, width, maps
        self._ends = maps.integers(folder / _ENDS, "q", rows * width + 1)
        self._blob = maps.content(folder / _BLOB, self._ends[rows * width])

    def row(self, row: int) -> tuple[str, ...]:
        first = row * self._width
        ends = self._ends[first : first + self._width + 1].tolist()
        self._maps.count(ends[-1] - ends[0] + 2 * _AROUND)
        return tuple(self._text(start, end) for start, end in pairwise(ends))

    def key(self, row: int) -> str:
        first = row * self._width
        return self._text(self._ends[first], self._ends[first + 1])

    def _text(self, start: int, end: int) -> str:
        return self._blob[start:end].decode("utf-8", "surrogatepass")


def _write_strings(folder: Path, unsorted: Path, rows: Iterable[Sequence[str]]) -> int:
    count = end = 0
    ends, hashes = array("q", [0]), array("Q")
    with (
        (folder / _BLOB).open("xb") as blob_file,
        (folder / _ENDS).open("xb") as ends_file,
        unsorted.open("wb") as hashes_file,
    ):
        for row in rows:
            for string in row:
                end += blob_file.write(string.encode("utf-8", "surrogatepass"))
                ends.append(end)
            hashes.append(_hash(row[0]))
            count += 1
            if len(hashes) == BUFFERED_ROWS:
                ends.tofile(ends_file)
                hashes.tofile(hashes_file)
                del ends[:], hashes[:]
        ends.tofile(ends_file)
        hashes.tofile(hashes_file)
    return count


def _write_sorted_hashes(folder: Path, unsorted: Path, strings: _Strings) -> None:
    """Sort by ranges of the hash: each pass takes from the whole file what lies in its range."""
    import numpy as np  # only writing needs it; whoever lists the retrievers must not wait for it

    passes = -(-strings.rows // SORTED_ROWS)
    edges = [2**64 * part // passes for part in range(passes + 1)] if passes else []
    with (folder / _HASHES).open("wb") as hashes_file, (folder / _ROWS).open("wb") as rows_file:
        for low, high in pairwise(edges):
            hashes_found, rows_found = [], []
            for first in range(0, strings.rows, BUFFERED_ROWS):
                chunk = np.fromfile(unsorted, np.uint64, BUFFERED_ROWS, offset=8 * first)
                inside = np.flatnonzero((chunk >= np.uint64(low)) & (chunk <= np.uint64(high - 1)))
                hashes_found.append(chunk[inside])
                rows_found.append(inside + first)
            hashes, rows = np.concatenate(hashes_found), np.concatenate(rows_found)
            order = np.argsort(hashes, kind="stable")
            hashes, rows = hashes[order], rows[order]
            for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
                same = rows[place:][hashes[place:] == hashes[place]].tolist()
                _refuse_duplicates(strings, same)
            hashes.tofile(hashes_file)
            rows.astype(np.int64).tofile(rows_file)


def _refuse_duplicates(strings: _Strings, rows: Sequence[int]) -> None:
    """Rows with one hash are duplicates only if their keys are equal; 64 bits may collide."""
    seen: dict[str, int] = {}
    for row in rows:
        key = strings.key(row)
        if key in seen:
            raise DuplicateKeyError(key, seen[key], row)
        seen[key] = row


def _hash(key: str) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
