"""Tables of strings on disk."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.retrieval import strings
from ragtrials.retrieval.strings import DuplicateKeyError, StringTable, write_table

ANY_CHARACTER = st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00\x00😀")
ANY_TEXT = st.text(ANY_CHARACTER, max_size=12)
ROWS = st.lists(st.tuples(ANY_TEXT, ANY_TEXT), unique_by=lambda row: row[0], max_size=20)


def table_of(folder: Path, rows: list[tuple[str, ...]], width: int = 2) -> StringTable:
    folder.mkdir(exist_ok=True)
    assert write_table(folder, rows, width) == len(rows)
    return StringTable(folder)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, sorted_rows=st.integers(1, 8), buffered_rows=st.integers(1, 8))
def test_every_row_comes_back_and_is_found(
    rows: list[tuple[str, str]], sorted_rows: int, buffered_rows: int
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory() as folder,
    ):  # many passes and flushes, as a large table has
        patch.setattr(strings, "SORTED_ROWS", sorted_rows)
        patch.setattr(strings, "BUFFERED_ROWS", buffered_rows)
        table = table_of(Path(folder), rows)
    assert list(table) == rows
    assert [table[i] for i in range(len(rows))] == rows
    assert [table.position(key) for key, _ in rows] == list(range(len(rows)))
    assert table.position("not\x00there") is None


@pytest.mark.parametrize("row", [-1, 2, -2, 10**12])
def test_a_position_outside_is_refused_even_a_negative_one(tmp_path: Path, row: int) -> None:
    table = table_of(tmp_path / "table", [("a", "1"), ("b", "2")])
    with pytest.raises(IndexError, match=f"no row {row} in a table of 2"):
        table[row]


@pytest.mark.parametrize("sorted_rows", [1, 2, 100])
def test_a_duplicate_key_is_named_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sorted_rows: int
) -> None:
    monkeypatch.setattr(strings, "SORTED_ROWS", sorted_rows)
    rows = [(f"id-{n}",) for n in range(50)] + [("id-7",)]
    with pytest.raises(DuplicateKeyError, match="rows 7 and 50 have the same key 'id-7'"):
        write_table(tmp_path, rows, 1)


def test_keys_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "_hash", lambda key: len(key))
    table = table_of(tmp_path / "table", [("ab", "1"), ("cd", "2"), ("x", "3"), ("ef", "4")])
    assert [table.position(key) for key in ("ab", "cd", "ef", "x", "zz")] == [0, 1, 3, 2, None]


def test_a_duplicate_behind_a_colliding_key_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "_hash", lambda key: len(key))
    with pytest.raises(DuplicateKeyError, match="rows 0 and 2 have the same key 'ab'"):
        write_table(tmp_path, [("ab",), ("cd",), ("ab",)], 1)


def test_hashes_at_the_edges_of_the_sorted_ranges_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = {"a": 2**64 - 1, "b": 2**63, "c": 2**63 - 1, "d": 0}
    monkeypatch.setattr(strings, "_hash", hashes.__getitem__)
    monkeypatch.setattr(strings, "SORTED_ROWS", 2)
    table = table_of(tmp_path / "table", [(key, "") for key in hashes])
    assert [table.position(key) for key in hashes] == [0, 1, 2, 3]


def test_an_empty_table_opens(tmp_path: Path) -> None:
    table = table_of(tmp_path / "table", [])
    assert (len(table), list(table), table.position("")) == (0, [], None)


def test_memory_of_writing_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "SORTED_ROWS", 1000)
    monkeypatch.setattr(strings, "BUFFERED_ROWS", 1000)

    def peak(rows: int) -> int:
        folder = tmp_path / str(rows)
        folder.mkdir()
        tracemalloc.start()
        write_table(folder, ((str(n), "some text of a passage") for n in range(rows)), 2)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    peak(1000)  # imports numpy
    small, large = peak(2_000), peak(30_000)
    assert large < 1.5 * small


def resident(path: Path) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    _, _, behind = Path("/proc/self/smaps").read_text().partition(str(path))
    return int(behind.partition("Rss:")[2].split()[0]) * 1024


@pytest.mark.parametrize("how", ["in order", "by key"])
def test_a_table_that_is_read_through_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    rows = [(str(n), "x" * 1000) for n in range(12_000)]
    held = {}
    for released in (2**20, 2**40):
        monkeypatch.setattr(strings, "RELEASED_BYTES", released)
        table = table_of(tmp_path / str(released), rows)
        found = table if how == "in order" else (table[table.position(key) or 0] for key, _ in rows)
        assert [row[0] for row in found] == [key for key, _ in rows]
        held[released] = resident(tmp_path / str(released) / "strings.utf8")
    assert held[2**40] >= 12_000_000
    assert held[2**20] <= 3 * 2**20


FILES = ["strings.utf8", "ends.i64", "hashes.u64", "rows.i64", "table.json"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["missing", "cut", "longer"])
def test_a_damaged_table_is_refused_and_named(tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / "table"
    table_of(folder, [("a", "one"), ("b", "two")])
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage == "cut":
        (folder / name).write_bytes(content[:-1])
    elif damage == "longer":
        (folder / name).write_bytes(content + b"}")
    with pytest.raises(UserError, match=f"{folder} cannot be used .*delete this folder") as caught:
        StringTable(folder)
    assert "\n" not in str(caught.value)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table_of(tmp_path / "table", [("a", "one")])
    monkeypatch.setattr(strings, "FORMAT", strings.FORMAT + 1)
    with pytest.raises(UserError, match="format 1, not 2"):
        StringTable(tmp_path / "table")
