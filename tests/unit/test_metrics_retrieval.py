from __future__ import annotations

import unicodedata
from importlib import import_module
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.metrics import score
from ragtrials.metrics.retrieval import (
    all_gold_found,
    answer_recall,
    dpr_answer_recall,
    gold_precision,
    gold_recall,
    reciprocal_rank,
)


@pytest.mark.parametrize(
    ("retrieved", "gold", "recall", "found_all", "precision", "rank"),
    [
        (["x", "g", "h"], ["g", "h"], 1.0, 1.0, 2 / 3, 1 / 2),
        (["g", "x"], ["g", "h"], 0.5, 0.0, 0.5, 1.0),
        (["x", "x", "g"], ["g", "g"], 1.0, 1.0, 0.5, 1 / 2),  # repeated ids count once
        ([], ["g"], 0.0, 0.0, 0.0, 0.0),  # P68
        (["x"], [], 0.0, 0.0, 0.0, 0.0),
        ([], [], 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_gold_passages(
    retrieved: list[str], gold: list[str], recall: float, found_all: float, precision: float, rank: float
) -> None:
    assert gold_recall(retrieved, gold) == pytest.approx(recall)
    assert all_gold_found(retrieved, gold) == found_all
    assert gold_precision(retrieved, gold) == pytest.approx(precision)
    assert reciprocal_rank(retrieved, gold) == pytest.approx(rank)


@pytest.mark.parametrize(
    ("texts", "aliases", "found"),
    [
        (["He was born in New York, U.S."], ["new york us"], 1.0),
        (["the bus stops"], ["US"], 1.0),  # P69: a substring, not a token
        (["one", "two Paris"], ["London", "Paris"], 1.0),
        (["one"], ["Paris"], 0.0),
        (["one"], ["The", "..."], 0.0),
        ([], ["Paris"], 0.0),
        (["one"], [], 0.0),
        (["P a r"], "Paris", 0.0),
    ],
)
def test_answer_recall(texts: list[str], aliases: list[str] | str, found: float) -> None:
    assert answer_recall(texts, aliases) == found


@pytest.mark.parametrize(
    ("texts", "aliases", "found"),
    [
        (["the bus stops"], ["US"], 0.0),  # P69: a token, not a substring
        (["the US stops"], ["us"], 1.0),
        (["in the U.S. today"], ["U.S."], 1.0),
        (["in the U.S. today"], ["US"], 0.0),
        (["Beyonce\u0301 sang"], ["BEYONCÉ"], 1.0),
        (["New  York\nCity"], ["York City"], 1.0),
        (["New York"], ["York New"], 0.0),
        (["mid-1990s"], ["1990s"], 1.0),
        (["mid-1990s"], ["1990"], 0.0),
        (["北京 is"], ["北京"], 1.0),
        (["anything"], ["", " \u200b"], 0.0),
        ([], ["x"], 0.0),
        (["x"], [], 0.0),
    ],
)
def test_dpr_answer_recall(texts: list[str], aliases: list[str], found: float) -> None:
    assert dpr_answer_recall(texts, aliases) == found
    assert score("dpr_answer_recall", texts, aliases) == {"answer_recall": found}


# Characters that this Python's Unicode tables do not know may be letters to a newer `regex`.
KNOWN = st.characters(exclude_categories=("Cn", "Cs"))


@pytest.mark.skipif(find_spec("regex") is None, reason="the package regex, which DPR uses, is not installed")
@given(text=st.text(KNOWN, max_size=30), start=st.integers(0, 30), length=st.integers(1, 5))
def test_dpr_tokens_are_those_of_its_regular_expression(text: str, start: int, length: int) -> None:
    tokens = import_module("regex").compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")

    def words(value: str) -> list[str]:
        return [token.lower() for token in tokens.findall(unicodedata.normalize("NFD", value))]

    alias = text[start : start + length]
    inside, wanted = words(text), words(alias)
    spots = range(len(inside) - len(wanted) + 1)
    expected = bool(wanted) and any(inside[i : i + len(wanted)] == wanted for i in spots)
    assert dpr_answer_recall([text], [alias]) == float(expected)
