"""Speed and memory of the bm25 retriever: each phase in a process of its own.

    python benchmarks/bm25.py [--passages 20000] [--queries 1000]

The passages are those of the task geo_hop where it is installed, else generated ones. "peak" is the
largest resident size of the process (VmHWM), Python and numpy included; "private" is by how much its
own memory (RssAnon: what is not a mapped file) grew. That loading maps and does not copy shows in the
types of the arrays and in "private", beside the phase "copy", which reads the same index into memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from measuring import in_own_process, memory

from ragtrials.data import Corpus, Passage
from ragtrials.retrieval.build import index_info, load_retriever, open_store

PHASES = ("store", "build", "load", "copy", "search")


def passages_of(count: int) -> tuple[str, Iterator[Passage]]:
    if importlib.util.find_spec("ragtrials.tasks.geo_hop"):
        from ragtrials.registry import TASKS

        corpus = TASKS.load("geo_hop")().corpus()
        return corpus.name, islice(corpus, count)
    return "generated text", generated(count)


def generated(count: int) -> Iterator[Passage]:
    """60 words each; words are as unevenly common as in natural text (Zipf's law)."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(50_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    for number in range(count):
        text = " ".join(draw.choices(words, cum_weights=weights, k=60))
        yield Passage(f"p{number}", " ".join(draw.choices(words, k=2)).title(), text)


def from_file(file: Path) -> Iterator[Passage]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield Passage(**json.loads(line))


def queries_of(corpus: Corpus, count: int) -> list[str]:
    """A title and six words of the text, from passages spread over the corpus."""
    store = open_store(corpus)
    spread = (store[len(store) * number // count] for number in range(count))
    return [f"{passage.title} {' '.join(passage.text.split()[3:9])}" for passage in spread]


def run_phase(phase: str, corpus: Corpus, queries: int) -> dict[str, Any]:
    import bm25s
    import Stemmer  # noqa: F401  imports are not part of any phase

    if phase == "copy":
        folder = index_info(corpus).folder
    if phase == "search":
        retriever, asked = load_retriever("bm25", corpus), queries_of(corpus, queries)
    shown: dict[str, Any] = {}
    before, began = memory("RssAnon"), time.perf_counter()
    if phase == "store":
        open_store(corpus)
    elif phase == "build":
        info = index_info(corpus)
        shown = {"passages": info.passages, "bytes": info.bytes}
    elif phase == "load":
        retriever = load_retriever("bm25", corpus)
        arrays = retriever.index.arrays.values()  # type: ignore[attr-defined]
        shown = {"types": sorted({type(array).__name__ for array in arrays})}
        shown["postings"] = sum(array.nbytes for array in arrays)
    elif phase == "copy":
        copied = bm25s.BM25.load(folder, mmap=False, load_vocab=False, show_progress=False)
        shown = {"types": sorted({type(copied.scores[name]).__name__ for name in ("data", "indices")})}
    else:
        hits = retriever.search(asked, 5)
        shown = {"queries": len(hits), "found": sum(bool(found) for found in hits)}
    seconds, private = time.perf_counter() - began, memory("RssAnon") - before
    return shown | {"seconds": seconds, "private": private, "peak": memory("VmHWM")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--phase", nargs=3, metavar=("PHASE", "FILE", "DIGEST"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        phase, file, digest = options.phase
        corpus = Corpus("benchmark", lambda: from_file(Path(file)), digest)
        print(json.dumps(run_phase(phase, corpus, options.queries)))
        return
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), options.passages, options.queries)


def compare(folder: Path, count: int, queries: int) -> None:
    name, passages = passages_of(count)
    file = folder / "corpus.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(asdict(passage)) + "\n" for passage in passages)
    digest = Corpus(name, lambda: from_file(file)).digest
    environment = {**os.environ, "RAGTRIALS_CACHE": str(folder / "cache")}
    print(f"{'phase':8} {'seconds':>8} {'peak MB':>8} {'private MB':>11}")
    done: dict[str, Any] = {}
    for phase in PHASES:
        words = ("--queries", str(queries), "--phase", phase, str(file), digest)
        done[phase] = row = in_own_process(__file__, *words, env=environment)
        print(f"{phase:8} {row['seconds']:8.3f} {row['peak'] / 1e6:8.0f} {row['private'] / 1e6:+11.1f}")
    build, load, copy, search = (done[phase] for phase in ("build", "load", "copy", "search"))
    rate = search["queries"] / search["seconds"]
    print(f"\n{build['passages']:,} passages ({name}), {build['bytes'] / 1e6:.1f} MB on disk")
    print(f"search {rate:,.0f} queries/s in a batch of {search['queries']:,}, {search['found']:,} with hits")
    for what, row in (("load", load), ("copy", copy)):
        grown = f"{row['private'] / 1e6:.1f} MB more private memory"
        print(f"{what}   {load['postings'] / 1e6:.1f} MB of postings as {'/'.join(row['types'])}: {grown}")


if __name__ == "__main__":
    main()
