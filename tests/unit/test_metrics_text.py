from __future__ import annotations

import pytest

from ragtrials.metrics import normalise


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("The U.S. (a country)", "us country"),
        ("Jean-Luc", "jeanluc"),
        ("C++", "c"),
        ("AC/DC", "acdc"),
        ("New_York", "newyork"),
        ("A.I.", "ai"),
        ("The", ""),
        ("...", ""),
        ("1961–62", "1961–62"),
        ("“Hello”", "“hello”"),
        ("à la", "à la"),
        ("  a\u00a0b  ", "b"),
        ("a\u0000the", "\u0000"),
        ("\ud83d an", "\ud83d"),
    ],
)
def test_squad_normal_form(text: str, form: str) -> None:
    assert normalise(text) == form


def test_long_texts_take_the_same_way_as_short_ones() -> None:
    assert normalise("The U.S. " * 100) == "us " * 99 + "us"
