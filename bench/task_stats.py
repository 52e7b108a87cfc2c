"""What a task's data on this machine are like, for `ragtrials show task NAME --stats`.

How many records were read, which of them are odd, and what the corpus and BM25 can give at best.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ragtrials import metrics
from ragtrials.answer_search import AnswerSearch
from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.metrics.retrieval import dpr_answer_recall, gold_recall
from ragtrials.resources import Resources, as_asked
from ragtrials.retrieval.build import load_retriever
from ragtrials.task import Task

DEPTHS = (5, 20)
"""Retrieval is judged by so many passages."""

_BATCH = 200
"""Questions searched together, so that the passages found for a big split are never all in memory."""

_ODD_SPACE = re.compile(r"^\s|\s$|\s\s")


@dataclass(frozen=True, slots=True)
class CorpusStats:
    """What can be found in a task's corpus.

    Attributes:
        name: The corpus's name.
        passages: How many it has.
        searched: Questions whose answers can be looked for: not those answered by yes or no alone, which
            every text "holds", and not those without any answer that has words.
        found: Those of which some answer occurs in some passage, by `AnswerSearch`'s rule.
        answer_recall: By depth, the share of `searched` with `dpr_answer_recall` 1 among BM25's first
            passages for the question; {} if none is searched.
        gold_known: Questions whose gold passages are known.
        gold_recall: By depth, their mean share of gold passages among BM25's first; {} if none is known.
    """

    name: str
    passages: int
    searched: int
    found: int
    answer_recall: Mapping[int, float]
    gold_known: int
    gold_recall: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class TaskStats:
    """The figures of one task on its reported split.

    Attributes:
        task: The task's name.
        split: The reported split.
        records: Records of its file: examples, and what is left out.
        odd: Records that are odd in any way; what is left out is.
        odd_kinds: How many are odd in which way. One record may be odd in several.
        types: How many examples there are of each type, where the dataset has types.
        train: Examples to train on; None if there are none.
        corpus: What can be found in the corpus; None if there is none.
        notes: What is missing on this machine, a line each.
    """

    task: str
    split: str
    records: int
    odd: int
    odd_kinds: Mapping[str, int]
    types: Mapping[str, int]
    train: int | None
    corpus: CorpusStats | None
    notes: tuple[str, ...]


def task_stats(name: str, resources: Resources, corpus: str | None = None) -> TaskStats:
    """Look through a task's records and its corpus, which is streamed, and ask BM25 every question.

    Args:
        name: The task's name or alias, or "jsonl:FILE".
        resources: Where the task is read.
        corpus: What is searched instead of the task's own corpus, as --corpus names it; the task's gold
            passages mean nothing there. An index of it is built if there is none in the cache.

    Raises:
        UserError: The records of the reported split are missing or damaged, or so is the corpus. That the
            task's own corpus or its training file is missing is only a note.
    """
    task = resources.task(name)
    split = task.card.reported_split
    examples = as_asked(resources.examples(task, split), task, corpus)
    left_out = task.left_out(split)
    notes: list[str] = []
    train = _train(task, notes)
    searched = resources.corpus(task, corpus) if corpus else _own_corpus(task, resources, notes)
    found, lacking = _look_through(searched, examples) if searched else (None, frozenset[str]())
    repeated = {text for text, n in Counter(example.question for example in examples).items() if n > 1}
    ways = [tuple(_odd_ways(example, repeated, lacking)) for example in examples]
    reasons = Counter(f"left out: {reason}" for reason in left_out.values())
    types = Counter(str(example.meta["type"]) for example in examples if "type" in example.meta)
    if any(example.meta.get("aliases") is False for example in examples):
        notes.append("its file of answer aliases is not there: published answers count alone")
    return TaskStats(
        task=task.name,
        split=split,
        records=len(examples) + len(left_out),
        odd=len(left_out) + sum(map(bool, ways)),
        odd_kinds=_ordered(reasons) | _ordered(Counter(way for found in ways for way in found)),
        types=_ordered(types),
        train=train,
        corpus=found,
        notes=tuple(notes),
    )


def _train(task: Task, notes: list[str]) -> int | None:
    """How many training examples there are. A file may be missing: not everybody trains."""
    if "train" not in task.card.splits:
        return None
    try:
        return len(task.examples("train"))
    except UserError as error:
        notes.append(f"no training examples: {error}")
        return None


def _own_corpus(task: Task, resources: Resources, notes: list[str]) -> Corpus | None:
    """The task's corpus, opened but not read. Its file may be missing: not every method retrieves."""
    if not task.has_corpus:
        return None
    try:
        return resources.corpus(task)
    except UserError as error:
        notes.append(f"no corpus: {error}")
        return None


