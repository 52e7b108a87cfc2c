"""StrategyQA: yes/no questions whose reasoning steps are implied, with evidence paragraphs of Wikipedia."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example
from ragtrials.files import read_json_array
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _pool, _splits
from ragtrials.tasks._published import Files

_FILES = Files("strategyqa", ("train", "dev"), "json", read_json_array)
_NO_PARAGRAPHS = frozenset({"operation", "no_evidence"})


class StrategyQA(Task):
    """StrategyQA in its original JSON layout, with the split into train and dev of its repository."""

    name = "strategyqa"
    aliases = ("strategy_qa",)
    choices = ("yes", "no")
    card = TaskCard(
        title="StrategyQA",
        version="1",
        source="https://github.com/eladsegal/strategyqa",
        revision="data/strategyqa/{train,dev}.json",
        licence="MIT",
        sizes={"train": 2061, "dev": 229},
        metrics=("squad_v1", "strategyqa_acc"),
        main_metric="acc",
        reported_split="dev",
        splits=_splits.described(
            "the repository's train split",
            "dev",
            "the repository's development split (the test set has no public answers)",
        ),
        citation=(
            "Geva et al. Did Aristotle Use a Laptop? A Question Answering Benchmark with Implicit Reasoning "
            "Strategies. TACL 2021."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; true is "yes", false is "no".

        Gold passages are the paragraphs that any annotator used. `meta` has term, description, facts,
        decomposition and evidence where the record has them.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder; its ids are those of the evidence."""
        return _pool.corpus_file(self.data_dir, self.name)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def _read(self, published: str) -> Iterator[Example]:
        golds = _pool.gold_passages(self.data_dir, self.name)
        for record in unique_ids(_FILES.records(self.data_dir, published), "qid"):
            yield _example(record, golds)


def _example(record: Record, golds: Mapping[str, tuple[str, ...]] | None) -> Example:
    key = record.text("qid")
    answer = record.value("answer")
    if not isinstance(answer, bool):
        raise record.error("field 'answer' must be true or false")
    evidence = record.fields.get("evidence") or []
    used = tuple(dict.fromkeys(_paragraph_ids(record, evidence)))
    known = ("term", "description", "facts", "decomposition", "evidence")
    return Example(
        id=key,
        question=record.text("question"),
        answers=(("yes" if answer else "no",),),
        supporting=used if golds is None else golds.get(key, ()),
        meta={field: record.fields[field] for field in known if record.fields.get(field) is not None},
    )


def _paragraph_ids(record: Record, evidence: Any) -> Iterator[str]:
    """The paragraph ids in lists nested by annotator, step and kind, mixed with "operation" and the like."""
    rest = [evidence]
    while rest:
        part = rest.pop()
        if isinstance(part, list):
            rest.extend(reversed(part))
        elif not isinstance(part, str):
            raise record.error("field 'evidence' must hold nested lists of texts")
        elif part not in _NO_PARAGRAPHS:
            yield part
