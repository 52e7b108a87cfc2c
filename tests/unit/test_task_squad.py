from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, put, write_split

from ragtrials.data import Example, passage_id
from ragtrials.errors import UserError
from ragtrials.tasks.squad import SQuAD

RECORD = LAYOUTS["squad"].record(7)


def read(folder: Path, *records: dict[str, Any]) -> list[Example]:
    write_split(folder, "squad", "dev", list(records))
    return list(SQuAD(folder).examples("dev"))


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path, RECORD) == [
        Example(
            id="s7",
            question="Who won race 7?",
            answers=(("Ada",),),
            supporting=(passage_id("Ada", "Ada won race 7."),),
            meta={"title": "Ada"},
        )
    ]


def test_questions_without_an_answer_are_left_out_and_told(tmp_path: Path) -> None:
    impossible = {**LAYOUTS["squad"].record(8), "answers": [], "is_impossible": True}
    assert [example.id for example in read(tmp_path, RECORD, impossible)] == ["s7"]
    assert SQuAD(tmp_path).left_out("dev") == {"s8": "has no answer (SQuAD 2.0)"}
    assert len(list(SQuAD(tmp_path).corpus())) == 2  # its paragraph can be found all the same


def test_version_1_has_no_flag(tmp_path: Path) -> None:
    record = {field: value for field, value in RECORD.items() if field != "is_impossible"}
    assert len(read(tmp_path, record)) == 1


def test_a_paragraph_with_several_questions_is_one_passage(tmp_path: Path) -> None:
    second = {**RECORD, "id": "s8"}
    assert len({example.supporting for example in read(tmp_path, RECORD, second)}) == 1
    corpus = SQuAD(tmp_path).corpus()
    assert (corpus.name, len(list(corpus))) == ("squad-dev-pool", 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": None}, "question 1: field 'id' is missing"),
        ({"answers": []}, r"question 1 \(id 's7'\): field 'answers' holds no answer"),
        ({"answers": [{}]}, r"question 1 \(id 's7'\): field 'answers' holds one without text"),
        ({"title": ""}, "article 1: field 'title' is empty"),
        ({"context": None}, "article 1: field 'context' is missing"),
    ],
)
def test_a_bad_question_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.json: {said}$"):
        read(tmp_path, {**RECORD, **changes})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"version": "v2.0"}, "field 'data' is missing"),
        ({"data": [3]}, "field 'data' has the wrong type"),
        ({"data": [{"title": "x"}]}, "field 'paragraphs' is missing"),
        (
            {"data": [{"title": "x", "paragraphs": [{"context": "y", "qas": {}}]}]},
            "field 'qas' has the wrong",
        ),
    ],
)
def test_another_nesting_is_named(content: Any, said: str, tmp_path: Path) -> None:
    put(tmp_path, "squad/dev.json", json.dumps(content))
    with pytest.raises(UserError, match=said):
        SQuAD(tmp_path).examples("dev")
