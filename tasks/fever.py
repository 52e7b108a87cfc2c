"""FEVER: claims to be judged as supported, refuted or undecided. No corpus comes with it.

The claim stands in the question's place, as published. Evidence is kept in `meta` and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.files import read_jsonl
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _splits
from ragtrials.tasks._published import Files

_FILES = Files("fever", ("train", "dev"), "jsonl", read_jsonl)
LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


class Fever(Task):
    """FEVER in its original JSON lines. Claims that are in train and dev, there are some, leave train."""

    name = "fever"
    has_corpus = False
    choices = LABELS
    card = TaskCard(
        title="FEVER",
        version="1",
        source="https://fever.ai/dataset/fever.html",
        revision="train.jsonl, shared_task_dev.jsonl",
        licence="CC BY-SA 3.0",
        sizes={"train": 145449, "dev": 19998},
        metrics=("squad_v1", "fever_acc"),
        main_metric="acc",
        reported_split="dev",
        splits=_splits.described(
            "the published train split", "dev", "the published development split (test has no public labels)"
        ),
        citation=(
            "Thorne et al. FEVER: a Large-scale Dataset for Fact Extraction and VERification. NAACL 2018."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; claims may repeat under other ids.

        The answer is the label. `meta` has evidence: alternatives, each a list of [title, sentence number].
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        raise UserError("task fever has no corpus: use a method that does not retrieve")

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def _read(self, published: str) -> Iterator[Example]:
        for record in unique_ids(_FILES.records(self.data_dir, published), "id"):
            yield _example(record)


def _example(record: Record) -> Example:
    label = record.text("label")
    if label not in LABELS:
        raise record.error(f"field 'label' must be one of {', '.join(LABELS)}, not {label[:40]!r}")
    groups = record.items("evidence", list)
    return Example(
        id=record.identifier("id"),
        question=record.text("claim"),
        answers=((label,),),
        meta={"evidence": [found for group in groups if (found := _sentences(record, group))]},
    )


def _sentences(record: Record, group: list[Any]) -> list[list[Any]]:
    """[title, sentence number] of each [annotation, evidence, title, sentence number] that is not null."""
    if not all(isinstance(sentence, list) and len(sentence) == 4 for sentence in group):
        raise record.error("field 'evidence' must hold groups of [annotation, evidence, title, sentence]")
    return [sentence[2:] for sentence in group if sentence[2] is not None]
