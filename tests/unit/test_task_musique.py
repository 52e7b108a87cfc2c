from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.data import Example, passage_id
from ragtrials.errors import UserError
from ragtrials.tasks.musique import MuSiQue

RECORD = LAYOUTS["musique"].record(7)


def read(folder: Path, *records: dict[str, Any]) -> list[Example]:
    write_split(folder, "musique", "dev", list(records))
    return list(MuSiQue(folder).examples("dev"))


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path, RECORD) == [
        Example(
            id="2hop__7_1",
            question="Who knows number 7?",
            answers=(("Paris", "City of Light"),),
            supporting=(passage_id("Ada", "Ada is."), passage_id("Bob", "Bob knows 7.")),
            meta={
                "type": "2hop",
                "answerable": True,
                "support": [0, 2],
                "question_decomposition": [{"id": 1, "question": "Who?", "answer": "Ada"}],
            },
        )
    ]


def test_titles_that_repeat_with_other_texts_are_other_passages(tmp_path: Path) -> None:
    read(tmp_path, RECORD, LAYOUTS["musique"].record(8))
    corpus = MuSiQue(tmp_path).corpus()
    assert corpus.name == "musique-dev-pool"
    assert [(p.title, p.text) for p in corpus] == [
        ("Ada", "Ada is."),
        ("Ada", "Ada the other."),
        ("Bob", "Bob knows 7."),
        ("Bob", "Bob knows 8."),
    ]


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_an_unanswerable_twin_is_left_out_and_told(order: tuple[bool, bool], tmp_path: Path) -> None:  # P40
    examples = read(tmp_path, *({**RECORD, "answerable": flag} for flag in order))
    assert [(e.id, e.meta["answerable"]) for e in examples] == [("2hop__7_1", True)]
    left_out = {"2hop__7_1": "its paragraphs do not answer it (MuSiQue-Full)"}
    assert MuSiQue(tmp_path).left_out("dev") == left_out


@pytest.mark.parametrize("flag", [None, "true", 1])
def test_a_file_that_lost_the_flag_is_refused(flag: Any, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"line 1 \(id '2hop__7_1'\): field 'answerable' must be true or false"
    ):
        read(tmp_path, {**RECORD, "answerable": flag})


def test_order_and_length_of_the_file_do_not_matter(tmp_path: Path) -> None:  # P39
    records = [LAYOUTS["musique"].record(n) for n in range(4)]
    forth, back = read(tmp_path, *records), read(tmp_path, *records[:0:-1])
    assert back == forth[:0:-1]


def test_blank_aliases_are_dropped_and_counted(tmp_path: Path) -> None:  # P47
    [example] = read(tmp_path, {**RECORD, "answer_aliases": ["", " ", "Lutetia", "Paris"]})
    assert example.answers == (("Paris", "Lutetia"),)
    assert example.meta["blank_answers"] == 2
    assert MuSiQue(tmp_path).score("", example)["em"] == 0.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": ""}, "field 'id' is empty"),
        ({"answer": None}, "field 'answer' is missing"),
        ({"answer_aliases": "Paris"}, "field 'answer_aliases' has the wrong type"),
        ({"paragraphs": None}, "field 'paragraphs' is missing"),
        ({"paragraphs": [{"idx": 0}]}, "field 'paragraphs' holds one whose 'title' is no str"),
    ],
)
def test_a_bad_record_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.jsonl: line 1[^\n]*: {said}$"):
        read(tmp_path, {**RECORD, **changes})
