"""Memory and time of a big corpus file: what no step may do is hold it.

    python benchmarks/corpus_memory.py [--passages 1000000] [--fetch 10000] [--check]

A TSV as DPR publishes Wikipedia (passages of 100 words, quoted texts, titles with quotes in them) is
generated in a temporary folder. Then each step runs in a process of its own: the digest of the file, and
again from its note, writing the passage store, reading all of it in order, and fetching passages by id.
"peak" is the largest resident size of the process (VmHWM): Python and the mapped pages of the store included.
With --check the exit code is 1 where a step's peak is above 300 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

from measuring import in_own_process, memory

LIMIT = 300_000_000
STEPS = ("digest", "noted digest", "store", "iterate", "fetch by id")


def generate(file: Path, count: int) -> None:
    """Words are as unevenly common as in natural text (Zipf's law); lines end as DPR's do."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    stream = draw.choices(words, cum_weights=weights, k=200_000)  # each passage is a stretch of it
    with file.open("w", encoding="utf-8", newline="") as out:
        out.write("id\ttext\ttitle\r\n")
        for number in range(1, count + 1):
            first = draw.randrange(len(stream) - 100)
            drawn = stream[first : first + 100]
            drawn[7] = f'""{drawn[7]}""'
            title = f'"""{drawn[0]}"" {drawn[1]}"' if number % 3 == 0 else f"{drawn[0]} {drawn[1]}"
            out.write(f'{number}\t"{" ".join(drawn)}"\t{title}\r\n')


def run_step(step: str, file: Path, fetch: int) -> dict[str, Any]:
    from ragtrials.corpora import open_corpus
    from ragtrials.retrieval.build import open_store

    corpus = open_corpus(str(file), None)
    began = time.perf_counter()
    if step.endswith("digest"):
        shown = corpus.digest[:12]
    elif step == "store":
        shown = f"{len(open_store(corpus)):,} passages"
    elif step == "iterate":
        characters = sum(len(passage.title) + len(passage.text) for passage in open_store(corpus))
        shown = f"{characters:,} characters"
    else:
        store = open_store(corpus)
        draw = random.Random(1)
        positions = [store.position(str(draw.randint(1, len(store)))) for _ in range(fetch)]
        titles = {store[position].title for position in positions if position is not None}
        shown = f"{sum(position is not None for position in positions):,} found, {len(titles):,} titles"
    return {"seconds": time.perf_counter() - began, "peak": memory("VmHWM"), "shown": shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=1_000_000)
    parser.add_argument("--fetch", type=int, default=10_000)
    parser.add_argument("--check", action="store_true", help="exit with 1 above 300 MB")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, file = options.step
        print(json.dumps(run_step(step, Path(file), options.fetch)))
        return
    with tempfile.TemporaryDirectory() as folder:
        highest = measure(Path(folder), options.passages, options.fetch)
    if options.check and highest > LIMIT:
        raise SystemExit(f"{highest / 1e6:.0f} MB: more than {LIMIT / 1e6:.0f} MB")


def measure(folder: Path, count: int, fetch: int) -> int:
    file = folder / "passages.tsv"
    began = time.perf_counter()
    generate(file, count)
    seconds = time.perf_counter() - began
    print(f"{count:,} passages, {file.stat().st_size / 1e6:,.0f} MB, generated in {seconds:.0f} s")
    environment = {**os.environ, "RAGTRIALS_CACHE": str(folder / "cache")}
    print(f"{'step':12} {'seconds':>8} {'peak MB':>8}", flush=True)
    highest = 0
    for step in STEPS:
        words = ("--fetch", str(fetch), "--step", step, str(file))
        row = in_own_process(__file__, *words, env=environment)
        print(f"{step:12} {row['seconds']:8.2f} {row['peak'] / 1e6:8.0f}  {row['shown']}", flush=True)
        highest = max(highest, row["peak"])
    return highest


if __name__ == "__main__":
    main()
