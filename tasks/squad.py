"""SQuAD asked without its paragraph: the answerable questions of a v1.1 or v2.0 development file.

Questions were written with the paragraph in view ("What did he do next?"), so many cannot be answered without
it; the corpus pools the paragraphs of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragtrials.data import Corpus, Example, Passage, passage_id
from ragtrials.files import read_json_object
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files


def _questions(path: Path) -> Iterator[Record]:
    """The questions, each with the `title` and `context` it is nested in."""
    number = 0
    for title, context, questions in _nested(path):
        for question in questions:
            number += 1
            yield Record({**question, "title": title, "context": context}, path, number, "question")


def _nested(path: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    whole = read_json_object(path)
    for number, article in enumerate(whole.items("data", dict), start=1):
        place = Record(article, path, number, "article")
        title = place.text("title")
        for paragraph in place.items("paragraphs", dict):
            inner = Record(paragraph, path, number, "article")
            yield title, inner.text("context"), inner.items("qas", dict)


_FILES = Files("squad", ("dev",), "json", _questions)


class SQuAD(Task):
    """SQuAD in its original JSON layout."""

    name = "squad"
    card = TaskCard(
        title="SQuAD (open, answerable questions)",
        version="1",
        source="https://rajpurkar.github.io/SQuAD-explorer",
        revision="dev-v2.0.json or dev-v1.1.json",
        licence="CC BY-SA 4.0",
        sizes={"dev": 11873},
        metrics=("squad_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits={"dev": "the answerable questions of the published development file, never trained on"},
        citation=(
            "Rajpurkar et al. SQuAD: 100,000+ Questions for Machine Comprehension of Text. EMNLP 2016; "
            "Know What You Don't Know: Unanswerable Questions for SQuAD. ACL 2018."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """The answerable examples, in published order; `meta` has title, the article's."""
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The paragraphs of the development file, each once, in order of first appearance."""
        return _pool.pooled(self.name, "dev", self._paragraphs)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir)

    def _read(self, published: str) -> Iterator[Example | _splits.LeftOut]:
        for record in unique_ids(_FILES.records(self.data_dir, published), "id"):
            if record.fields.get("is_impossible"):
                yield _splits.LeftOut(record.text("id"), "has no answer (SQuAD 2.0)")
            else:
                yield _example(record)

    def _paragraphs(self, published: str) -> Iterable[Passage]:
        return map(_passage, _FILES.records(self.data_dir, published))


def _example(record: Record) -> Example:
    answers = record.items("answers", dict)
    if not all(isinstance(answer.get("text"), str) for answer in answers):
        raise record.error("field 'answers' holds one without text")
    texts = [answer["text"] for answer in answers]
    supporting, meta = (_passage(record).id,), {"title": record.text("title")}
    return _answers.example(record, record.text("id"), "answers", texts, supporting=supporting, meta=meta)


def _passage(record: Record) -> Passage:
    title, text = record.text("title"), record.text("context")
    return Passage(passage_id(title, text), title, text)
