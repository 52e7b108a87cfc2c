from __future__ import annotations

import pytest

from ragtrials.metrics.retrieval import (
    all_gold_found,
    answer_recall,
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
