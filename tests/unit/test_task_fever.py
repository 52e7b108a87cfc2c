from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.conformance import check_task
from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.tasks.fever import Fever

RECORD = LAYOUTS["fever"].record(7)


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "fever", "dev", [{**RECORD, **changes}])
    [example] = Fever(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="7",
        question="Ada won race 7.",
        answers=(("SUPPORTS",),),
        meta={"evidence": [[["Ada", 0]]]},
    )


@pytest.mark.parametrize(
    ("label", "prediction", "acc"),
    [
        ("SUPPORTS", "Supported.", 1.0),
        ("REFUTES", "false", 1.0),
        ("REFUTES", "supports", 0.0),
        ("NOT ENOUGH INFO", "not enough information to tell", 1.0),
        ("NOT ENOUGH INFO", "", 0.0),
    ],
)
def test_the_label_is_read_from_the_prediction(
    label: str, prediction: str, acc: float, tmp_path: Path
) -> None:
    assert Fever(tmp_path).score(prediction, read(tmp_path, label=label))["acc"] == acc


def test_a_claim_may_repeat_under_another_id(tmp_path: Path) -> None:
    write_split(tmp_path, "fever", "dev", [RECORD, {**RECORD, "id": 8, "label": "REFUTES"}])
    assert [example.id for example in Fever(tmp_path).examples("dev")] == ["7", "8"]


def test_there_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^task fever has no corpus: use a method that does not retrieve$"):
        Fever(tmp_path).corpus()


class Contradictory(Fever):
    def corpus(self) -> Corpus:
        return Corpus("none", list)


def test_a_task_that_denies_its_corpus_is_found(tmp_path: Path) -> None:
    for split, numbers in (("train", range(9, 30)), ("dev", range(5))):
        write_split(tmp_path, "fever", split, [LAYOUTS["fever"].record(n) for n in numbers])
    assert check_task(Fever(tmp_path)) == []
    assert check_task(Contradictory(tmp_path)) == ["says that it has no corpus and gives one"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": None}, "field 'label' is missing"),
        ({"label": "TRUE"}, "field 'label' must be one of SUPPORTS, REFUTES, NOT ENOUGH INFO, not 'TRUE'"),
        ({"id": True}, "field 'id' must be text, not bool"),
        ({"evidence": None}, "field 'evidence' is missing"),
        ({"evidence": [[[1, 2]]]}, "field 'evidence' must hold groups of "),
        ({"evidence": [["x"]]}, "field 'evidence' must hold groups of "),
    ],
)
def test_a_bad_record_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.jsonl: line 1[^\n]*: {said}"):
        read(tmp_path, **changes)
