from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from dataset_files import write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.metrics import flags
from ragtrials.tasks.nq import NQ


def read(folder: Path, answer: Any) -> Example:
    write_split(folder, "nq", "dev", [{"question": "who won", "answer": answer}])
    [example] = NQ(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    key = hashlib.sha256(b"who won").hexdigest()[:16]
    assert read(tmp_path, ["Ada", "Ada\xa0L."]) == Example(key, "who won", (("Ada", "Ada\xa0L."),))


def test_a_text_is_one_answer_and_not_its_letters(tmp_path: Path) -> None:  # P35
    example = read(tmp_path, "Paris")
    assert example.answers == (("Paris",),)
    assert NQ(tmp_path).score("P", example)["em"] == 0.0


def test_a_non_breaking_space_does_not_keep_an_answer_from_matching(tmp_path: Path) -> None:
    assert NQ(tmp_path).score("10 cm", read(tmp_path, ["10\xa0cm"])) == {"em": 1.0, "f1": 1.0, "acc": 1.0}


def test_em_decomposes_accents_and_f1_does_not(tmp_path: Path) -> None:
    scores = NQ(tmp_path).score("Re\u0301union", read(tmp_path, ["R\xe9union"]))
    assert scores == {"em": 1.0, "f1": 0.0, "acc": 0.0}


def test_a_gold_that_normalises_to_nothing_is_kept_and_flagged(tmp_path: Path) -> None:
    example = read(tmp_path, ["The", "."])
    assert example.answers == (("The", "."),)
    assert flags("x", example.aliases) == ("degenerate_gold",)
    assert NQ(tmp_path).score("x", example)["acc"] == 0.0


def test_blank_answers_are_dropped_and_counted(tmp_path: Path) -> None:  # P47
    example = read(tmp_path, ["", "Ada", " "])
    assert (example.answers, example.meta) == ((("Ada",),), {"blank_answers": 2})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "field 'answer' is missing"),
        ([], "field 'answer' holds no answer"),
        ([""], "field 'answer' holds no answer"),
        ([1999], "field 'answer' must hold a text or a list of texts"),
        ({"text": "Ada"}, "field 'answer' must hold a text or a list of texts"),
    ],
)
def test_a_bad_answer_is_named(answer: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.jsonl: line 1: {said}$"):
        read(tmp_path, answer)
