"""Bamboogle: 125 two-hop questions that Google answered wrongly in 2022. There is nothing to train on.

The published table carries a canary in its header and asks not to be part of training corpora.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ragtrials.data import Corpus, Example
from ragtrials.files import read_table
from ragtrials.records import Record
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool
from ragtrials.tasks._published import Files

_COLUMNS = ("question", "empty 2", "empty 3", "empty 4", "answer", "answer 2", "canary")
_FILES = Files("bamboogle", ("test",), "tsv", partial(read_table, delimiter="\t", columns=_COLUMNS))


class Bamboogle(Task):
    """Bamboogle in its published layout, a table as TSV: question in column 1, answers in 5 and 6."""

    name = "bamboogle"
    card = TaskCard(
        title="Bamboogle",
        version="1",
        source="https://github.com/ofirpress/self-ask",
        revision="the published table, exported as TSV",
        licence="not stated; carries a canary",
        sizes={"test": 125},
        metrics=("squad_v1", "containment_v1"),
        main_metric="em",
        reported_split="test",
        splits={"test": "the one published table, never trained on"},
        citation=(
            "Press et al. Measuring and Narrowing the Compositionality Gap in Language Models. "
            "Findings of EMNLP 2023."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples, in published order; the table has no ids, so questions give them."""
        if split not in self.card.splits:
            raise self.unknown_split(split)
        return list(self._read())

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder."""
        return _pool.corpus_file(self.data_dir, self.name)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir)

    def _read(self) -> Iterator[Example]:
        records = iter(_FILES.records(self.data_dir, "test"))
        header = next(records)
        _check_header(header)
        empty = True
        for key, record in _answers.named_by_question(records, "question"):
            texts = [record.text("answer"), record.value("answer 2")]
            yield Example(key, record.text("question"), (_answers.aliases(record, "answer", texts),))
            empty = False
        if empty:
            raise header.error("there are no rows below the header")


def _check_header(header: Record) -> None:
    """The names must be those of the published table, three of which are empty."""
    found = [header.fields[name] for name in ("question", "answer", "answer 2")]
    if found != ["Question", "Answer", "Answer 2"]:
        raise header.error(f"the header must have Question, Answer and Answer 2, not {found}")
