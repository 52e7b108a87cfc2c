"""PopQA: one Wikidata fact a question, about well-known and obscure things, with page views as popularity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ragtrials.data import Corpus, Example
from ragtrials.files import read_table
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files, Hub

_SIZES = {"test": 14267}
_HUB = Hub(
    dataset="akariasai/PopQA",
    config="default",
    revision="098765c79ea10a2cb19c828324e33281b8336ec0",
    splits={"test": "test"},
    rows=_SIZES,
)
_FILES = Files("popqa", ("train", "test"), "tsv", partial(read_table, delimiter="\t"), _HUB)


class PopQA(Task):
    """PopQA in its original TSV from a local file, else (the test split) from the hub."""

    name = "popqa"
    aliases = ("pop_qa",)
    card = TaskCard(
        title="PopQA",
        version="1",
        source="https://github.com/AlexTMallen/adaptive-retrieval",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}; file: popQA.tsv",
        checksums={"test.tsv": "9a5227f41bff0e4c331d4a774d946b12f95307892b58f860a9606ef356e6089b"},
        licence="MIT",
        sizes=_SIZES,
        metrics=("squad_v1", "popqa_2023"),
        main_metric="acc",
        reported_split="test",
        splits=_splits.described(
            "a local file in PopQA's layout (no training split is published)",
            "test",
            "the one published file",
        ),
        citation=(
            "Mallen et al. When Not to Trust Language Models: Investigating Effectiveness of Parametric and "
            "Non-Parametric Memories. ACL 2023."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order.

        Different subjects may share a name and so a question. `meta` has subject, relation, object and
        popularity (monthly page views of the subject).
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
        golds = _pool.gold_passages(self.data_dir, self.name) or {}
        for record in unique_ids(_FILES.records(self.data_dir, published), "id"):
            yield _example(record, golds)


def _example(record: Record, golds: Mapping[str, tuple[str, ...]]) -> Example:
    key = record.identifier("id")
    answers = _answers.json_texts(record, "possible_answers")
    meta = {
        "subject": record.text("subj"),
        "relation": record.text("prop"),
        "object": record.text("obj"),
        "popularity": _views(record),
    }
    supporting = golds.get(key, ())
    return _answers.example(record, key, "possible_answers", answers, supporting=supporting, meta=meta)


def _views(record: Record) -> int:
    views = record.identifier("s_pop")
    if not (views.isascii() and views.isdigit() and len(views) < 20):
        raise record.error(f"field 's_pop' must be a whole number, not {views[:20]!r}")
    return int(views)
