"""Retrievers by name: signatures, the cache, and what happens when building goes wrong."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragtrials.data import Corpus, Example, Passage
from ragtrials.errors import UserError
from ragtrials.program import Hit
from ragtrials.retrieval import bm25_index
from ragtrials.retrieval.build import (
    RETRIEVERS,
    describe_retriever,
    index_info,
    load_retriever,
    open_store,
)
from ragtrials.retrieval.settings import BM25Settings
from ragtrials.retrieval.store import PassageStore

PASSAGES = [
    Passage("oslo", "Oslo", "The capital of Norway."),
    Passage("lima", "Lima", "The capital of Peru."),
    Passage("rain", "Bergen", "It often rains."),
]
EXAMPLES = [
    Example("q1", "Where is Lima?", (("Peru",),), supporting=("lima",)),
    Example("q2", "Which city is wet?", (("Bergen",),), supporting=("rain", "gone")),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGTRIALS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def corpus_of(passages: Iterable[Passage] = PASSAGES, name: str = "towns") -> Corpus:
    kept = list(passages)
    return Corpus(name, lambda: kept)


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def finished(cache: Path) -> list[str]:
    """All that would be taken for a finished store or index."""
    return sorted(path.name for kind in cache.glob("*") for path in kind.iterdir() if path.name[0] != ".")


@pytest.mark.parametrize("name", RETRIEVERS)
def test_the_description_is_the_signature_and_builds_nothing(cache: Path, name: str) -> None:
    described = describe_retriever(name, corpus_of(), examples=EXAMPLES, seed=3)
    assert not cache.exists()
    assert load_retriever(name, corpus_of(), examples=EXAMPLES, seed=3).signature == described
    assert json.loads(json.dumps(described)) == described
    assert described["name"] == name
    assert described["corpus"] == "towns"
    assert described["corpus_digest"] == corpus_of().digest


def test_what_can_change_a_result_changes_the_signature() -> None:
    def signed(name: str = "bm25", corpus: Corpus | None = None, **options: Any) -> Any:
        return describe_retriever(name, corpus or corpus_of(), **options)

    assert signed() == signed()
    assert signed()["settings"] == BM25Settings().plain()
    assert list(signed()["libraries"]) == ["bm25s", "PyStemmer"]
    assert signed() != signed(settings=BM25Settings(k1=1.2))
    assert signed() != signed(corpus=corpus_of(PASSAGES[:2]))
    assert signed() != signed(corpus=corpus_of(name="other"))
    assert signed() == signed(seed=1)
    assert signed("random", seed=0) != signed("random", seed=1)
    assert signed("oracle", examples=EXAMPLES) != signed("oracle", examples=EXAMPLES[:1])
    assert signed("random", examples=EXAMPLES) == signed("random")


def test_each_name_loads_its_retriever() -> None:
    found = {
        name: ids(load_retriever(name, corpus_of(), examples=EXAMPLES).search(["capital"], 2, ["q2"])[0])
        for name in RETRIEVERS
    }
    assert found["bm25"] == ["oslo", "lima"]
    assert found["oracle"] == ["rain"]
    assert len(found["random"]) == 2
    assert found["empty"] == []


@pytest.mark.parametrize(
    ("name", "hint"), [("mb25", "did you mean 'bm25'?"), ("dense", "known: bm25, empty, oracle, random")]
)
def test_an_unknown_name_gets_a_hint(name: str, hint: str) -> None:
    for call in (describe_retriever, load_retriever):
        with pytest.raises(UserError) as caught:
            call(name, corpus_of())
        assert str(caught.value) == f"unknown retriever {name!r}; {hint}"


def test_settings_are_for_bm25_alone() -> None:
    with pytest.raises(UserError, match="the retriever random has no settings"):
        load_retriever("random", corpus_of(), settings=BM25Settings())


def test_an_index_is_built_once_and_opened_afterwards(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_retriever("bm25", corpus_of()).search(["capital"], 5)
    contents = finished(cache)
    assert len(contents) == 2
    monkeypatch.setattr(bm25_index, "write_index", lambda *_: pytest.fail("built again"))
    monkeypatch.setattr(PassageStore, "write", lambda *_: pytest.fail("written again"))
    assert load_retriever("bm25", corpus_of(name="same passages")).search(["capital"], 5) == first
    assert finished(cache) == contents


def test_other_settings_have_an_index_of_their_own_over_the_same_passages(cache: Path) -> None:
    plain = load_retriever("bm25", corpus_of(), settings=BM25Settings(stemmer="none"))
    stemmed = load_retriever("bm25", corpus_of())
    assert [ids(found) for found in plain.search(["raining"], 5)] == [[]]
    assert [ids(found) for found in stemmed.search(["raining"], 5)] == [["rain"]]
    assert len(list((cache / "indexes").iterdir())) == 2
    assert len(list((cache / "corpora").iterdir())) == 1


def test_another_library_version_gets_another_index(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_retriever("bm25", corpus_of())
    versions = {"bm25s": "9.9", "PyStemmer": "9.9"}
    monkeypatch.setattr(bm25_index, "libraries", lambda settings: versions)
    load_retriever("bm25", corpus_of())
    assert len(list((cache / "indexes").iterdir())) == 2


def test_an_index_that_was_copied_to_another_place_is_refused(cache: Path) -> None:
    info = index_info(corpus_of())
    other = index_info(corpus_of(PASSAGES[:2]))
    for file in other.folder.iterdir():
        if file.is_file():
            (info.folder / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match=r"was built with corpus_digest .* delete this folder to rebuild it"):
        load_retriever("bm25", corpus_of())


@pytest.mark.parametrize("name", ["bm25", "oracle", "random"])
def test_an_empty_corpus_is_refused_and_not_cached(cache: Path, name: str) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match="the corpus towns is empty: there is nothing to search"):
            load_retriever(name, corpus_of([]), examples=EXAMPLES)
    assert finished(cache) == []


def test_a_duplicate_id_is_named_and_nothing_cached(cache: Path) -> None:
    with pytest.raises(UserError, match="passages 1 and 4 of the corpus have the same id 'oslo'"):
        load_retriever("bm25", corpus_of([*PASSAGES, PASSAGES[0]]))
    assert finished(cache) == []


@pytest.mark.parametrize("known_digest", [None, "f" * 64])
def test_a_corpus_that_cannot_be_read_is_not_the_cache_s_fault(known_digest: str | None) -> None:
    def source() -> Iterator[Passage]:
        yield PASSAGES[0]
        raise FileNotFoundError(errno.ENOENT, "No such file", "corpus.jsonl")

    with pytest.raises(UserError, match=r"cannot read the corpus towns: .*corpus\.jsonl"):
        load_retriever("bm25", Corpus("towns", source, known_digest))


def test_the_oracle_says_when_it_knows_nothing() -> None:
    for examples in ([], [Example("q", "?", (("a",),))], [Example("q", "?", (("a",),), ("gone",))]):
        with pytest.raises(UserError, match=r"knows no gold passage: none of the . questions names"):
            load_retriever("oracle", corpus_of(), examples=examples)


def test_a_missing_stemmer_is_named_and_leaves_no_index(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(UserError, match="run `pip install PyStemmer`"):
        load_retriever("bm25", corpus_of())
    assert [name for name in finished(cache) if name.startswith("bm25")] == []


def test_the_info_tells_what_was_built_and_what_it_takes(cache: Path) -> None:
    first, second = index_info(corpus_of()), index_info(corpus_of())
    assert (first.built, second.built) == (True, False)
    assert first.passages == second.passages == 3
    on_disk = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    assert first.bytes == second.bytes == on_disk
    assert first.folder.parent == cache / "indexes"
    assert first.seconds > 0


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAGTRIALS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match=r"cannot write the cache .*file/cache: Not a directory"):
        load_retriever("bm25", corpus_of())


def test_a_full_disk_is_named_and_leaves_no_index(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bm25_index, "write_table", full)  # the last file but one of an index
    with pytest.raises(UserError, match=r"cannot write the cache .* No space left on device; free some"):
        load_retriever("bm25", corpus_of())
    assert [path.name for path in (cache / "indexes").iterdir()] == []


def test_an_interrupted_build_leaves_nothing_that_looks_finished(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bm25_index, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt):
            load_retriever("bm25", corpus_of())
    assert [name for name in finished(cache) if name.startswith("bm25")] == []
    assert ids(load_retriever("bm25", corpus_of()).search(["capital"], 5)[0]) == ["oslo", "lima"]


SCRIPT = """
import sys, time
from pathlib import Path
from ragtrials.data import Corpus, Passage
from ragtrials.retrieval.build import load_retriever

