from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, put, write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.asqa import ASQA

RECORD = LAYOUTS["asqa"].record(7)


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "asqa", "dev", [{**RECORD, **changes}])
    [example] = ASQA(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="-7",
        question="Who won race 7?",
        answers=(("Ada", "Ada L."), ("Bob",)),
        meta={"long_answers": ["Ada won in 1999 and Bob in 2000."]},
    )


def test_both_layouts_give_the_same_examples(tmp_path: Path) -> None:
    expected = read(tmp_path / "array")
    record = {field: value for field, value in RECORD.items() if field != "id"}
    put(tmp_path / "object", "asqa/dev.json", json.dumps({"train": {}, "dev": {"-7": record}}))
    assert ASQA(tmp_path / "object").examples("dev") == [expected]


@pytest.mark.parametrize(
    ("slots", "prediction", "str_em", "hit"),
    [
        ([["1624"], ["1664"]], "founded in 1624 and renamed in 1664.", 1.0, 1.0),
        ([["1624"], ["1664"]], "founded 1624", 0.5, 0.0),
        ([["Art"]], "party", 1.0, 1.0),
        ([["The"]], "x", 1.0, 1.0),
        ([["1624"], ["1664"]], "", 0.0, 0.0),
    ],
)
def test_str_em_is_the_official_one(
    slots: list[list[str]], prediction: str, str_em: float, hit: float, tmp_path: Path
) -> None:
    example = read(tmp_path, qa_pairs=[{"short_answers": slot} for slot in slots])
    scores = ASQA(tmp_path).score(prediction, example)
    assert (scores["str_em"], scores["str_em_hit"]) == (str_em, hit)


def test_the_usual_scores_are_against_any_short_answer(tmp_path: Path) -> None:
    scores = ASQA(tmp_path).score("bob", read(tmp_path))
    assert (scores["em"], scores["f1"], scores["acc"], scores["str_em"]) == (1.0, 1.0, 1.0, 0.5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"qa_pairs": []}, "field 'qa_pairs' holds no answer"),
        ({"qa_pairs": [{"short_answers": []}]}, "field 'short_answers' holds no answer"),
        ({"qa_pairs": [{}]}, "field 'short_answers' must hold a text or a list of texts"),
        ({"annotations": [{}]}, "field 'annotations' holds one without a long_answer"),
        ({"ambiguous_question": None}, "field 'ambiguous_question' is missing"),
    ],
)
def test_a_bad_record_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.json: record 1 \(id '-7'\): {said}$"):
        read(tmp_path, **changes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"train": {}}', "record 1: field 'dev' is missing"),
        ('{"dev": []}', "record 1: field 'dev' must hold records by id"),
        ('{"dev": {"1": 2}}', "record 1: field 'dev' must hold records by id"),
        ('{"dev": {}} x', "line 1: there is more text after the object's closing '}'"),
        ('{"dev": ', "line 1: record 1 is not JSON: the file ends inside it"),
        ("3", "line 1: '{' expected, found '3'"),
        ("", "is empty"),
    ],
)
def test_another_object_is_refused(content: str, said: str, tmp_path: Path) -> None:
    path = put(tmp_path, "asqa/dev.json", content)
    with pytest.raises(UserError) as caught:
        ASQA(tmp_path).examples("dev")
    assert str(caught.value).removeprefix(str(path)).lstrip(": ") == said
