"""Figures of made-up data in which each kind of oddity is there once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dataset_files import made_up_folder, put
from fakes import hotpot_folder

from ragtrials.data import Corpus, Example, Passage
from ragtrials.errors import UserError
from ragtrials.resources import Resources
from ragtrials.task import Task, TaskCard
from ragtrials.task_stats import TaskStats, task_stats

PASSAGES = [
    Passage("p0", "Seine", "The river Seine flows through Paris."),
    Passage("p1", "", "Nobody knows the Danube–Rhine canal."),
    *(Passage(f"river{n}", f"River {n}", f"River {n} is a river.") for n in range(30)),
]


def made_up(n: int, question: str = "", answers: Sequence[str] = ("Seine",), **rest: Any) -> Example:
    return Example(f"q{n}", question or f"Which river is number {n}?", (tuple(answers),), **rest)


EXAMPLES = [
    made_up(0, "Which river flows through Paris?", supporting=("p0",)),
    made_up(1, "Does the Seine flow through Paris?", ["yes"], meta={"type": "closed"}),
    made_up(2, answers=["The"]),
    made_up(3, answers=["Rhine"], meta={"blank_answers": 2}),
    made_up(4, "Which  canal?", ["Danube", "..."]),
    made_up(5, "What is it? "),
    made_up(6, "What is asked twice?", ["Amazon"], meta={"type": "open"}),
    made_up(7, "What is asked twice?", ["Amazon"], meta={"type": "open"}),
    made_up(8, "Nobody?", ["Oder"], supporting=("p1", "gone")),
    made_up(9, answers=["Elbe"], meta={"aliases": True, "answer_id": "Q1"}),
    made_up(10, answers=["Elbe"], meta={"aliases": True}),
    made_up(11, answers=["Elbe", "Labe"], meta={"aliases": True, "answer_id": "Q2"}),
]


class Rivers(Task):
    name = "rivers"
    card = TaskCard(
        title="Rivers",
        version="1",
        source="made up",
        revision="1",
        licence="none",
        sizes={},
        metrics=("squad_v1", "containment_v1"),
        main_metric="f1",
        reported_split="dev",
        splits={"train": "", "dev": ""},
        citation="",
    )
    reads = 0

    def examples(self, split: str) -> Sequence[Example]:
        return EXAMPLES if split == "dev" else EXAMPLES[:3]

    def left_out(self, split: str) -> Mapping[str, str]:
        return {"q8": "has no answer", "x": "has no answer", "y": "is odd"}

    def corpus(self) -> Corpus:
        return Corpus("rivers-pool", self._passages)

    def _passages(self) -> Sequence[Passage]:
        self.reads += 1
        return PASSAGES


class OneTask(Resources):
    """Resources that know one task, whatever it is called."""

    def __init__(self, only: Task) -> None:
        super().__init__(None)
        self.only = only

    def task(self, name: str) -> Task:
        return self.only


@pytest.fixture
def rivers(fresh_cache: Path) -> TaskStats:
    return task_stats("rivers", OneTask(Rivers()))


def test_records_are_counted_with_those_left_out(rivers: TaskStats) -> None:
    assert (rivers.task, rivers.split, rivers.records, rivers.train) == ("rivers", "dev", 15, 3)


def test_each_way_of_being_odd_is_counted(rivers: TaskStats) -> None:
    assert dict(rivers.odd_kinds) == {
        "left out: has no answer": 2,
        "left out: is odd": 1,
        "an answer has an empty normal form": 2,
        "the same question under another id": 2,
        "white space at an edge of the question, or doubled in it": 2,
        "a gold passage is not in the corpus": 1,
        "blank answers dropped": 1,
        "no alias known for the answer: the published one counts alone": 1,
        "no id of the answer: the published one counts alone": 1,
    }
    assert list(rivers.odd_kinds)[:3] == [
        "left out: has no answer",
        "left out: is odd",
        "an answer has an empty normal form",
    ]


def test_a_record_that_is_odd_twice_counts_once(rivers: TaskStats) -> None:
    assert rivers.odd == 3 + 9  # q4 has odd space and an answer that is none


def test_types_are_counted_where_there_are_any(rivers: TaskStats) -> None:
    assert dict(rivers.types) == {"open": 2, "closed": 1}
    assert rivers.notes == ()


def test_answers_are_looked_for_in_the_corpus(rivers: TaskStats) -> None:
    corpus = rivers.corpus
    assert corpus is not None
    assert (corpus.name, corpus.passages) == ("rivers-pool", 32)
    assert corpus.searched == 10  # neither the yes/no question nor "The"
    assert corpus.found == 4  # Seine twice, Rhine, Danube


def test_bm25_is_judged_by_answers_and_by_gold_passages(rivers: TaskStats) -> None:
    corpus = rivers.corpus
    assert corpus is not None
    assert corpus.answer_recall == {5: pytest.approx(0.2), 20: pytest.approx(0.2)}  # q0 and q4
    assert corpus.gold_known == 2
    assert corpus.gold_recall == {5: pytest.approx(0.75), 20: pytest.approx(0.75)}  # q0 whole, q8 half


def test_recall_counts_to_its_depth(fresh_cache: Path) -> None:
    class Deep(Rivers):
        def examples(self, split: str) -> Sequence[Example]:
            return [made_up(0, "river", ["12"], supporting=("river12",))]

        def left_out(self, split: str) -> Mapping[str, str]:
            return {}

        def corpus(self) -> Corpus:
            return Corpus("deep", lambda: PASSAGES[2:])  # all alike: the tie goes to the corpus's order

    found = task_stats("deep", OneTask(Deep())).corpus
    assert found is not None
    assert (found.answer_recall, found.gold_recall) == ({5: 0.0, 20: 1.0}, {5: 0.0, 20: 1.0})


def test_a_corpus_is_streamed_once_for_the_answers(fresh_cache: Path) -> None:
    task = Rivers()
    task_stats("rivers", OneTask(task))
    assert task.reads == 3  # for the answers, for its digest, for the index
    again = Rivers()
    task_stats("rivers", OneTask(again))
    assert again.reads == 2  # the index is there


def test_a_task_of_yes_and_no_has_no_answer_to_look_for(tmp_path: Path, fresh_cache: Path) -> None:
    found = task_stats("strategyqa", Resources(made_up_folder(tmp_path, "strategyqa"))).corpus
    assert found is not None
    assert (found.searched, found.found, found.answer_recall) == (0, 0, {})
    assert (found.gold_known, found.gold_recall) == (4, {5: 1.0, 20: 1.0})


def test_a_task_without_a_corpus_has_none(tmp_path: Path, fresh_cache: Path) -> None:
    stats = task_stats("fever", Resources(made_up_folder(tmp_path, "fever")))
    assert (stats.corpus, stats.records, stats.train, stats.notes) == (None, 4, 18, ())


def test_a_task_is_read_in_its_published_layout(tmp_path: Path, fresh_cache: Path) -> None:
    stats = task_stats("hotpotqa", Resources(hotpot_folder(tmp_path)))
    assert stats.corpus is not None
    assert (stats.corpus.passages, stats.corpus.found, stats.corpus.searched) == (18, 6, 6)
    assert stats.corpus.gold_recall[20] == 1.0


def test_another_corpus_can_be_searched(tmp_path: Path, fresh_cache: Path) -> None:
    path = put(tmp_path, "mine.jsonl", '{"id": "1", "title": "", "text": "Town 3 and Town 4"}\n')
    stats = task_stats("hotpotqa", Resources(hotpot_folder(tmp_path)), str(path))
    assert stats.corpus is not None
    assert (stats.corpus.passages, stats.corpus.found) == (1, 2)
    # the task's gold passages are passages of its own corpus: here they mean nothing
    assert (stats.corpus.gold_known, stats.corpus.gold_recall) == (0, {})
    assert "a gold passage is not in the corpus" not in stats.odd_kinds


def test_what_is_missing_beside_the_records_is_a_note(tmp_path: Path, fresh_cache: Path) -> None:
    made_up_folder(tmp_path, "popqa")
    (tmp_path / "popqa" / "corpus.jsonl").unlink()
    (tmp_path / "popqa" / "train.tsv").unlink()
    stats = task_stats("popqa", Resources(tmp_path))
    assert (stats.records, stats.train, stats.corpus) == (4, None, None)
    assert len(stats.notes) == 2
    assert stats.notes[0].startswith("no training examples: no popqa/train.tsv")
    assert stats.notes[1].startswith("no corpus: no popqa/corpus.jsonl")


def test_aliases_that_are_not_there_are_a_note(tmp_path: Path, fresh_cache: Path) -> None:
    made_up_folder(tmp_path, "twowiki")
    [note] = task_stats("twowiki", Resources(tmp_path)).notes
    assert "published answers count alone" in note
    put(tmp_path, "twowiki/id_aliases.json", '{"Q_id": "Q90", "aliases": ["Lutetia"], "demonyms": []}\n')
    stats = task_stats("twowiki", Resources(tmp_path))
    assert (stats.notes, stats.odd) == ((), 0)


def test_missing_records_are_an_error(tmp_path: Path, fresh_cache: Path) -> None:
    with pytest.raises(UserError, match=r"no triviaqa/test\.tsv"):
        task_stats("triviaqa", Resources(made_up_folder(tmp_path, "popqa")))


def test_a_damaged_corpus_is_an_error_and_no_note(tmp_path: Path, fresh_cache: Path) -> None:
    made_up_folder(tmp_path, "popqa")
    put(tmp_path, "popqa/corpus.jsonl", "{}\n")
    with pytest.raises(UserError, match=r"corpus\.jsonl: line 1"):
        task_stats("popqa", Resources(tmp_path))
