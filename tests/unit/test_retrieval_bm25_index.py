"""The BM25 index on disk: right scores, memory-mapped, and refused when it does not fit."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.retrieval import bm25_index
from ragtrials.retrieval.bm25_index import BM25Index, identity, open_index, write_index
from ragtrials.retrieval.settings import BM25Settings
from ragtrials.retrieval.store import PassageStore
from ragtrials.retrieval.words import Analyzer

DIGEST = "d" * 64
DEFAULT = BM25Settings()
PLAIN = BM25Settings(stopwords="none", stemmer="none")
PLACES = [
    Passage("1", "Oslo", "Oslo is the capital of Norway."),
    Passage("2", "Bergen", "Bergen is a harbour city in Norway."),
    Passage("3", "Lima", "Lima is the capital of Peru and a city by the sea."),
    Passage("4", "", "Rain falls often in the west."),
    Passage("5", "!", "?"),
]


def built(folder: Path, passages: list[Passage], chosen: BM25Settings = DEFAULT) -> Path:
    PassageStore.write(folder / "store", passages)
    (folder / "index").mkdir()
    write_index(folder / "index", PassageStore.open(folder / "store"), DIGEST, chosen)
    return folder / "index"


def reference(passages: list[Passage], query: str, chosen: BM25Settings) -> list[float]:
    """Lucene's BM25, written down from its formula."""
    words = Analyzer(chosen).words
    counts = [Counter(words(f"{p.title}\n{p.text}")) for p in passages]
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths)
    scores = []
    for count, length in zip(counts, lengths, strict=True):
        score = 0.0
        for word in words(query):
            if tf := count[word]:
                containing = sum(word in other for other in counts)
                idf = math.log(1 + (len(counts) - containing + 0.5) / (containing + 0.5))
                score += idf * tf / (tf + chosen.k1 * (1 - chosen.b + chosen.b * length / average))
        scores.append(score)
    return scores


WORD = st.sampled_from(["oslo", "Lima", "sea", "rain", "of", "x"])
SENTENCE = st.lists(WORD, max_size=6).map(" ".join)


@settings(deadline=None, max_examples=40)
@given(
    texts=st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=12).filter(
        lambda texts: any(title or text for title, text in texts)
    ),
    query=SENTENCE,
    k=st.integers(1, 15),
    k1=st.sampled_from([0.0, 0.9, 2.0]),
    b=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_the_hits_are_those_of_the_formula(
    texts: list[tuple[str, str]],
    query: str,
    k: int,
    k1: float,
    b: float,
) -> None:
    passages = [Passage(str(n), title, text) for n, (title, text) in enumerate(texts)]
    chosen = BM25Settings(stopwords="none", k1=k1, b=b)
    with TemporaryDirectory() as folder:
        hits = open_index(built(Path(folder), passages, chosen), DIGEST, chosen).top(query, k)
    expected = reference(passages, query, chosen)
    matching = sorted((score for score in expected if score > 0), reverse=True)
    assert [score for _, score in hits] == pytest.approx(matching[:k], rel=1e-5)
    assert [expected[position] for position, _ in hits] == pytest.approx(matching[:k], rel=1e-5)
    assert len({position for position, _ in hits}) == len(hits)
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def test_ties_for_the_last_place_go_to_the_earlier_passage(tmp_path: Path) -> None:
    twins = [Passage(str(n), "", "rain " + "sea " * (n % 2)) for n in range(400)]
    hits = BM25Index(built(tmp_path, twins), DEFAULT).top("rain", 230)
    assert [position for position, _ in hits] == [*range(0, 400, 2), *range(1, 60, 2)]


def test_loading_maps_the_postings_and_copies_nothing(tmp_path: Path) -> None:
    folder = built(tmp_path, PLACES)
    index = open_index(folder, DIGEST, DEFAULT)
    assert index.top("harbour", 1)[0][0] == 1
    maps = Path("/proc/self/maps").read_text()
    for name, array in index.arrays.items():
        assert isinstance(array, np.memmap), name
        assert array.mode == "r"
        assert f"{folder}/{name}.csc.index.npy" in maps
    assert f"{folder}/vocabulary/strings.utf8" in maps


def test_an_index_of_the_same_passages_has_the_same_bytes(tmp_path: Path) -> None:
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        folders.append(built(tmp_path / name, PLACES))
    files = [sorted(path.relative_to(folder) for path in folder.rglob("*.*")) for folder in folders]
    assert files[0] == files[1]
    for file in files[0]:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes(), file


