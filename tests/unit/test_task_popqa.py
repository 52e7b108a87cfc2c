from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.popqa import PopQA

RECORD = LAYOUTS["popqa"].record(7)


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "popqa", "test", [{**RECORD, **changes}])
    [example] = PopQA(folder).examples("test")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="7",
        question="What is person 7's occupation?",
        answers=(("politician", "pol", "🇫🇷"),),
        meta={"subject": "Person 7", "relation": "occupation", "object": "politician", "popularity": 65},
    )


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        (r'["\ud83c\uddeb\ud83c\uddf7", "é"]', ("🇫🇷", "é")),
        ('["say \\"hi\\"", "a\\tb"]', ('say "hi"', "a\tb")),
        ('"Paris"', ("Paris",)),  # P35: one text is one answer
        ('["x", "", " ", "x"]', ("x",)),  # P47
    ],
)
def test_answers_are_json_inside_a_cell(cell: str, answers: tuple[str, ...], tmp_path: Path) -> None:  # P34
    assert read(tmp_path, possible_answers=cell).answers == (answers,)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("['politician']", "is no JSON list"),
        ("__import__('os').getcwd()", "is no JSON list"),
        ("[" * 100000, "is no JSON list"),
        ("null", "must hold a text or a list of texts"),
        ("[null]", "must hold a text or a list of texts"),
        ('{"a": 1}', "must hold a text or a list of texts"),
        ("[]", "holds no answer"),
        ('[""]', "holds no answer"),
        (r'["\ud83c"]', "holds a lone surrogate"),
    ],
)
def test_other_cells_are_refused(cell: str, said: str, tmp_path: Path) -> None:  # P34
    with pytest.raises(
        UserError, match=rf"^[^\n]*test\.tsv: line 2 \(id '7'\): field 'possible_answers' {said}"
    ):
        read(tmp_path, possible_answers=cell)


def test_one_question_about_different_subjects_is_two_examples(tmp_path: Path) -> None:  # P37
    records = [{**LAYOUTS["popqa"].record(n), "question": "What is John's occupation?"} for n in (1, 2)]
    write_split(tmp_path, "popqa", "test", records)
    assert [example.id for example in PopQA(tmp_path).examples("test")] == ["1", "2"]


def test_acc_is_popqa_s_own_and_normalises_nothing(tmp_path: Path) -> None:
    example = read(tmp_path, possible_answers=json.dumps(["New York"]))
    score = PopQA(tmp_path).score
    assert score("in new york", example) == {"em": 0.0, "f1": pytest.approx(0.8), "acc": 1.0}
    assert score("NEW YORK", example) == {"em": 1.0, "f1": 1.0, "acc": 0.0}


@pytest.mark.parametrize("views", ["", "many", "-3", "1.5", "٣", "9" * 5000])
def test_a_popularity_that_is_no_number_is_named(views: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^[^\n]*line 2 \(id '7'\): field 's_pop' [^\n]{1,80}$"):
        read(tmp_path, s_pop=views)
