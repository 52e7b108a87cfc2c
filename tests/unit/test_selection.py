"""The selector's output: spec §1.4, oracle 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._selection import (
    Selection,
    document,
    parse_selection,
    selection_strings,
    selection_text,
)

ALL_TEN = (
    "Document0,Document1,Document2,Document3,Document4,Document5,Document6,Document7,Document8,Document9"
)

ORACLE = [
    ("Document0,Document3,Document9", True, (0, 3, 9)),
    ("", True, ()),
    ("Document5", True, (5,)),
    ("Document3,Document1", True, (3, 1)),
    (ALL_TEN, True, tuple(range(10))),
    ("Document0,Document0", False, (0,)),
    ("3,5", False, (3, 5)),
    ("5,", False, (5,)),
    ("Document10", False, ()),
    ("Document1,", False, (1,)),
    (",Document1", False, (1,)),
    ("Document01", False, ()),
    ("Document7Document8", False, ()),
    ("Document1Document1,Document2", False, (2,)),
    ("Document12,Document2", False, (2,)),
    ("Document", False, ()),
    (",", False, ()),
    ("Document0, Document1", False, (0,)),
    ("Document0,,Document1", False, (0, 1)),
    ("Document0,Document1,Document", False, (0, 1)),
]


@pytest.mark.parametrize(("text", "well_formed", "ids"), ORACLE)
def test_oracle(text: str, well_formed: bool, ids: tuple[int, ...]) -> None:
    assert parse_selection(text, 10) == Selection(ids, well_formed)


@pytest.mark.parametrize(
    "text", ["Document1\n", " Document1", "Document1 ", "document1", "Document٣", "Document²"]
)
def test_nothing_is_forgiven(text: str) -> None:
    assert parse_selection(text, 10) == Selection((), False)


def test_fewer_passages_make_fewer_names() -> None:
    assert parse_selection("Document0,Document3", 3) == Selection((0,), False)
    assert parse_selection("Document11", 12) == Selection((11,), True)
    assert parse_selection("Document0", 0) == Selection((), False)


def test_the_list_is_cut_before_repeated_names_go() -> None:
    assert parse_selection("Document1,Document1,Document0", 2) == Selection((1,), False)


NUMBERS = st.lists(st.integers(0, 9), unique=True)


@given(ids=NUMBERS, more=st.integers(0, 5))
def test_a_selection_round_trips(ids: list[int], more: int) -> None:
    assert parse_selection(selection_text(ids), 10 + more) == Selection(tuple(ids), True)


@given(
    text=st.text() | st.lists(st.sampled_from(["Document", *"0123456789", ",", " ", "\n"])).map("".join),
    k=st.integers(0, 12),
)
def test_any_text_chooses_passages_that_exist_once(text: str, k: int) -> None:
    found = parse_selection(text, k)
    assert len({*found.ids}) == len(found.ids)
    assert all(0 <= number < k for number in found.ids)
    assert found.well_formed == (text == ",".join(f"Document{number}" for number in found.ids))


def test_names() -> None:
    assert document(7) == "Document7"
    assert selection_text([0, 3]) == "Document0,Document3"
    assert selection_text([]) == ""


def test_allowed_strings_have_every_name_with_and_without_comma() -> None:
    assert selection_strings(2) == (
        "Document0",
        "Document1",
        ",Document0",
        ",Document1",
        "Document0,Document1",
    )
    assert {*selection_strings(10)} >= {ALL_TEN, "Document9", ",Document9"}


def test_without_passages_there_is_nothing_to_allow() -> None:
    with pytest.raises(ValueError, match="at least one passage"):
        selection_strings(0)
