from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.ambigqa import AmbigQA

RECORD = LAYOUTS["ambigqa"].record(7)


def single(*answer: str) -> dict[str, Any]:
    return {"type": "singleAnswer", "answer": list(answer)}


def multiple(*slots: list[str]) -> dict[str, Any]:
    return {"type": "multipleQAs", "qaPairs": [{"question": "Who?", "answer": slot} for slot in slots]}


def read(folder: Path, *annotations: dict[str, Any], **changes: Any) -> Example:
    record = {**RECORD, **({"annotations": list(annotations)} if annotations else {}), **changes}
    write_split(folder, "ambigqa", "dev", [record])
    [example] = AmbigQA(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="-71",
        question="Who won race 7?",
        answers=(("Ada", "Ada L."), ("Bob",)),
        meta={"type": "mixed", "annotations": [[["Cy"]], [["Ada", "Ada L."], ["Bob"]]]},
    )


def test_the_first_annotation_with_several_answers_gives_the_slots(tmp_path: Path) -> None:
    example = read(tmp_path, multiple(["A"], ["B"]), multiple(["C"], ["D"], ["E"]))
    assert example.answers == (("A",), ("B",))
    assert example.meta["type"] == "multi"
    assert example.target == "A; B"


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        ([multiple(["A"], ["B"]), multiple(["A"])], "multi"),
        ([multiple(["A"], ["B"]), single("A")], "mixed"),
        ([single("A"), multiple(["A"], ["B"]), multiple(["C"])], "mixed"),
        ([single("A"), single("B")], "single"),
    ],
)
def test_a_question_is_multi_only_if_nobody_gave_one_answer(
    annotations: list[dict[str, Any]], kind: str, tmp_path: Path
) -> None:  # P30
    assert read(tmp_path, *annotations).meta["type"] == kind


def test_single_answers_are_aliases_of_one_another(tmp_path: Path) -> None:
    example = read(tmp_path, single("A", "B"), single("B", "C"))
    assert example.answers == (("A", "B", "C"),)
    assert example.meta == {"type": "single", "annotations": [[["A", "B"]], [["B", "C"]]]}


@pytest.mark.parametrize(
    ("prediction", "f1"),
    [
        ("Seattle", 1.0),
        ("1624; 1664", 1.0),
        ("1624\n\ncirca 1664;", 1.0),
        ("1664", 2 / 3),
        ("Seattle; 1624", 2 / 3),
        ("in Seattle", 0.0),
        ("", 0.0),
        (" ; ", 0.0),
    ],
)
def test_the_official_f1_is_the_best_over_all_annotations(prediction: str, f1: float, tmp_path: Path) -> None:
    example = read(tmp_path, single("Seattle"), multiple(["1624"], ["1664", "circa 1664"]))
    scores = AmbigQA(tmp_path).score(prediction, example)
    assert scores["f1"] == pytest.approx(f1)
    assert scores["em"] == float(f1 == 1.0)


def test_acc_is_the_share_of_slots_found_in_the_best_annotation(tmp_path: Path) -> None:
    example = read(tmp_path, single("Seattle"), multiple(["1624"], ["1664"]))
    score = AmbigQA(tmp_path).score
    assert score("In 1624, I think.", example)["acc"] == 0.5
    assert score("I think in Seattle.", example)["acc"] == 1.0
    assert score("Never.", example)["acc"] == 0.0


def test_blank_answers_are_dropped_and_counted(tmp_path: Path) -> None:  # P47
    example = read(tmp_path, multiple(["", "A"], [" "], []), single(""))
    assert example.answers == (("A",),)
    assert example.meta["annotations"] == [[["A"]]]
    assert example.meta["blank_answers"] == 4
    assert AmbigQA(tmp_path).score("", example)["f1"] == 0.0


def test_a_text_is_one_answer_and_not_its_letters(tmp_path: Path) -> None:  # P35
    assert read(tmp_path, {"type": "singleAnswer", "answer": "Paris"}).answers == (("Paris",),)


def test_the_answer_of_nq_is_kept_apart_from_the_annotations(tmp_path: Path) -> None:
    example = read(tmp_path, nq_answer=["Dee"])
    assert example.meta["nq_answer"] == ["Dee"]
    assert "Dee" not in example.aliases
    assert AmbigQA(tmp_path).score("Dee", example)["f1"] == 0.0


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ([], "field 'annotations' holds no answer"),
        ([single("")], "field 'annotations' holds no answer"),
        (["x"], "field 'annotations' has the wrong type"),
        ([{"type": "other"}], "field 'annotations' holds neither singleAnswer nor multipleQAs with qaPairs"),
        ([{"type": "singleAnswer"}], "field 'answer' must hold a text or a list of texts"),
        ([{"type": "multipleQAs"}], "field 'annotations' holds neither"),
        ([{"type": "multipleQAs", "qaPairs": ["x"]}], "field 'qaPairs' must hold objects"),
        ([{"type": "multipleQAs", "qaPairs": [{"answer": [3]}]}], "field 'answer' must hold a text"),
    ],
)
def test_a_bad_annotation_is_named(annotations: list[Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.json: record 1 \(id '-71'\): {said}[^\n]*$"):
        read(tmp_path, annotations=annotations)
