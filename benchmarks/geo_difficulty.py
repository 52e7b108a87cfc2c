"""How hard the geo tasks are: what BM25 finds, and what the model knows by itself.

    python benchmarks/geo_difficulty.py [--model quickstart] [--questions 100] [--bm25-only]

"all gold" is the share of questions of which BM25 finds every gold passage among k. For comparison
questions "one query per place" asks the question's two parts, with the same number of passages in all.
Closed book is the method `no_retrieval` in its laptop profile (few-shot) on the first questions of the
task's sample.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from ragtrials.data import Example
from ragtrials.driver import Driver
from ragtrials.llm.build import load_engine
from ragtrials.program import Retriever
from ragtrials.registry import METHODS, TASKS
from ragtrials.retrieval.build import load_retriever
from ragtrials.task import Task, sample

K = 5
TASK_NAMES = ("geo_hop", "geo_pop", "geo_ambig")
POPULARITY = (20_000, 100_000, 500_000, 5_000_000)


def found_all(retriever: Retriever, examples: Sequence[Example], k: int) -> list[float]:
    hits = retriever.search([example.question for example in examples], k)
    return [
        float({*example.supporting} <= {hit.passage.id for hit in row})
        for example, row in zip(examples, hits, strict=True)
    ]


def found_by_parts(retriever: Retriever, examples: Sequence[Example], ks: tuple[int, int]) -> list[float]:
    """With one query per place, the first of which brings ks[0] passages and the second ks[1]."""
    found = []
    for example in examples:
        rows = retriever.search(example.meta["parts"], max(ks))
        ids = {hit.passage.id for row, k in zip(rows, ks, strict=True) for hit in row[:k]}
        found.append(float({*example.supporting} <= ids))
    return found


def table(
    title: str, examples: Sequence[Example], values: Sequence[float], *keys: Callable[[Example], str | None]
) -> None:
    print(f"\n{title}")
    rows: dict[str, list[float]] = defaultdict(list)
    for example, value in zip(examples, values, strict=True):
        rows["all"].append(value)
        for name in filter(None, (key(example) for key in keys)):
            rows[name].append(value)
    for group, row in sorted(rows.items(), key=lambda item: (item[0] != "all", item[0])):
        print(f"  {group:<28} {sum(row) / len(row):6.1%}  of {len(row)}")


def popularity(example: Example) -> str:
    bound = next((bound for bound in POPULARITY if example.meta["popularity"] < bound), None)
    return f"under {bound:>9,} people" if bound else f"from {POPULARITY[-1]:>10,} people"


def generation(tasks: dict[str, Task]) -> None:
    began = time.perf_counter()
    examples = sum(len(task.examples(split)) for task in tasks.values() for split in task.card.splits)
    passages = sum(1 for _ in tasks["geo_hop"].corpus())
    print(f"generated {examples} questions and {passages} passages in {time.perf_counter() - began:.1f} s")


def bm25(tasks: dict[str, Task]) -> None:
    began = time.perf_counter()
    retriever = load_retriever("bm25", tasks["geo_hop"].corpus())
    print(f"bm25 index ready in {time.perf_counter() - began:.1f} s")
    hop = tasks["geo_hop"].examples("test")
    table(
        f"geo_hop test: all gold at k={K}",
        hop,
        found_all(retriever, hop, K),
        lambda e: e.meta["type"],
        lambda e: f"{e.meta['type']}, {e.meta['level']}",
        lambda e: f"bridge, clue {e.meta['clue']}" if e.meta["type"] == "bridge" else None,
    )
    pairs = [example for example in hop if example.meta["type"] == "comparison"]
    for ks in ((3, 2), (5, 5)):
        one = found_all(retriever, pairs, sum(ks))
        parts = found_by_parts(retriever, pairs, ks)
        table(f"comparison: whole question, k={sum(ks)}", pairs, one)
        table(f"comparison: one query per place, k={ks[0]} and {ks[1]}", pairs, parts)
    for name in ("geo_pop", "geo_ambig"):
        examples = tasks[name].examples("test")
        key = "relation" if name == "geo_pop" else "type"
        table(
            f"{name} test: all gold at k={K}",
            examples,
            found_all(retriever, examples, K),
            lambda e, key=key: e.meta[key],
        )


def closed_book(task: Task, model: str, questions: int) -> None:
    kind = METHODS.load("no_retrieval")
    method = kind(kind.PROFILES["laptop"])
    method.prepare(sample(task.examples("train"), method.shots))
    asked = sample(task.examples("test"), questions)
    driver = Driver(None, load_engine(model))
    traces = driver.run(method.answer, [(example.id, example.question) for example in asked])
    scores = [task.score(trace.answer, example) for trace, example in zip(traces, asked, strict=True)]
    for metric in ("acc", "em", "f1"):
        table(
            f"{task.name} closed book, {method.shots} shots, {model}: {metric}",
            asked,
            [score[metric] for score in scores],
            *((lambda e: e.meta.get("relation"), popularity) if metric == "acc" else ()),
        )
    for trace, example in list(zip(traces, asked, strict=True))[:8]:
        print(f"    {example.question} -> {trace.answer!r} (gold {example.target!r})")
    print(f"  ({driver.timing.engine:.0f} s of generation)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="quickstart")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--tasks", nargs="*", default=["geo_pop"], choices=TASK_NAMES, help="closed book")
    parser.add_argument("--bm25-only", action="store_true")
    options = parser.parse_args()
    tasks = {name: TASKS.load(name)() for name in TASK_NAMES}
    generation(tasks)
    bm25(tasks)
    for name in [] if options.bm25_only else options.tasks:
        closed_book(tasks[name], options.model, options.questions)


if __name__ == "__main__":
    main()