def _look_through(corpus: Corpus, examples: Sequence[Example]) -> tuple[CorpusStats, frozenset[str]]:
    """What can be found in the corpus, and the gold passages that it lacks."""
    asked = [example for example in examples if not metrics.closed(example.aliases)]
    search = AnswerSearch([example.aliases for example in asked])
    searched = [example for example, has in zip(asked, search.searchable, strict=True) if has]
    lacking = {passage for example in examples for passage in example.supporting}
    found: set[int] = set()
    passages = 0
    for passage in corpus:
        passages += 1
        found.update(search.questions_in(f"{passage.title}\n{passage.text}"))
        lacking.discard(passage.id)
    answers, golds = _recalls(corpus, examples, {example.id for example in searched})
    stats = CorpusStats(
        name=corpus.name,
        passages=passages,
        searched=len(searched),
        found=len(found),
        answer_recall=_means(answers),
        gold_known=len(golds),
        gold_recall=_means(golds),
    )
    return stats, frozenset(lacking)


def _recalls(
    corpus: Corpus, examples: Sequence[Example], searched: set[str]
) -> tuple[list[list[float]], list[list[float]]]:
    """Answer recalls of the searched questions and gold recalls of those with gold, one per depth."""
    retriever = load_retriever("bm25", corpus)
    answers: list[list[float]] = []
    golds: list[list[float]] = []
    for start in range(0, len(examples), _BATCH):
        batch = examples[start : start + _BATCH]
        results = retriever.search([example.question for example in batch], max(DEPTHS))
        for example, hits in zip(batch, results, strict=True):
            if example.id in searched:
                texts = [f"{hit.passage.title}\n{hit.passage.text}" for hit in hits]
                answers.append([dpr_answer_recall(texts[:depth], example.aliases) for depth in DEPTHS])
            if example.supporting:
                ids = [hit.passage.id for hit in hits]
                golds.append([gold_recall(ids[:depth], example.supporting) for depth in DEPTHS])
    return answers, golds


def _means(rows: Sequence[Sequence[float]]) -> dict[int, float]:
    """By depth, the mean over questions; {} without questions."""
    return {depth: fmean(column) for depth, column in zip(DEPTHS, zip(*rows, strict=True), strict=False)}


def _odd_ways(example: Example, repeated: set[str], lacking: frozenset[str]) -> Iterator[str]:
    """In which ways an example is odd.

    Args:
        example: The example.
        repeated: Questions that stand under several ids.
        lacking: Gold passages that the corpus does not have.
    """
    if "degenerate_gold" in metrics.flags(example.question, example.aliases):
        yield "an answer has an empty normal form"
    if example.meta.get("blank_answers"):
        yield "blank answers dropped"
    if _ODD_SPACE.search(example.question):
        yield "white space at an edge of the question, or doubled in it"
    if example.question in repeated:
        yield "the same question under another id"
    if lacking.intersection(example.supporting):
        yield "a gold passage is not in the corpus"
    if example.meta.get("aliases") is True and len(example.aliases) == 1:
        has_id = example.meta.get("answer_id") is not None
        yield f"{'no alias known for' if has_id else 'no id of'} the answer: the published one counts alone"


def _ordered(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
