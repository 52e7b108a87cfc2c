"""HotpotQA, distractor setting: questions over two Wikipedia paragraphs, each with its gold sentences.

The corpus pools the paragraphs of the development questions, so retrieval is easier than over all of
Wikipedia: scores compare with each other, not with published full-wiki ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragtrials.data import Corpus, Example, Passage, passage_id
from ragtrials.files import find_data_file, read_json_array
from ragtrials.hub import read_hub
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard, sample

_HUB = ("hotpotqa/hotpot_qa", "distractor", "1908d6afbbead072334abe2965f91bd2709910ab")
_HUB_SPLITS = {"train": "train", "dev": "validation"}
_HELD_OUT = 500


class HotpotQA(Task):
    """HotpotQA in its original JSON layout from a local file, else from the hub."""

    name = "hotpotqa"
    aliases = ("hotpot", "hotpot_qa")
    card = TaskCard(
        title="HotpotQA (distractor)",
        version="1",
        source="https://hotpotqa.github.io",
        revision=f"hub: {_HUB[0]}@{_HUB[2]}; files: hotpot_train_v1.1, hotpot_dev_distractor_v1",
        checksums={
            "distractor/validation-00000-of-00001.parquet": (
                "c20b638ca82b21d04fe12e14ff417ad05153d4d215a65de54497fca4e972f7c6"
            )
        },
        licence="CC BY-SA 4.0",
        sizes={"train": 90447, "dev": 7405},
        metrics=("hotpotqa_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits={
            "train": "the published train split without the part held out as validation",
            "validation": f"a tenth of train, at most {_HELD_OUT}, to pick checkpoints; drawn by id hash",
            "dev": "the published development split, never trained on (the test split has no public answers)",
        },
        citation=(
            "Yang et al. HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering. "
            "EMNLP 2018."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; `meta` has type, level and supporting_facts."""
        if split not in self.card.splits:
            raise self.unknown_split(split)
        published = "dev" if split == "dev" else "train"
        found = [_example(record) for record in unique_ids(self._records(published), "_id")]
        if published == "dev":
            return found
        held_out = sample(found, min(_HELD_OUT, len(found) // 10))
        if split == "validation":
            return held_out
        ids = {example.id for example in held_out}
        return [example for example in found if example.id not in ids]

    def corpus(self) -> Corpus:
        """The paragraphs of all development questions, each once, in order of first appearance."""
        return Corpus("hotpotqa-dev-pool", self._pool)

    def available_offline(self) -> bool:
        """Whether there is a local folder, so that the hub is not asked."""
        return self.data_dir is not None and (self.data_dir / self.name).is_dir()

    def _pool(self) -> Iterator[Passage]:
        seen: set[str] = set()
        for record in self._records("dev"):
            for passage in _paragraphs(record):
                if passage.id not in seen:
                    seen.add(passage.id)
                    yield passage

    def _records(self, published: str) -> Iterator[Record]:
        if self.available_offline():
            yield from read_json_array(find_data_file(self.data_dir, self.name, published, ["json"]))
            return
        dataset, config, revision = _HUB
        instead = f"put {self.name}/{published}.json[.gz] into a folder named by --data-dir or RAGTRIALS_DATA"
        rows = self.card.sizes[published]
        for row in read_hub(dataset, config, _HUB_SPLITS[published], revision, rows, instead):
            yield Record(_original_layout(row), row.path, row.number)


def _example(record: Record) -> Example:
    facts = _pairs(record, "supporting_facts", int)
    titles = {title for title, _ in facts}
    gold = (passage.id for passage in _paragraphs(record) if passage.title in titles)
    known = {field: record.text(field) for field in ("type", "level") if record.fields.get(field) is not None}
    return Example(
        id=record.text("_id"),
        question=record.text("question"),
        answers=((record.text("answer"),),),
        supporting=tuple(dict.fromkeys(gold)),
        meta={**known, "supporting_facts": facts},
    )


def _paragraphs(record: Record) -> list[Passage]:
    """The context. Sentences bring their own leading space, so joining them restores the paragraph."""
    texts = [(title, "".join(sentences).strip()) for title, sentences in _pairs(record, "context", list)]
    return [Passage(passage_id(title, text), title, text) for title, text in texts]


def _pairs(record: Record, field: str, second: type[Any]) -> list[list[Any]]:
    """A field of [title, x] pairs, where x is a sentence number or a list of sentences."""
    pairs = record.items(field, list)
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], second):
            raise record.error(f"field {field!r} must hold pairs of a title and {second.__name__}")
        if second is list and not all(isinstance(sentence, str) for sentence in pair[1]):
            raise record.error(f"field {field!r} holds a sentence that is not text")
    return pairs


def _original_layout(row: Record) -> dict[str, Any]:
    """The hub's layout, which has columns where the published file has pairs, turned back."""
    facts, context = row.value("supporting_facts"), row.value("context")
    return {
        **{field: row.fields.get(field) for field in ("question", "answer", "type", "level")},
        "_id": row.fields.get("id"),
        "supporting_facts": [list(p) for p in zip(facts["title"], facts["sent_id"], strict=True)],
        "context": [list(p) for p in zip(context["title"], context["sentences"], strict=True)],
    }
