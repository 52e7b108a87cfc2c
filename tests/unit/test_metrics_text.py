from __future__ import annotations

import pytest

from ragtrials.metrics import normalise
from ragtrials.metrics.text import nq_open_form, triviaqa_form


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


@pytest.mark.parametrize(
    ("text", "triviaqa", "nq_open"),
    [
        ("The U.S. (a country)", "u s country", "us country"),
        ("it’s a dog's life", "it s dog s life", "it’s dogs life"),
        ("à la", "à la", "\u0300 la"),  # P18
        ("A.I.", "i", "ai"),  # P22
        ("New_York", "new york", "newyork"),  # P21
        ("Beyoncé", "beyoncé", "beyonce\u0301"),  # P17
        ("1961–62", "1961–62", "1961–62"),
        ("‘Hello’ ´`", "hello", "‘hello’ ´"),
    ],
)
def test_other_normal_forms(text: str, triviaqa: str, nq_open: str) -> None:
    assert triviaqa_form(text) == triviaqa
    assert nq_open_form(text) == nq_open
