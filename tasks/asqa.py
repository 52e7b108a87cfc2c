"""ASQA: ambiguous questions of AmbigQA that want one long answer which covers all short ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ragtrials import metrics
from ragtrials.data import Corpus, Example
from ragtrials.files import holds_json_array, read_json_array, read_json_object
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool
from ragtrials.tasks._published import Files


def _read_either(path: Path) -> Iterable[Record]:
    """The published object of splits (records by id under "dev"), or the array that circulates."""
    if holds_json_array(path):
        yield from read_json_array(path)
        return
    whole = read_json_object(path)
    records = whole.value("dev")
    if not isinstance(records, dict) or not all(isinstance(fields, dict) for fields in records.values()):
        raise whole.error("field 'dev' must hold records by id")
    for number, (key, fields) in enumerate(records.items(), start=1):
        yield Record({**fields, "id": key}, path, number)


_FILES = Files("asqa", ("dev",), "json", _read_either)


class ASQA(Task):
    """ASQA in its published layout or as an array of records. Its corpus is AmbigQA's."""

    name = "asqa"
    card = TaskCard(
        title="ASQA",
        version="1",
        source="https://github.com/google-research/language/tree/master/language/asqa",
        revision="ASQA.json of the published archive, dev",
        licence="Apache 2.0",
        sizes={"train": 4353, "dev": 948},
        metrics=("squad_v1", "containment_v1", "asqa_str_em"),
        main_metric="str_em",
        reported_split="dev",
        splits={"dev": "the published development split, never trained on; it lies in AmbigQA's and NQ's"},
        citation="Stelmakh et al. ASQA: Factoid Questions Meet Long-Form Answers. EMNLP 2022.",
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples, in published order: a slot for each reading; `meta` has long_answers."""
        if split not in self.card.splits:
            raise self.unknown_split(split)
        return [_example(record) for record in unique_ids(_FILES.records(self.data_dir, split), "id")]

    def corpus(self) -> Corpus:
        """The corpus file of AmbigQA's folder."""
        return _pool.corpus_file(self.data_dir, "ambigqa")

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """STR-EM of a long answer, and the usual scores as if one short answer were enough.

        Returns:
            str_em: the share of slots of which a short answer occurs in the text. str_em_hit: 1 if all do.
            em, f1 (SQuAD) and acc (containment): against all short answers of all slots, the best.
        """
        scores: dict[str, float] = {}
        for name in ("squad_v1", "containment_v1"):
            scores.update(metrics.score(name, prediction, example.aliases))
        return {**scores, **metrics.score("asqa_str_em", prediction, example.answers)}


def _example(record: Record) -> Example:
    pairs = record.items("qa_pairs", dict)
    slots = [_answers.texts_of(record, "short_answers", pair.get("short_answers")) for pair in pairs]
    if not slots:
        raise record.error("field 'qa_pairs' holds no answer")
    return Example(
        id=record.identifier("id"),
        question=record.text("ambiguous_question"),
        answers=tuple(_answers.aliases(record, "short_answers", slot) for slot in slots),
        meta={
            "long_answers": list(_long_answers(record)),
            **_answers.blanks([text for slot in slots for text in slot]),
        },
    )


def _long_answers(record: Record) -> Iterator[Any]:
    for annotation in record.items("annotations", dict) if "annotations" in record.fields else ():
        if not isinstance(annotation.get("long_answer"), str):
            raise record.error("field 'annotations' holds one without a long_answer")
        yield annotation["long_answer"]
