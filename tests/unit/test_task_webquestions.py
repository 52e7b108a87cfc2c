from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.webquestions import WebQuestions


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "webquestions", "test", [{**LAYOUTS["webquestions"].record(7), **changes}])
    [example] = WebQuestions(folder).examples("test")
    return example


def test_any_of_several_answers_counts(tmp_path: Path) -> None:
    example = read(tmp_path)
    assert example.answers == (("Ada", "Bob"),)
    assert WebQuestions(tmp_path).score("bob", example) == {"em": 1.0, "f1": 1.0, "acc": 1.0}


def test_published_ids_are_positions_and_so_only_kept(tmp_path: Path) -> None:
    for split in ("train", "test"):
        records = [{"id": "0", "question": f"who won in {split}?", "answer": ["Ada"]}]
        write_split(tmp_path, "webquestions", split, records)
    task = WebQuestions(tmp_path)
    [train], [test] = task.examples("train"), task.examples("test")
    assert train.meta == test.meta == {"published_id": "0"}
    assert train.id != test.id


def test_an_id_is_not_needed(tmp_path: Path) -> None:
    assert read(tmp_path, id=None).meta == {}
    assert read(tmp_path, id=None).id == read(tmp_path, id="3").id


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"answer": None}, "field 'answer' is missing"), ({"id": 1.5}, "field 'id' must be text, not float")],
)
def test_a_bad_record_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*test\.jsonl: line 1[^\n]*: {said}$"):
        read(tmp_path, **changes)
