"""HotpotQA, distractor setting: questions over two Wikipedia paragraphs, each with its gold sentences.

The corpus pools the paragraphs of the development questions, and while training those of the training
questions, so retrieval is easier than over all of Wikipedia: scores compare with each other, not with
published full-wiki ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example, Passage
from ragtrials.files import read_json_array
from ragtrials.metrics.multihop import hotpotqa_item
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _splits
from ragtrials.tasks._context import facts, gold_paragraphs, original_layout, paragraphs
from ragtrials.tasks._pool import pooled
from ragtrials.tasks._published import Files, Hub

_SIZES = {"train": 90447, "dev": 7405}
_HUB = Hub(
    dataset="hotpotqa/hotpot_qa",
    config="distractor",
    revision="1908d6afbbead072334abe2965f91bd2709910ab",
    splits={"train": "train", "dev": "validation"},
    rows=_SIZES,
    original_layout=original_layout,
)
_FILES = Files("hotpotqa", ("train", "dev"), "json", read_json_array, _HUB)


class HotpotQA(Task):
    """HotpotQA in its original JSON layout from a local file, else from the hub."""

    name = "hotpotqa"
    aliases = ("hotpot", "hotpot_qa")
    own_parts = ("sp",)
    card = TaskCard(
        title="HotpotQA (distractor)",
        version="1",
        source="https://hotpotqa.github.io",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}; files: hotpot_train_v1.1, hotpot_dev_distractor_v1",
        checksums={
            "distractor/validation-00000-of-00001.parquet": (
                "c20b638ca82b21d04fe12e14ff417ad05153d4d215a65de54497fca4e972f7c6"
            )
        },
        licence="CC BY-SA 4.0",
        sizes=_SIZES,
        metrics=("hotpotqa_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits=_splits.described(
            "the published train split",
            "dev",
            "the published development split (the test split has no public answers)",
        ),
        citation=(
            "Yang et al. HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering. "
            "EMNLP 2018."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; `meta` has type, level and supporting_facts."""
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The paragraphs of all development questions, each once, in order of first appearance."""
        return pooled(self.name, "dev", self._paragraphs)

    def training_corpus(self) -> Corpus:
        """The paragraphs of all training questions, each once, in order of first appearance."""
        return pooled(self.name, "train", self._paragraphs)

    def available_offline(self) -> bool:
        """Whether the development questions are local, so that the hub is not asked."""
        return _FILES.has(self.data_dir, "dev")

    def score_parts(self, answer: str | None, parts: Mapping[str, Any], example: Example) -> dict[str, float]:
        """The official scores of supporting facts (`sp_`) and of both together (`joint_`)."""
        gold = {"answer": example.target, "supporting_facts": example.meta["supporting_facts"]}
        return hotpotqa_item({"answer": answer, **parts}, gold)

    def _read(self, published: str) -> Iterator[Example]:
        return map(_example, unique_ids(_FILES.records(self.data_dir, published), "_id"))

    def _paragraphs(self, published: str) -> Iterator[Passage]:
        for record in _FILES.records(self.data_dir, published):
            yield from paragraphs(record, between="")


def _example(record: Record) -> Example:
    known = {field: record.text(field) for field in ("type", "level") if record.fields.get(field) is not None}
    return Example(
        id=record.text("_id"),
        question=record.text("question"),
        answers=((record.text("answer"),),),
        supporting=gold_paragraphs(record, between=""),
        meta={**known, "supporting_facts": facts(record)},
    )
