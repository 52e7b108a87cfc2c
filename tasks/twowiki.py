"""2WikiMultihopQA: questions over two to four Wikipedia articles, made from facts of Wikidata.

The official script v1.1 accepts the Wikidata aliases and demonyms of the answer's entity. They are used if
`id_aliases.json` lies beside the data; otherwise scores are those of papers that do without, and `meta` says
so ("aliases": false). The hub's copy has no entity ids, hence no aliases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ragtrials import metrics
from ragtrials.data import Corpus, Example, Passage
from ragtrials.files import read_json_array, read_jsonl
from ragtrials.metrics.multihop import twowiki_golds, twowiki_item
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._context import facts, gold_paragraphs, original_layout, paragraphs
from ragtrials.tasks._published import Files, Hub

_SIZES = {"train": 167454, "dev": 12576}
_HUB = Hub(
    dataset="framolfese/2WikiMultihopQA",
    config="default",
    revision="fe713bfbd1afbca1a65246741a75890405d56a3a",
    splits={"train": "train", "dev": "validation"},
    rows=_SIZES,
    original_layout=original_layout,
)
_FILES = Files("twowiki", ("train", "dev"), "json", read_json_array, _HUB)
_ALIASES = Files("twowiki", ("id_aliases",), "json", read_jsonl)
_BETWEEN_SENTENCES = " "


class TwoWiki(Task):
    """2WikiMultihopQA in its original JSON layout from a local file, else from the hub."""

    name = "twowiki"
    aliases = ("2wiki", "2wikimultihopqa")
    own_parts = ("sp", "evidence")
    card = TaskCard(
        title="2WikiMultihopQA",
        version="1",
        source="https://github.com/Alab-NII/2wikimultihop",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}; files: data_ids (train, dev, id_aliases), April 2021",
        checksums={
            "data/validation-00000-of-00001.parquet": (
                "408e2dbb28edc6c8b9ca3ba0c94d4fc7bf17ffb923766593a3a7f546ab4cba59"
            )
        },
        licence="Apache 2.0",
        sizes=_SIZES,
        metrics=("twowiki_v1_1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits=_splits.described(
            "the published train split",
            "dev",
            "the published development split (the test split has no public answers)",
        ),
        citation=(
            "Ho et al. Constructing A Multi-hop QA Dataset for Comprehensive Evaluation of Reasoning Steps. "
            "COLING 2020."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order.

        The answer comes first, then its aliases. `meta` has type, aliases (whether they are known),
        supporting_facts, and where the record has them evidences, evidences_id and answer_id.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder, else the paragraphs of all development questions."""
        return _pool.file_or_pool(self.data_dir, self.name, "dev", self._paragraphs)

    def training_corpus(self) -> Corpus:
        """The corpus file of the task's folder, else the paragraphs of all training questions."""
        return _pool.file_or_pool(self.data_dir, self.name, "train", self._paragraphs)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """The official answer scores over all aliases; acc, containment, of the published answer alone.

        Aliases such as the country code "fr" are found in almost every text.
        """
        return {
            **metrics.score("twowiki_v1_1", prediction, example.aliases),
            **metrics.score("containment_v1", prediction, example.target),
        }

    def score_parts(self, answer: str | None, parts: Mapping[str, Any], example: Example) -> dict[str, float]:
        """The official scores of facts, evidence and all jointly, with the prefixes sp_, evi_ and joint_."""
        known = {"evidences": [], "evidences_id": [], **example.meta}
        gold = {**known, "answer": example.target}
        return twowiki_item({"answer": answer, **parts}, gold, self._names_by_id or {})

    def remarks(self, examples: Sequence[Example]) -> list[str]:
        """Whether aliases count as golds, which changes every score."""
        names = self._names_by_id
        if not names:
            return ["aliases=off: there is no id_aliases.json, so only the published answers are gold"]
        without = sum(example.meta.get("answer_id") not in names for example in examples)
        return [f"aliases=on; for {without} of {len(examples)} answers none are known"]

    def _read(self, published: str) -> Iterator[Example]:
        names = self._names_by_id
        golds = _pool.gold_in_file(self.data_dir, self.name)
        for record in unique_ids(_FILES.records(self.data_dir, published), "_id"):
            yield _example(record, names, golds)

    def _paragraphs(self, published: str) -> Iterator[Passage]:
        for record in _FILES.records(self.data_dir, published):
            yield from paragraphs(record, _BETWEEN_SENTENCES)

    @cached_property
    def _names_by_id(self) -> dict[str, tuple[str, ...]] | None:
        """Aliases and demonyms by Wikidata id; None if their file is not there."""
        if not _ALIASES.has(self.data_dir):
            return None
        records = _ALIASES.records(self.data_dir, "id_aliases")
        return {
            record.text("Q_id"): (*record.items("aliases", str), *record.items("demonyms", str))
            for record in records
        }


def _example(
    record: Record,
    names: Mapping[str, tuple[str, ...]] | None,
    golds: Mapping[str, tuple[str, ...]] | None,
) -> Example:
    key = record.text("_id")
    answer = record.text("answer")
    if not isinstance(record.fields.get("answer_id"), str | None):
        raise record.error("field 'answer_id' must be text or null")
    answers = twowiki_golds({**record.fields, "answer": answer}, names or {})
    known = ("evidences", "evidences_id", "answer_id")
    _check_evidence(record)
    return Example(
        id=key,
        question=record.text("question"),
        answers=(_answers.aliases(record, "answer", answers),),
        supporting=gold_paragraphs(record, _BETWEEN_SENTENCES) if golds is None else golds.get(key, ()),
        meta={
            "type": record.text("type"),
            "aliases": names is not None,
            "supporting_facts": facts(record),
            **{field: record.fields[field] for field in known if record.fields.get(field) is not None},
        },
    )


def _check_evidence(record: Record) -> None:
    """Hold that evidence is a list of triples, and that their ids, where there are any, are one to each."""
    triples = _triples(record, "evidences", (str,))
    ids = _triples(record, "evidences_id", (str, type(None)))
    if ids and len(ids) != len(triples):
        raise record.error(f"field 'evidences_id' has {len(ids)} triples, 'evidences' {len(triples)}")


def _triples(record: Record, field: str, of: tuple[type, ...]) -> list[Any]:
    rows = record.items(field, list) if record.fields.get(field) is not None else []
    if not all(len(row) == 3 and all(isinstance(part, of) for part in row) for row in rows):
        raise record.error(f"field {field!r} must hold triples of texts")
    return rows
