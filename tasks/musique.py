"""MuSiQue: questions composed of two to four single-hop ones, each with 20 paragraphs.

Reads MuSiQue-Ans and MuSiQue-Full. The latter has every question twice under one id, once with paragraphs
that answer it and once without; the official answer scores count the answerable ones alone, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Corpus, Example, Passage, passage_id
from ragtrials.files import read_jsonl
from ragtrials.metrics.multihop import paragraph_overlap
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files, Hub

_SIZES = {"train": 19938, "dev": 2417}
_HUB = Hub(
    dataset="dgslibisey/MuSiQue",
    config="default",
    revision="c8f4f8c9465fb69d31a8eae894c3fd509c4ca321",
    splits={"train": "train", "dev": "validation"},
    rows=_SIZES,
)
_FILES = Files("musique", ("train", "dev"), "jsonl", read_jsonl, _HUB)
_PARAGRAPH = {"idx": int, "title": str, "paragraph_text": str, "is_supporting": bool}


class MuSiQue(Task):
    """MuSiQue in its original JSON lines from a local file, else MuSiQue-Ans from the hub."""

    name = "musique"
    own_parts = ("predicted_support_idxs",)
    card = TaskCard(
        title="MuSiQue-Ans",
        version="1",
        source="https://github.com/StonyBrookNLP/musique",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}; files: musique_ans_v1.0_{{train,dev}}.jsonl",
        checksums={
            "musique_ans_v1.0_train.jsonl": (
                "83a75b1e11e4e9bb8f8308e72ac40ca617ae4431b3a0d955b61cab259248490a"
            ),
            "musique_ans_v1.0_dev.jsonl": (
                "15fa63794d18a94ce12411aca6e2327e65b6e83b0b1490efab3f1962e48abf3b"
            ),
        },
        licence="CC BY 4.0",
        sizes=_SIZES,
        metrics=("musique_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits=_splits.described(
            "the published train split",
            "dev",
            "the answerable questions of the published development split (test has no public answers)",
        ),
        citation="Trivedi et al. MuSiQue: Multihop Questions via Single-hop Question Composition. TACL 2022.",
    )

    def examples(self, split: str) -> Sequence[Example]:
        """The answerable examples of a split, in published order.

        `meta` has type (hops, as the id says), support (idx of the gold paragraphs), answerable and, where
        the record has it, question_decomposition.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder, else the paragraphs of all development questions."""
        return _pool.file_or_pool(self.data_dir, self.name, "dev", self._all_paragraphs)

    def training_corpus(self) -> Corpus:
        """The corpus file of the task's folder, else the paragraphs of all training questions."""
        return _pool.file_or_pool(self.data_dir, self.name, "train", self._all_paragraphs)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def score_parts(self, answer: str | None, parts: Mapping[str, Any], example: Example) -> dict[str, float]:
        """The official scores of the supporting paragraphs: support_em, support_f1."""
        predicted = parts["predicted_support_idxs"]
        if predicted is None:
            return {"support_em": 0.0, "support_f1": 0.0}
        support = paragraph_overlap(predicted, example.meta["support"])
        return {f"support_{name}": support[name] for name in ("em", "f1")}

    def _read(self, published: str) -> Iterator[Example | _splits.LeftOut]:
        golds = _pool.gold_in_file(self.data_dir, self.name)
        flagged = map(_with_flag, _FILES.records(self.data_dir, published))
        for record in unique_ids(flagged, "id", "answerable"):
            if record.value("answerable"):
                yield _example(record, golds)
            else:
                yield _splits.LeftOut(record.text("id"), "its paragraphs do not answer it (MuSiQue-Full)")

    def _all_paragraphs(self, published: str) -> Iterator[Passage]:
        for record in _FILES.records(self.data_dir, published):
            yield from map(_passage, _paragraphs(record))


def _with_flag(record: Record) -> Record:
    if not isinstance(record.fields.get("answerable"), bool):
        raise record.error(
            "field 'answerable' must be true or false: without it MuSiQue-Full's unanswerable questions "
            "look like answerable ones; fetch the published file"
        )
    return record


def _example(record: Record, golds: Mapping[str, tuple[str, ...]] | None) -> Example:
    key = record.text("id")
    support = [paragraph for paragraph in _paragraphs(record) if paragraph["is_supporting"]]
    answers = [record.text("answer"), *record.items("answer_aliases", str)]
    decomposition = record.fields.get("question_decomposition")
    meta = {
        "type": key.split("__")[0],
        "answerable": True,
        "support": [paragraph["idx"] for paragraph in support],
        **({"question_decomposition": decomposition} if decomposition is not None else {}),
    }
    supporting = _ids(support) if golds is None else golds.get(key, ())
    return _answers.example(record, key, "answer", answers, supporting=supporting, meta=meta)


def _paragraphs(record: Record) -> list[dict[str, Any]]:
    found = record.items("paragraphs", dict)
    for paragraph in found:
        for field, kind in _PARAGRAPH.items():
            if not isinstance(paragraph.get(field), kind):
                raise record.error(f"field 'paragraphs' holds one whose {field!r} is no {kind.__name__}")
    return found


def _passage(paragraph: Mapping[str, Any]) -> Passage:
    title, text = paragraph["title"], paragraph["paragraph_text"]
    return Passage(passage_id(title, text), title, text)


def _ids(paragraphs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_passage(paragraph).id for paragraph in paragraphs))
