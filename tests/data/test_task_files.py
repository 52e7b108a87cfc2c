"""Every task on its real files: how many records, what corpus, and nothing evaluated in train."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragtrials.metrics import normalise
from ragtrials.registry import TASKS
from ragtrials.task import Task

pytestmark = pytest.mark.data

READ = {
    "hotpotqa": {"train": 736, "validation": 81, "dev": 500},
    "twowiki": {"train": 450, "validation": 50, "dev": 500},
    "musique": {"train": 90, "validation": 10, "dev": 170},
    "ambigqa": {"train": 900, "validation": 100, "dev": 500},
    "popqa": {"train": 900, "validation": 100, "test": 500},
    "nq": {"train": 900, "validation": 100, "dev": 500},
    "triviaqa": {"train": 900, "validation": 100, "test": 500},
    "webquestions": {"train": 900, "validation": 100, "test": 500},
    "bamboogle": {"test": 125},
    "strategyqa": {"train": 900, "validation": 100, "dev": 229},
    "asqa": {"dev": 500},
    "squad": {"dev": 293},
    "fever": {"train": 895, "validation": 99, "dev": 500},
}
CORPUS = {
    "twowiki": ("twowiki-local-pool", 7033),
    "musique": ("musique-local-pool", 5530),
    "ambigqa": ("ambigqa-local-pool", 18125),
    "popqa": ("popqa-local-pool", 5872),
    "nq": ("nq-local-pool", 8746),
    "triviaqa": ("triviaqa-local-pool", 6630),
    "webquestions": ("webquestions-local-pool", 900),
    "bamboogle": ("bamboogle-local-pool", 746),
    "strategyqa": ("strategyqa-local-pool", 998),
    "asqa": ("ambigqa-local-pool", 18125),
    "squad": ("squad-dev-pool", 87),
}
ANSWER_IN_THE_CORPUS = {"bamboogle": 78, "webquestions": 499, "musique": 170, "popqa": 500, "nq": 484}
"""Questions of which some alias's normal form occurs in a passage; only where that is quickly counted."""


def task(name: str, data_dir: Path) -> Task:
    return TASKS.load(name)(data_dir)


@pytest.mark.parametrize("name", sorted(READ))
def test_the_real_files_are_read_whole(name: str, data_dir: Path) -> None:
    found = task(name, data_dir)
    assert {split: len(found.examples(split)) for split in found.card.splits} == READ[name]


@pytest.mark.parametrize("name", sorted(READ))
def test_no_evaluated_question_is_trained_on(name: str, data_dir: Path) -> None:
    found = task(name, data_dir)
    parts = {split: found.examples(split) for split in found.card.splits}
    evaluated = parts.pop(found.card.reported_split)
    trained = [example for examples in parts.values() for example in examples]
    assert not {e.id for e in evaluated} & {e.id for e in trained}
    assert not {normalise(e.question) for e in evaluated} & {normalise(e.question) for e in trained}
    assert len({e.id for e in trained}) == len(trained)


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_the_corpus_has_every_passage_once_and_all_gold_ones(name: str, data_dir: Path) -> None:
    found = task(name, data_dir)
    corpus = found.corpus()
    ids = [passage.id for passage in corpus]
    assert (corpus.name, len(ids)) == CORPUS[name]
    assert len(set(ids)) == len(ids)
    examples = found.examples(found.card.reported_split)
    assert {key for example in examples for key in example.supporting} <= set(ids)
    if name in ("twowiki", "musique", "strategyqa", "squad"):
        assert all(example.supporting for example in examples)


@pytest.mark.parametrize("name", sorted(ANSWER_IN_THE_CORPUS))
def test_most_answers_can_be_found(name: str, data_dir: Path) -> None:
    found = task(name, data_dir)
    texts = "\n".join(normalise(f"{passage.title} {passage.text}") for passage in found.corpus())
    examples = found.examples(found.card.reported_split)
    golds = [[form for form in map(normalise, example.aliases) if form] for example in examples]
    hits = sum(any(form in texts for form in forms) for forms in golds if forms not in (["yes"], ["no"]))
    assert hits == ANSWER_IN_THE_CORPUS[name]
