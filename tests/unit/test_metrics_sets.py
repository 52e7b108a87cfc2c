from __future__ import annotations

import pytest

from ragtrials.errors import UserError
from ragtrials.metrics import score

SINGLE_AND_MULTI = [[["Seattle"]], [["1624"], ["1664", "circa 1664"]]]


@pytest.mark.parametrize(
    ("slots", "answers", "f1"),
    [
        ([["1624"], ["1664"]], ["1624", "1664"], 1.0),
        ([["1624"], ["1664"]], ["1624"], 2 / 3),
        ([["1624"], ["1664"]], ["1624", "1624"], 0.5),  # P28
        ([["1624"], ["1664"]], ["1624", "1700"], 0.5),
        ([["Nick Robinson"]], ["Nick Robinson", "x"], 2 / 3),
        ([["a b", "c"], ["c"]], ["c", "a b"], 0.5),
        ([["a b", "c"], ["c"]], ["c"], 2 / 3),
        ([["1624", "1664"], ["1664"]], ["1664", "1624"], 0.5),  # P27
        ([["The Who"]], ["who."], 1.0),
        ([["x"]], ["y"], 0.0),
        ([["x"]], [], 0.0),  # P31b
        ([], ["x"], 0.0),
    ],
)
def test_ambigqa_f1_of_one_annotation(slots: list[list[str]], answers: list[str], f1: float) -> None:
    assert score("ambigqa_v1", answers, [slots]) == {"f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("answers", "f1"),
    [(["Seattle"], 1.0), (["1624", "1664"], 1.0), (["1664"], 2 / 3), (["Seattle", "1624"], 2 / 3)],
)
def test_ambigqa_takes_the_best_annotation(answers: list[str], f1: float) -> None:
    assert score("ambigqa_v1", answers, SINGLE_AND_MULTI) == {"f1": pytest.approx(f1)}


def test_repeated_annotations_change_nothing() -> None:  # P29
    assert score("ambigqa_v1", ["x"], [[["x"]]] * 3) == score("ambigqa_v1", ["x"], [[["x"]]])


def test_a_string_is_one_answer_and_one_alias() -> None:  # P35
    assert score("ambigqa_v1", "Seattle", [["Seattle"]]) == {"f1": 1.0}
    assert score("ambigqa_v1", "S", [["Seattle"]]) == {"f1": 0.0}
    assert score("ambigqa_v1", None, [["Seattle"]]) == {"f1": 0.0}


@pytest.mark.parametrize("gold", ["Seattle", ["Seattle"], [[["x", 3]]], 7, [None]])
def test_gold_of_the_wrong_depth_is_one_line(gold: object) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$"):
        score("ambigqa_v1", ["x"], gold)


@pytest.mark.parametrize(
    ("text", "pairs", "share", "hit"),
    [
        ("founded in 1624 and renamed in 1664.", [["1624"], ["1664"]], 1.0, 1.0),
        ("founded 1624", [["1624"], ["1664"]], 0.5, 0.0),
        ("party", [["Art"]], 1.0, 1.0),
        ("anything", [["The"]], 1.0, 1.0),
        ("", [["x"]], 0.0, 0.0),
        ("x", [], 0.0, 0.0),
        (None, [["x"]], 0.0, 0.0),
    ],
)
def test_asqa_string_exact_match(text: str | None, pairs: list[list[str]], share: float, hit: float) -> None:
    assert score("asqa_str_em", text, pairs) == {"str_em": share, "str_em_hit": hit}


def test_the_guarded_variant_finds_no_empty_answer() -> None:  # P04
    assert score("asqa_str_em_guarded", "anything", [["The"], ["thing"]]) == {
        "str_em": 0.5,
        "str_em_hit": 0.0,
    }
    assert score("asqa_str_em_guarded", "x", [["...", "x"]]) == {"str_em": 1.0, "str_em_hit": 1.0}
