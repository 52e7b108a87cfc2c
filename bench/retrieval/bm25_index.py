"""A BM25 index on disk: built from a passage store, opened by memory map, refused when it does not fit.

The folder holds bm25s's own files (scores, passage numbers and offsets of the postings, as .npy), the
vocabulary as a memory-mapped table, and a card: what the index was made from and a few queries with
the hits that they had then.
"""

from __future__ import annotations

import json
import logging
import math
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ragtrials.errors import UserError
from ragtrials.retrieval.settings import BM25Settings, libraries, missing
from ragtrials.retrieval.store import PassageStore
from ragtrials.retrieval.strings import StringTable, damaged, write_table
from ragtrials.retrieval.words import Analyzer

FORMAT = 1
"""Raised whenever the folder's layout or the reading of text changes."""

TESTED_QUERIES, TESTED_K = 5, 5

_CARD, _VOCABULARY = "index.json", "vocabulary"


def identity(corpus_digest: str, settings: BM25Settings) -> Mapping[str, Any]:
    """All that decides an index's content, as JSON values; an index with another one is not served.

    Raises:
        UserError: A library is not installed.
    """
    return {
        "format": FORMAT,
        "corpus_digest": corpus_digest,
        "settings": settings.plain(),
        "libraries": libraries(settings),
    }


class BM25Index:
    """Postings and vocabulary, memory-mapped. It knows positions of passages, not the passages.

    Args:
        folder: What `write_index` filled.
        settings: The settings it was built with; `open_index` holds that they are.

    Attributes:
        arrays: The postings: `data` (scores), `indices` (passages), `indptr` (where each word's begin).

    Raises:
        UserError: A file is missing or damaged, or a library is not installed.
    """

    def __init__(self, folder: Path, settings: BM25Settings) -> None:
        self._analyzer = Analyzer(settings)
        self._vocabulary = StringTable(folder / _VOCABULARY)
        try:
            self._model = _bm25s().BM25.load(folder, mmap=True, load_vocab=False, show_progress=False)
        except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
            raise damaged(folder, error) from error
        self.arrays: Mapping[str, np.memmap] = {
            name: self._model.scores[name] for name in ("data", "indices", "indptr")
        }
        # The same mapped memory as plain arrays: slicing a memmap is ten times as slow.
        self._model.scores |= {name: array.view(np.ndarray) for name, array in self.arrays.items()}

    def top(self, query: str, k: int) -> list[tuple[int, float]]:
        """Positions and scores of the `k` best passages that share a word with the query.

        Best first; passages with equal scores stand in the corpus's order.
        """
        found = (self._vocabulary.position(word) for word in self._analyzer.words(query))
        ids = [word_id for word_id in found if word_id is not None]
        if not ids:
            return []
        scores = self._model.get_scores_from_ids(ids)
        best = _best(scores, k)
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))


def write_index(folder: Path, store: PassageStore, corpus_digest: str, settings: BM25Settings) -> None:
    """Index all passages of a store into an existing empty folder.

    Raises:
        UserError: The store is empty, no passage has a word, or a library is not installed.
    """
    card: dict[str, Any] = {"identity": identity(corpus_digest, settings), "passages": len(store)}
    tokens = _Tokens(folder, store, Analyzer(settings))
    if not tokens.vocabulary:
        raise UserError(
            f"none of the {len(store)} passages has a word to index: check the corpus and its text"
        )
    bm25s = _bm25s()
    model = bm25s.BM25(k1=settings.k1, b=settings.b, method=settings.method, backend="numpy")
    corpus = bm25s.tokenization.Tokenized(ids=tokens, vocab=tokens.vocabulary)
    model.index(corpus, create_empty_token=False, show_progress=False)
    tokens.delete()
    model.vocab_dict = {}  # the words go into a table that is mapped instead of loaded
    model.save(folder, show_progress=False)
    (folder / _VOCABULARY).mkdir()
    write_table(folder / _VOCABULARY, ((word,) for word in tokens.vocabulary), width=1)
    card["self_test"] = _self_test(BM25Index(folder, settings), store)
    (folder / _CARD).write_text(json.dumps(card), "utf-8")


