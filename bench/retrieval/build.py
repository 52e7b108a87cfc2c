"""Retrievers by name, with their indexes in the cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragtrials.cache import build_once, cache_dir
from ragtrials.config import suggestion
from ragtrials.data import Corpus, Example, Passage
from ragtrials.errors import UserError
from ragtrials.program import Retriever
from ragtrials.retrieval import strings
from ragtrials.retrieval.settings import BM25Settings, libraries
from ragtrials.retrieval.store import PassageStore

RETRIEVERS: tuple[str, ...] = ("bm25", "oracle", "random", "empty")


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What `ragtrials index build` prints.

    Attributes:
        folder: Where the index lies.
        passages: How many passages it covers.
        bytes: Bytes on disk of the index and of the stored passages, which other indexes may share.
        built: Whether it was built now; otherwise it was there.
        seconds: How long building (and storing the passages) or opening took.
    """

    folder: Path
    passages: int
    bytes: int
    built: bool
    seconds: float


def describe_retriever(
    name: str,
    corpus: Corpus,
    *,
    examples: Sequence[Example] = (),
    seed: int = 0,
    settings: BM25Settings | None = None,
) -> Mapping[str, Any]:
    """The signature that the loaded retriever will have. Nothing is built; the corpus is read at most once.

    Args:
        name: One of `RETRIEVERS`.
        corpus: What will be searched.
        examples: Only `oracle` knows them: the gold passages of these questions are part of its signature.
        seed: Only `random` draws; the signature of the others does not depend on it.
        settings: Only for `bm25`; its defaults where None.

    Raises:
        UserError: The name is unknown, settings are given to a retriever without any, or a library
            that the retriever needs is not installed.
    """
    _check_name(name)
    if settings is not None and name != "bm25":
        raise UserError(f"the retriever {name} has no settings: leave them out, or use bm25")
    chosen: Mapping[str, Any] = {}
    versions: Mapping[str, str] = {}
    if name == "bm25":
        settings = settings or BM25Settings()
        chosen, versions = settings.plain(), libraries(settings)
    elif name == "random":
        chosen = {"seed": seed}
    elif name == "oracle":
        chosen = {"gold": _digest([[example.id, example.supporting] for example in examples])}
    return {
        "name": name,
        "corpus": corpus.name,
        "corpus_digest": _corpus_digest(corpus),
        "settings": chosen,
        "libraries": versions,
    }


def load_retriever(
    name: str,
    corpus: Corpus,
    *,
    examples: Sequence[Example] = (),
    seed: int = 0,
    settings: BM25Settings | None = None,
) -> Retriever:
    """The retriever of that name over a corpus; what it needs on disk is built if it is not there yet.

    Args:
        name: One of `RETRIEVERS`.
        corpus: What is searched.
        examples: The questions that `oracle` knows the gold passages of.
        seed: What `random` draws with.
        settings: Only for `bm25`; its defaults where None.

    Raises:
        UserError: As `describe_retriever`; or the corpus is empty, cannot be read or repeats an id; the
            cache cannot be written; an index in it is damaged or fails its self-test; `oracle` knows
            no gold passage of any example.
    """
    signature = describe_retriever(name, corpus, examples=examples, seed=seed, settings=settings)
    if name == "empty":
        from ragtrials.retrieval.diagnostic import EmptyRetriever

        return EmptyRetriever(signature=signature)
    store = open_store(corpus)
    if name == "bm25":
        return _bm25(corpus, store, settings or BM25Settings(), signature)
    from ragtrials.retrieval.diagnostic import OracleRetriever, RandomRetriever

    if name == "random":
        return RandomRetriever(store, seed, signature=signature)
    return OracleRetriever(store, _gold(corpus, store, examples), signature=signature)


def index_info(corpus: Corpus, *, settings: BM25Settings | None = None) -> IndexInfo:
    """Build the bm25 index of a corpus if it is not there yet, open it, and say what it takes.

    Raises:
        UserError: As `load_retriever`.
    """
    settings = settings or BM25Settings()
    folder, store_folder = _index_folder(corpus, settings), _store_folder(corpus)
    built = not folder.is_dir()
    began = time.perf_counter()
    load_retriever("bm25", corpus, settings=settings)
    seconds = time.perf_counter() - began
    return IndexInfo(
        folder=folder,
        passages=len(PassageStore.open(store_folder)),
        bytes=_bytes(folder) + _bytes(store_folder),
        built=built,
        seconds=seconds,
    )


def open_store(corpus: Corpus) -> PassageStore:
    """The passages of a corpus on disk, written first if they are not there yet; all retrievers share them.

    Raises:
        UserError: The corpus is empty, cannot be read or repeats an id, or the cache cannot be written.
    """

    def write(folder: Path) -> None:
        if PassageStore.write(folder, _passages(corpus)) == 0:
            raise UserError(f"the corpus {corpus.name} is empty: there is nothing to search")

    return PassageStore.open(build_once(_store_folder(corpus), write))


def _store_folder(corpus: Corpus) -> Path:
    """Where the passages of a corpus lie: the same content has the same place."""
    return cache_dir() / "corpora" / f"{_corpus_digest(corpus)}-{strings.FORMAT}"


def _index_folder(corpus: Corpus, settings: BM25Settings) -> Path:
    """Where the bm25 index of a corpus lies: a place of its own for every digest, setting and version."""
    from ragtrials.retrieval.bm25_index import identity

    return cache_dir() / "indexes" / f"bm25-{_digest(identity(_corpus_digest(corpus), settings))}"


def _bm25(
    corpus: Corpus, store: PassageStore, settings: BM25Settings, signature: Mapping[str, Any]
) -> Retriever:
    from ragtrials.retrieval.bm25 import BM25Retriever
    from ragtrials.retrieval.bm25_index import open_index, write_index

    folder = build_once(
        _index_folder(corpus, settings), lambda work: write_index(work, store, corpus.digest, settings)
    )
    return BM25Retriever(open_index(folder, corpus.digest, settings), store, signature)


def _gold(corpus: Corpus, store: PassageStore, examples: Sequence[Example]) -> Mapping[str, Sequence[str]]:
    gold = {example.id: example.supporting for example in examples}
    if not any(store.position(passage) is not None for ids in gold.values() for passage in ids):
        raise UserError(
            f"the oracle retriever knows no gold passage: none of the {len(gold)} questions names a "
            f"supporting passage of the corpus {corpus.name}; use another retriever for this task"
        )
    return gold


def _corpus_digest(corpus: Corpus) -> str:
    try:
        return corpus.digest
    except OSError as error:
        raise _unreadable(corpus, error) from error


def _passages(corpus: Corpus) -> Iterator[Passage]:
    try:
        yield from corpus
    except OSError as error:  # otherwise the cache would get the blame for a file of the corpus
        raise _unreadable(corpus, error) from error


def _unreadable(corpus: Corpus, error: OSError) -> UserError:
    return UserError(f"cannot read the corpus {corpus.name}: {error}")


def _check_name(name: str) -> None:
    if name not in RETRIEVERS:
        raise UserError(f"unknown retriever {name!r}{suggestion(name, RETRIEVERS)}")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