def test_nothing_but_the_index_is_left_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    folder = built(tmp_path, PLACES)
    open_index(folder, DIGEST, DEFAULT).top("capital", 3)
    assert sorted(path.name for path in folder.iterdir()) == [
        "data.csc.index.npy",
        "index.json",
        "indices.csc.index.npy",
        "indptr.csc.index.npy",
        "params.index.json",
        "vocab.index.json",
        "vocabulary",
    ]
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_corpus_without_a_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of the 2 passages has a word to index"):
        built(tmp_path, [Passage("1", "The", "of the"), Passage("2", "", "…")])


def change_card(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    card = json.loads((folder / "index.json").read_text())
    change(card)
    (folder / "index.json").write_text(json.dumps(card))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (BM25Settings(stemmer="none"), "libraries.PyStemmer '.*', not None"),
        (BM25Settings(stemmer="english"), "settings.stemmer 'porter', not 'english'"),
        (BM25Settings(k1=1.2), "settings.k1 0.9, not 1.2"),
        (BM25Settings(lower=False), "settings.lower True, not False"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, asked: BM25Settings, message: str) -> None:
    folder = built(tmp_path, PLACES)
    with pytest.raises(UserError, match=f"built with {message}: delete this folder to rebuild it"):
        open_index(folder, DIGEST, asked)


def test_another_corpus_is_refused(tmp_path: Path) -> None:
    folder = built(tmp_path, PLACES)
    with pytest.raises(UserError, match=r"built with corpus_digest 'dd.*', not 'ee.*': delete"):
        open_index(folder, "e" * 64, DEFAULT)


@pytest.mark.parametrize("library", ["bm25s", "PyStemmer"])
def test_another_library_version_is_refused(tmp_path: Path, library: str) -> None:
    folder = built(tmp_path, PLACES)
    change_card(folder, lambda card: card["identity"]["libraries"].update({library: "0.0.1"}))
    with pytest.raises(UserError, match=f"built with libraries.{library} '0.0.1', not '.*': delete"):
        open_index(folder, DIGEST, DEFAULT)


def test_an_index_that_answers_otherwise_than_when_built_is_refused(tmp_path: Path) -> None:
    folder = built(tmp_path, PLACES)
    postings = np.load(folder / "indices.csc.index.npy")
    np.save(folder / "indices.csc.index.npy", postings[::-1].copy())
    with pytest.raises(UserError, match="fails its self-test: the query 'Oslo' finds other passages"):
        open_index(folder, DIGEST, DEFAULT)


def test_a_changed_score_fails_the_self_test_too(tmp_path: Path) -> None:
    folder = built(tmp_path, PLACES)
    scores = np.load(folder / "data.csc.index.npy")
    np.save(folder / "data.csc.index.npy", scores * np.float32(1.001))
    with pytest.raises(UserError, match="fails its self-test"):
        open_index(folder, DIGEST, DEFAULT)


def test_a_stemmer_that_stems_otherwise_fails_the_self_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = built(tmp_path, PLACES)
    words = Analyzer.words
    monkeypatch.setattr(Analyzer, "words", lambda self, text: [word[:3] for word in words(self, text)])
    with pytest.raises(UserError, match="fails its self-test"):
        open_index(folder, DIGEST, DEFAULT)


def test_the_self_test_asks_for_titles_or_first_lines(tmp_path: Path) -> None:
    card = json.loads((built(tmp_path, PLACES) / "index.json").read_text())
    assert [test["query"] for test in card["self_test"]] == [
        "Oslo",
        "Bergen",
        "Lima",
        "Rain falls often in the west.",
        "!",
    ]
    assert [test["hits"][0][0] for test in card["self_test"][:4]] == [0, 1, 2, 3]


FILES = [
    "data.csc.index.npy",
    "indices.csc.index.npy",
    "indptr.csc.index.npy",
    "params.index.json",
    "index.json",
    "vocabulary/strings.utf8",
    "vocabulary/table.json",
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [None, 0, -1])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, name: str, keep: int | None) -> None:
    folder = built(tmp_path, PLACES)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if keep is not None:
        (folder / name).write_bytes(content[:keep])
    with pytest.raises(UserError, match=r"cannot be used .*delete this folder") as caught:
        open_index(folder, DIGEST, DEFAULT)
    assert "\n" not in str(caught.value)


def test_a_card_with_another_key_is_refused(tmp_path: Path) -> None:
    folder = built(tmp_path, PLACES)
    change_card(folder, lambda card: card.update(extra=1))
    with pytest.raises(UserError, match=r"index.json has the keys .*extra"):
        open_index(folder, DIGEST, DEFAULT)


def test_the_identity_names_all_that_decides_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    first = identity(DIGEST, PLAIN)
    assert first["corpus_digest"] == DIGEST
    assert first["settings"] == PLAIN.plain()
    assert list(first["libraries"]) == ["bm25s"]
    monkeypatch.setattr(bm25_index, "FORMAT", 99)
    assert identity(DIGEST, PLAIN) == {**first, "format": 99}
