from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.strategyqa import StrategyQA

RECORD = LAYOUTS["strategyqa"].record(0)


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "strategyqa", "dev", [{**RECORD, **changes}])
    [example] = StrategyQA(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="s0",
        question="Did Ada win race 0?",
        answers=(("yes",),),
        supporting=("p1", "p2"),
        meta={
            field: RECORD[field] for field in ("term", "description", "facts", "decomposition", "evidence")
        },
    )


@pytest.mark.parametrize(
    ("answer", "prediction", "acc"),
    [
        (True, "Yes.", 1.0),
        (True, "True", 1.0),
        (True, "no, yes", 0.0),
        (False, "No", 1.0),
        (False, "the answer is false", 1.0),
        (False, "yes", 0.0),
        (True, "perhaps", 0.0),
        (False, "", 0.0),
    ],
)
def test_booleans_are_yes_and_no(answer: bool, prediction: str, acc: float, tmp_path: Path) -> None:  # P41
    example = read(tmp_path, answer=answer)
    assert example.answers == (("yes" if answer else "no",),)
    assert StrategyQA(tmp_path).score(prediction, example)["acc"] == acc


@pytest.mark.parametrize("answer", ["true", "yes", 1, 0, None, ["yes"]])
def test_an_answer_of_another_type_is_refused(answer: Any, tmp_path: Path) -> None:  # P41
    with pytest.raises(
        UserError, match=r"^[^\n]*record 1 \(id 's0'\): field 'answer' (must be true|is missing)"
    ):
        read(tmp_path, answer=answer)


@pytest.mark.parametrize(
    ("evidence", "found"),
    [
        (None, ()),
        ([], ()),
        (["operation", ["no_evidence"]], ()),
        ([[["b"], "a"], [[["b", "c"]]]], ("b", "a", "c")),
    ],
)
def test_paragraphs_are_found_however_deep(evidence: Any, found: tuple[str, ...], tmp_path: Path) -> None:
    assert read(tmp_path, evidence=evidence).supporting == found


@pytest.mark.parametrize("evidence", [[3], [[{"a": "b"}]], {"a": []}])
def test_evidence_of_another_shape_is_named(evidence: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="field 'evidence' must hold nested lists of texts"):
        read(tmp_path, evidence=evidence)
