"""NQ-open: questions that people typed into Google, with short answers from Wikipedia.

The development split is what most papers call the test set. The questions of AmbigQA's and ASQA's
development splits lie in the training split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ragtrials.data import Corpus, Example
from ragtrials.files import read_jsonl
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers, _pool, _splits
from ragtrials.tasks._published import Files, Hub

_SIZES = {"train": 87925, "dev": 3610}
_HUB = Hub(
    dataset="google-research-datasets/nq_open",
    config="nq_open",
    revision="5dd9790a83002ad084ddeb7c420dc716852c6f28",
    splits={"train": "train", "dev": "validation"},
    rows=_SIZES,
)
_FILES = Files("nq", ("train", "dev"), "jsonl", read_jsonl, _HUB)


class NQ(Task):
    """NQ-open in its original JSON lines from a local file, else from the hub."""

    name = "nq"
    aliases = ("nq_open", "natural_questions")
    card = TaskCard(
        title="NQ-open",
        version="1",
        source="https://github.com/google-research-datasets/natural-questions/tree/master/nq_open",
        revision=f"hub: {_HUB.dataset}@{_HUB.revision}; files: NQ-open.{{train,dev}}.jsonl",
        checksums={
            "nq_open/train-00000-of-00001.parquet": (
                "25d3a544324f900b31ebc05a3a5686bdd5b9b42738133500675c3f20eee7d83a"
            ),
            "nq_open/validation-00000-of-00001.parquet": (
                "b074bed0bccb56fa1551a8ac1c9c51ce89bc11c7fbb6a9c713b2c33a98531e12"
            ),
        },
        licence="CC BY-SA 3.0",
        sizes=_SIZES,
        metrics=("squad_v1", "nq_open", "containment_v1"),
        main_metric="em",
        reported_split="dev",
        splits=_splits.described(
            "the published train split (it has the questions of AmbigQA's and ASQA's dev)",
            "dev",
            "the published development split, which most papers call test",
        ),
        citation=(
            "Kwiatkowski et al. Natural Questions: A Benchmark for Question Answering Research. TACL 2019; "
            "Lee et al. Latent Retrieval for Weakly Supervised Open Domain Question Answering. ACL 2019."
        ),
    )

    def examples(self, split: str) -> Sequence[Example]:
        """All examples of a split, in published order; the dataset has no ids, so questions give them.

        EM is NQ-open's own (accents decomposed), F1 is SQuAD's.
        """
        return _splits.part_of(self, split, self._read).examples

    def left_out(self, split: str) -> Mapping[str, str]:
        return _splits.part_of(self, split, self._read).left_out

    def corpus(self) -> Corpus:
        """The corpus file of the task's folder."""
        return _pool.corpus_file(self.data_dir, self.name)

    def available_offline(self) -> bool:
        return _FILES.has(self.data_dir, "dev")

    def _read(self, published: str) -> Iterator[Example]:
        records = _FILES.records(self.data_dir, published)
        for key, record in _answers.named_by_question(records, "question"):
            texts = _answers.texts_of(record, "answer", record.value("answer"))
            yield _answers.example(record, key, "answer", texts)
