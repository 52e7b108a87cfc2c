"""AmbigQA: questions of NQ-open that may have several readings, each with its answer.

One to three people annotated a question and may disagree even on whether it is ambiguous; the official score
takes the annotation that fits best. Reads the light and the full layout. ASQA's development questions are
among these, and these lie in NQ's training part: a model that is trained on NQ has seen them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example
from ragtrials.files import read_json_array
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files, Hub
from ragtrials.tasks._several import answers_in, score_annotations

_SINGLE, _MULTIPLE = "singleAnswer", "multipleQAs"


def _original_layout(row: Record) -> dict[str, Any]:
    """The hub's layout, which has columns where the published file has lists of objects, turned back."""
    columns = row.value("annotations")
    annotations = []
    for kind, answer, pairs in zip(columns["type"], columns["answer"], columns["qaPairs"], strict=True):
        readings = [
            {"question": question, "answer": found}
            for question, found in zip(pairs["question"], pairs["answer"], strict=True)
        ]
        content = {"answer": answer} if kind == _SINGLE else {"qaPairs": readings}
        annotations.append({"type": kind, **content})
    return {**row.fields, "annotations": annotations}


_SIZES = {"train": 10036, "dev": 2002}
_HUB = Hub(
    dataset="sewon/ambig_qa",
    config="light",
    revision="e969d0132f4dd28c2939d55be34f1788c00ccfe7",
    splits={"train": "train", "dev": "validation"},
    rows=_SIZES,
    original_layout=_original_layout,
)
_FILES = Files("ambigqa", ("train", "dev"), "json", read_json_array, _HUB)


class AmbigQA(Task):
    """AmbigQA in its original JSON layout, light or full, from a local file, else from the hub."""

    name = "ambigqa"
    aliases = ("ambignq", "ambig_qa")
    several_answers = True
    card = TaskCard(
        title="AmbigQA (AmbigNQ)",
        version="1",
        source="https://nlp.cs.washington.edu/ambigqa",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision} ({_HUB.config}); files: ambignq_light or ambignq",
        licence="CC BY-SA 3.0",
        sizes=_SIZES,
        metrics=("ambigqa_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits=_splits.described(
            "the published train split",
            "dev",
            "the published development split (test has no public answers); it lies in NQ-open's train",
        ),
        citation="Min et al. AmbigQA: Answering Ambiguous Open-domain Questions. EMNLP 2020.",
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order.

        The slots of `answers` are those of the first annotation with several answers; where all have one, it
        is one slot with what all accept. `meta` has type (single, multi or, where annotations disagree,
        mixed), annotations (the slots of each) and, in the full layout, nq_answer.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder."""
        return _pool.corpus_file(self.data_dir, self.name)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """The official F1 of a prediction with its answers divided by ";" or line breaks.

        Returns:
            f1: AmbigQA's F1 of answers, the best over the annotations. em: 1 where f1 is 1. acc: the share
            of slots that the prediction contains an alias of, the best over the annotations.
        """
        return self.score_several(answers_in(prediction), example)

    def score_several(self, answers: Sequence[str], example: Example) -> dict[str, float]:
        """As `score`, for a list of answers as the official script reads it."""
        return score_annotations(answers, example.meta["annotations"])

    def remarks(self, examples: Sequence[Example]) -> list[str]:
        """Which rows the official script's "multi only" are."""
        return ['"type multi" is what the official script calls "multi only": no annotation has one answer']

    def _read(self, published: str) -> Iterator[Example]:
        golds = _pool.gold_passages(self.data_dir, self.name) or {}
        for record in unique_ids(_FILES.records(self.data_dir, published), "id"):
            yield _example(record, golds)


def _example(record: Record, golds: Mapping[str, tuple[str, ...]]) -> Example:
    key = record.identifier("id")
    annotations = record.items("annotations", dict)
    published = [_slots(record, annotation) for annotation in annotations]
    slots = [[_filled(slot) for slot in found if _filled(slot)] for found in published]
    kinds = {annotation["type"] for annotation in annotations}
    several = next((s for s, a in zip(slots, annotations, strict=True) if a["type"] == _MULTIPLE and s), None)
    if not any(slots):
        raise record.error("field 'annotations' holds no answer")
    chosen = several or [[text for found in slots for slot in found for text in slot]]
    extra = {} if record.fields.get("nq_answer") is None else {"nq_answer": record.items("nq_answer", str)}
    return Example(
        id=key,
        question=record.text("question"),
        answers=tuple(_answers.aliases(record, "annotations", slot) for slot in chosen),
        supporting=golds.get(key, ()),
        meta={
            "type": {_SINGLE: "single", _MULTIPLE: "multi"}[kinds.pop()] if len(kinds) == 1 else "mixed",
            "annotations": [found for found in slots if found],
            **extra,
            **_answers.blanks([text for found in published for slot in found for text in slot or [""]]),
        },
    )


def _slots(record: Record, annotation: Mapping[str, Any]) -> list[list[str]]:
    """The alias lists of one annotation, as published."""
    if annotation.get("type") == _SINGLE:
        return [_answers.texts_of(record, "answer", annotation.get("answer"))]
    pairs = annotation.get("qaPairs")
    if annotation.get("type") != _MULTIPLE or not isinstance(pairs, list):
        raise record.error(f"field 'annotations' holds neither {_SINGLE} nor {_MULTIPLE} with qaPairs")
    if not all(isinstance(pair, dict) for pair in pairs):
        raise record.error("field 'qaPairs' must hold objects")
    return [_answers.texts_of(record, "answer", pair.get("answer")) for pair in pairs]


def _filled(slot: Sequence[str]) -> list[str]:
    return [text for text in slot if text.strip()]
