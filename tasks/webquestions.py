"""WebQuestions: questions from Google's suggestions, answered with Freebase entities.

Where a question has several answers, any of them counts, as in open-domain question answering since DPR; the
original evaluation asked for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example
from ragtrials.files import read_jsonl
from ragtrials.records import Record
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files, Hub


def _original_layout(row: Record) -> dict[str, Any]:
    return {"question": row.fields.get("question"), "answer": row.fields.get("answers")}


_SIZES = {"train": 3778, "test": 2032}
_HUB = Hub(
    dataset="stanfordnlp/web_questions",
    config="default",
    revision="0e473cbe21d1e91ec18da343644498be6a3f5454",
    splits={"train": "train", "test": "test"},
    rows=_SIZES,
    original_layout=_original_layout,
)
_FILES = Files("webquestions", ("train", "test"), "jsonl", read_jsonl, _HUB)


class WebQuestions(Task):
    """WebQuestions as JSON lines of `question` and `answer` from a local file, else from the hub."""

    name = "webquestions"
    aliases = ("webq", "web_questions")
    card = TaskCard(
        title="WebQuestions",
        version="1",
        source="https://nlp.stanford.edu/software/sempre",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}",
        licence="CC BY 4.0",
        sizes=_SIZES,
        metrics=("squad_v1", "containment_v1"),
        main_metric="em",
        reported_split="test",
        splits=_splits.described("the published train split", "test", "the published test split"),
        citation="Berant et al. Semantic Parsing on Freebase from Question-Answer Pairs. EMNLP 2013.",
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order.

        Published ids, if any, are positions in a split, the same in train and test; so questions give the
        ids, and `meta` keeps the published one as published_id.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder."""
        return _pool.corpus_file(self.data_dir, self.name)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "test")

    def _read(self, published: str) -> Iterator[Example]:
        records = _FILES.records(self.data_dir, published)
        for key, record in _answers.named_by_question(records, "question"):
            texts = _answers.texts_of(record, "answer", record.value("answer"))
            known = record.fields.get("id") is not None
            meta = {"published_id": record.identifier("id")} if known else {}
            yield _answers.example(record, key, "answer", texts, meta=meta)
