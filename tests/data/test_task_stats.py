"""The figures of real files: what the table in docs/tasks.md shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragtrials.answer_search import AnswerSearch
from ragtrials.registry import TASKS
from ragtrials.resources import Resources
from ragtrials.task_stats import TaskStats, task_stats

pytestmark = pytest.mark.data

FOUND = {
    "ambigqa": (469, 499),
    "asqa": (476, 500),
    "bamboogle": (76, 124),
    "hotpotqa": (473, 474),
    "musique": (170, 170),
    "nq": (483, 500),
    "popqa": (500, 500),
    "squad": (291, 291),
    "triviaqa": (425, 500),
    "twowiki": (455, 455),
    "webquestions": (496, 500),
}
"""Questions with an answer in the task's corpus, of those that are not answered by yes or no alone."""


def stats(name: str, data_dir: Path) -> TaskStats:
    return task_stats(name, Resources(data_dir))


@pytest.mark.parametrize("name", sorted(FOUND))
def test_answers_are_in_the_corpus(name: str, data_dir: Path) -> None:
    task = TASKS.load(name)(data_dir)
    asked = [
        example
        for example in task.examples(task.card.reported_split)
        if {alias.lower().strip(".") for alias in example.aliases} - {"yes", "no"}
    ]
    search = AnswerSearch([example.aliases for example in asked])
    found = {n for passage in task.corpus() for n in search.questions_in(f"{passage.title}\n{passage.text}")}
    assert (len(found), sum(search.searchable)) == FOUND[name]


def test_hotpotqa(data_dir: Path, fresh_cache: Path) -> None:
    found = stats("hotpotqa", data_dir)
    assert (found.split, found.records, found.odd, found.train) == ("dev", 500, 42, 736)
    assert found.types == {"bridge": 394, "comparison": 106}
    assert found.corpus is not None
    assert (found.corpus.name, found.corpus.passages) == ("hotpotqa-dev-pool", 4948)
    assert (found.corpus.found, found.corpus.searched, found.corpus.gold_known) == (*FOUND["hotpotqa"], 500)
    assert found.corpus.answer_recall == {
        5: pytest.approx(0.700, abs=0.01),
        20: pytest.approx(0.878, abs=0.01),
    }
    assert found.corpus.gold_recall == {5: pytest.approx(0.739, abs=0.01), 20: pytest.approx(0.925, abs=0.01)}


def test_hotpotqa_pools_all_but_one_broken_answer(data_dir: Path) -> None:
    task = TASKS.load("hotpotqa")(data_dir)
    examples = [example for example in task.examples("dev") if example.target not in ("yes", "no")]
    search = AnswerSearch([example.aliases for example in examples])
    found = {n for passage in task.corpus() for n in search.questions_in(f"{passage.title}\n{passage.text}")}
    [missing] = set(range(len(examples))) - found
    assert examples[missing].id == "5a84b9c95542997b5ce3ff35"


def test_twowiki_counts_answers_without_aliases(data_dir: Path, fresh_cache: Path) -> None:
    found = stats("twowiki", data_dir)
    assert (found.records, found.odd, found.train) == (500, 456, 450)
    assert found.odd_kinds == {
        "no alias known for the answer: the published one counts alone": 388,
        "no id of the answer: the published one counts alone": 67,
        "white space at an edge of the question, or doubled in it": 7,
    }
    assert found.corpus is not None
    assert (found.corpus.passages, found.corpus.found, found.corpus.searched) == (7033, *FOUND["twowiki"])


def test_squad_leaves_out_what_has_no_answer(data_dir: Path, fresh_cache: Path) -> None:
    found = stats("squad", data_dir)
    assert (found.records, found.odd, found.train) == (626, 359, None)
    assert found.odd_kinds["left out: has no answer (SQuAD 2.0)"] == 333


def test_fever_repeats_claims_and_has_no_corpus(data_dir: Path) -> None:
    found = stats("fever", data_dir)
    assert (found.records, found.odd, found.train, found.corpus) == (500, 8, 895, None)
    assert found.odd_kinds["the same question under another id"] == 6


def test_strategyqa_is_judged_by_gold_passages_alone(data_dir: Path, fresh_cache: Path) -> None:
    corpus = stats("strategyqa", data_dir).corpus
    assert corpus is not None
    assert (corpus.passages, corpus.searched, corpus.gold_known) == (998, 0, 229)
    assert corpus.gold_recall[5] < corpus.gold_recall[20] < 1


@pytest.mark.parametrize(("name", "odd"), [("bamboogle", 0), ("webquestions", 0), ("triviaqa", 1)])
def test_bm25_finds_no_more_answers_than_there_are(
    name: str, odd: int, data_dir: Path, fresh_cache: Path
) -> None:
    found = stats(name, data_dir)
    assert found.odd == odd
    assert found.corpus is not None
    assert (found.corpus.found, found.corpus.searched) == FOUND[name]
    recall = found.corpus.answer_recall
    assert 0 < recall[5] <= recall[20] <= found.corpus.found / found.corpus.searched