def open_index(folder: Path, corpus_digest: str, settings: BM25Settings) -> BM25Index:
    """Map an index after holding that it is the one that is asked for and answers as it did when built.

    Raises:
        UserError: It was made from another corpus, with other settings or library versions, it fails
            its self-test, or it is damaged.
    """
    card = _read_card(folder)
    _hold_identity(folder, card["identity"], identity(corpus_digest, settings))
    index = BM25Index(folder, settings)
    for test in card["self_test"]:
        _hold_hits(folder, test, index.top(test["query"], TESTED_K))
    return index


def _read_card(folder: Path) -> Mapping[str, Any]:
    """What an index says about itself: identity, passages, self_test.

    Raises:
        UserError: The card is missing or damaged.
    """
    try:
        card: Mapping[str, Any] = json.loads((folder / _CARD).read_text("utf-8"))
        if card.keys() != {"identity", "passages", "self_test"}:
            raise ValueError(f"{_CARD} has the keys {', '.join(card)}")
    except (OSError, ValueError, AttributeError) as error:
        raise damaged(folder, error) from error
    return card


class _Tokens:
    """The word ids of all passages, on disk: bm25s reads them several times, memory holds one passage."""

    def __init__(self, folder: Path, store: PassageStore, analyzer: Analyzer) -> None:
        vocabulary: defaultdict[str, int] = defaultdict(count().__next__)  # a new word gets the next id
        self._path = folder / "tokens.int"
        self._lengths = np.zeros(len(store), np.int32)
        with self._path.open("wb") as file:
            for position, passage in enumerate(store):
                words = analyzer.words(f"{passage.title}\n{passage.text}")
                ids = array("i", map(vocabulary.__getitem__, words))
                ids.tofile(file)
                self._lengths[position] = len(ids)
        self.vocabulary: dict[str, int] = dict(vocabulary)

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[list[int]]:
        with self._path.open("rb") as file:
            for length in self._lengths.tolist():
                ids = array("i")
                ids.fromfile(file, length)
                yield ids.tolist()

    def delete(self) -> None:
        self._path.unlink()


def _best(scores: np.ndarray, k: int) -> np.ndarray:
    """Positions of the `k` highest scores above zero, best first, ties by position."""
    found = np.flatnonzero(scores > 0)
    if len(found) > k:
        lowest = np.partition(scores[found], len(found) - k)[len(found) - k]
        found = found[scores[found] >= lowest]  # all that tie for the last place, so that position decides
    return found[np.argsort(-scores[found], kind="stable")][:k]


def _self_test(index: BM25Index, store: PassageStore) -> list[Mapping[str, Any]]:
    """Titles (or first lines) of passages spread over the corpus, with the hits they have now."""
    asked = min(TESTED_QUERIES, len(store))
    tests: list[Mapping[str, Any]] = []
    for number in range(asked):
        passage = store[len(store) * (2 * number + 1) // (2 * asked)]
        query = passage.title or passage.text[:100]
        tests.append({"query": query, "hits": index.top(query, TESTED_K)})
    return tests


def _hold_identity(folder: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    have, want = _flat(stored), _flat(wanted)
    for name in sorted(want.keys() | have.keys()):
        if have.get(name) != want.get(name):
            raise UserError(
                f"the index {folder} was built with {name} {have.get(name)!r}, not {want.get(name)!r}: "
                f"delete this folder to rebuild it"
            )


def _flat(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in identity.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": part for inner, part in value.items()}
        else:
            flat[name] = value
    return flat


def _hold_hits(folder: Path, test: Mapping[str, Any], hits: list[tuple[int, float]]) -> None:
    same = [position for position, _ in test["hits"]] == [position for position, _ in hits] and all(
        math.isclose(before, now, rel_tol=1e-5)
        for (_, before), (_, now) in zip(test["hits"], hits, strict=False)
    )
    if not same:
        raise UserError(
            f"the index {folder} fails its self-test: the query {test['query']!r} finds other passages than "
            f"when it was built; delete this folder to rebuild it"
        )


def _bm25s() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise missing("bm25s") from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # its import sets DEBUG
    return bm25s
