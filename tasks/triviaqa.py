"""TriviaQA, open-domain: trivia questions with the Wikipedia aliases of their answers, in DPR's files.

DPR's test file is the published development part of the unfiltered set, as in most papers. Quotes that DPR
doubled stay doubled, so that questions are the very texts others asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ragtrials.data import Corpus, Example
from ragtrials.files import read_table
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files

_READ = partial(read_table, delimiter="\t", columns=("question", "answers"))
_FILES = Files("triviaqa", ("train", "test"), "tsv", _READ)


class TriviaQA(Task):
    """TriviaQA in DPR's layout: a TSV without header, answers as a Python list."""

    name = "triviaqa"
    aliases = ("trivia_qa", "tqa")
    card = TaskCard(
        title="TriviaQA (open)",
        version="1",
        source="https://nlp.cs.washington.edu/triviaqa, split by https://github.com/facebookresearch/DPR",
        revision="DPR: data/retriever/qas/trivia-{train,test}.csv",
        licence="Apache 2.0",
        sizes={"train": 78785, "test": 11313},
        metrics=("triviaqa_v1", "containment_v1"),
        main_metric="em",
        reported_split="test",
        splits=_splits.described(
            "DPR's train file", "test", "DPR's test file, which is the published development part"
        ),
        citation=(
            "Joshi et al. TriviaQA: A Large Scale Distantly Supervised Challenge Dataset for Reading "
            "Comprehension. ACL 2017."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; the files have no ids, so questions give them."""
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
            texts = _answers.python_texts(record, "answers")
            yield _answers.example(record, key, "answers", texts)