me, other = Path(sys.argv[1]), Path(sys.argv[2])

def source():
    for n in range(2000):
        yield Passage(str(n), f"Town {n}", f"The town number {n} has {n % 7} churches.")
        if n == 1000:
            me.touch()
            while not other.exists():
                time.sleep(0.01)

hits = load_retriever("bm25", Corpus("towns", source, "a" * 64)).search(["town 77 churches"], 3)
print([(hit.passage.id, hit.score) for hit in hits[0]])
"""


def start(me: Path, other: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(me), str(other)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_build_at_once_both_get_the_index(tmp_path: Path, cache: Path) -> None:
    marks = tmp_path / "one", tmp_path / "two"  # each waits until the other is in the middle of writing
    processes = [start(*marks), start(*reversed(marks))]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("[('77', ")
    assert len(finished(cache)) == 2
    assert [path for kind in cache.iterdir() for path in kind.iterdir() if path.name[0] == "."] == []


def test_a_killed_build_leaves_nothing_that_looks_finished(tmp_path: Path, cache: Path) -> None:
    mark, never = tmp_path / "mark", tmp_path / "never"
    process = start(mark, never)
    while not mark.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert finished(cache) == []
    never.touch()
    again = start(mark, never)
    assert again.communicate(timeout=60)[0].startswith("[('77', ")
    assert len(finished(cache)) == 2


def test_the_store_is_shared(cache: Path) -> None:
    assert list(open_store(corpus_of())) == PASSAGES
    load_retriever("random", corpus_of())
    load_retriever("oracle", corpus_of(), examples=EXAMPLES)
    load_retriever("bm25", corpus_of())
    assert len(list((cache / "corpora").iterdir())) == 1


def test_naming_and_describing_import_no_search_library() -> None:
    code = (
        "import sys; from ragtrials.data import Corpus; from ragtrials.retrieval.build import describe_retriever\n"
        "describe_retriever('bm25', Corpus('c', lambda: []))\n"
        "print({'numpy', 'bm25s', 'Stemmer', 'torch'} & set(sys.modules))"
    )
    # the identity of an index needs no index: only `load_retriever` imports what searches
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"
