"""The passage store."""

from __future__ import annotations

import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.retrieval.store import PassageStore

ANY_CHARACTER = st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00\x00😀")
ODD_TEXT = st.text(ANY_CHARACTER, max_size=20)
PASSAGES = st.lists(st.builds(Passage, ODD_TEXT, ODD_TEXT, ODD_TEXT), unique_by=lambda p: p.id, max_size=8)

SOME = [
    Passage("p1", "Reykjavík", "The capital of Iceland.\nOn the coast."),
    Passage("p2", "", "No title, with a NUL \x00 and a lone \ud83d surrogate"),
    Passage("p3", "東京 😀", ""),
]


def store_of(folder: Path, passages: list[Passage]) -> PassageStore:
    PassageStore.write(folder, passages)
    return PassageStore.open(folder)


@settings(deadline=None, max_examples=60)
@given(passages=PASSAGES)
def test_passages_survive_unchanged(passages: list[Passage]) -> None:
    with TemporaryDirectory() as folder:
        store = store_of(Path(folder), passages)
    assert len(store) == len(passages)
    assert list(store) == passages
    assert [store[i] for i in range(len(store))] == passages
    assert [store.position(passage.id) for passage in passages] == list(range(len(passages)))


def test_writing_counts_and_streams(tmp_path: Path) -> None:
    assert PassageStore.write(tmp_path / "new" / "folder", iter(SOME)) == 3
    assert list(PassageStore.open(tmp_path / "new" / "folder")) == SOME


def test_a_store_is_written_once(tmp_path: Path) -> None:
    store = store_of(tmp_path, SOME)
    with pytest.raises(FileExistsError):
        PassageStore.write(tmp_path, SOME[:1])
    assert list(store) == list(PassageStore.open(tmp_path)) == SOME


def test_an_unknown_id_has_no_position(tmp_path: Path) -> None:
    assert store_of(tmp_path, SOME).position("p4") is None


def test_minus_one_is_not_the_last_passage(tmp_path: Path) -> None:
    with pytest.raises(IndexError, match="-1"):
        store_of(tmp_path, SOME)[-1]


def test_a_duplicate_id_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="passages 1 and 4 of the corpus have the same id 'p1'"):
        PassageStore.write(tmp_path, [*SOME, Passage("p1", "other", "other")])


def test_equal_texts_under_different_ids_are_fine(tmp_path: Path) -> None:
    twins = [Passage("a", "same", "same"), Passage("b", "same", "same")]
    assert list(store_of(tmp_path, twins)) == twins


def test_opening_maps_the_files_and_holds_nothing(tmp_path: Path) -> None:
    text = "x" * 5_000_000
    PassageStore.write(tmp_path, [Passage("a", "", text), Passage("b", "", "short")])
    maps_before = Path("/proc/self/maps").read_text()
    store = PassageStore.open(tmp_path)
    mapped = set(Path("/proc/self/maps").read_text().splitlines()) - set(maps_before.splitlines())
    for name in ("strings.utf8", "ends.i64", "hashes.u64", "rows.i64"):
        assert any(line.endswith(str(tmp_path / name)) for line in mapped), name
    assert isinstance(store._table._strings._blob, mmap.mmap)
    assert store[1] == Passage("b", "", "short")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        PassageStore.open(tmp_path)
