"""Labels of the selector's warm start: spec §2.1, oracle 8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._selector_labels import Match, helpful, label_words, selector_label

ASKED = "Who was it?"


@pytest.mark.parametrize(
    ("answer", "passage", "substring", "word"),
    [
        ("the North Atlantic Conference", "In the Yankee Conference", True, True),
        ("2", "Mars has 2 moons", False, False),
        ("Paris", "comparison of things", True, False),
        ("cat", "category theory", True, False),
        ("the who", "The Who band", False, False),
        ("mid-1990s", "in the mid 1990s", False, False),
        ("mid-1990s", "in the mid-1990s", True, True),
        ("1,000", "1000 men", True, True),
        ("O'Neal", "Shaquille O'Neal", True, True),
        ("Zürich", "ZÜRICH (city)", True, True),
        ("", "anything", False, False),
    ],
)
def test_helpful_passages(answer: str, passage: str, substring: bool, word: bool) -> None:
    assert helpful(ASKED, [answer], passage, "substring") is substring
    assert helpful(ASKED, [answer], passage) is word


def test_words_of_an_answer() -> None:
    assert label_words(ASKED, ['The "Isle of Man" (U.S.), 7']) == {"isle", "man"}
    assert label_words(ASKED, ["Lake Como", "Lario"]) == {"lake", "como", "lario"}
    assert label_words(ASKED, []) == frozenset()


@pytest.mark.parametrize("answer", ["yes", "No", " no "])
def test_yes_and_no_have_the_words_of_the_question(answer: str) -> None:
    question = "Were Scott Derrickson and Ed Wood of the same nationality?"
    assert label_words(question, [answer]) == {"scott", "derrickson", "ed", "wood", "same", "nationality"}


def test_yes_inside_an_answer_is_a_word() -> None:
    assert label_words("A question?", ["Yes Minister"]) == {"yes", "minister"}


def test_label_names_the_helpful_passages_in_order() -> None:
    passages = ["Rome\nA city.", "Lyon\nFar from Paris.", "Paris\nThe capital.", "Geometry\nA comparison."]
    assert selector_label(ASKED, ["Paris"], passages) == (1, 2)
    assert selector_label(ASKED, ["Paris"], passages, "substring") == (1, 2, 3)
    assert selector_label(ASKED, ["Berlin"], passages) == ()


TEXT = st.lists(
    st.sampled_from(["the", "cat", "Cats", "cat,", "mid-90s", "no", "x", "(dog)"]), max_size=6
).map(" ".join)


@given(answer=TEXT, passages=st.lists(TEXT, max_size=5))
def test_a_word_that_matches_is_a_substring_too(answer: str, passages: list[str]) -> None:
    label = selector_label(ASKED, [answer], passages)
    assert {*label} <= {*selector_label(ASKED, [answer], passages, "substring")}
    for match in ("word", "substring"):
        kind: Match = match
        expected = [number for number, text in enumerate(passages) if helpful(ASKED, [answer], text, kind)]
        assert [*selector_label(ASKED, [answer], passages, kind)] == expected
