from __future__ import annotations

import pytest

from ragtrials.metrics import score

CONFERENCE = "the North Atlantic Conference"


@pytest.mark.parametrize(
    ("prediction", "gold", "acc", "em", "f1"),
    [
        ("North Atlantic Conference", CONFERENCE, 1, 1, 1),
        ("Yankee Conference", CONFERENCE, 0, 0, 0.4),
        ("Yes, it is", "yes", 0, 0, 0),
        ("yes", "no", 0, 0, 0),
        ("Paris", "Paris, Lutetia", 0, 0, 2 / 3),
        ("New York City", "York", 1, 0, 0.5),
        ("Barack Obama Obama", "Barack Obama", 1, 0, 0.8),
        ("U.S.", "US", 0, 0, 0),
        ("mid-1990s", "mid 1990s", 1, 1, 1),
        ("2,000", "2000", 0, 0, 0),
        ("The Beatles", "beatles", 1, 1, 1),
        ("Answer: Paris", "Paris", 1, 1, 1),
        ("It says\n\nParis", "Paris", 1, 1, 1),
        ("don’t", "don't", 1, 1, 1),
        ("Kyōto", "Kyoto", 0, 0, 0),
        ("", "", 1, 1, 0),
        ("a", "the", 1, 1, 0),
        ("1961–62", "1961-62", 1, 1, 1),
        ("a\u0001b", "ab", 1, 1, 1),
        ("The answer is: Rome", "Answer: Rome", 1, 1, 1),  # P54: it cuts golds, too
    ],
)
def test_mmoa(prediction: str, gold: str, acc: float, em: float, f1: float) -> None:
    assert score("compat_mmoa", prediction, [gold]) == {"f1": pytest.approx(f1), "em": em, "acc": acc}


def test_mmoa_reward_has_no_yes_no_rule() -> None:  # P84
    assert score("compat_mmoa_reward", "Yes, it is", ["yes"]) == {"f1": 0.5, "em": 0.0, "acc": 1.0}
    assert score("compat_mmoa_reward", "yes", ["yes"]) == score("compat_mmoa", "yes", ["yes"])


def test_mmoa_joins_several_golds_into_one_string() -> None:  # P31
    assert score("compat_mmoa", "Paris", ["Paris", "Lutetia"])["em"] == 0.0
    assert score("compat_mmoa", "Paris, Lutetia", ["Paris", "Lutetia"])["em"] == 1.0


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1", "acc"),
    [
        ("yes, it was", ["yes"], 0, 0, 1),
        ("x", ["A"], 0, 0, 1),  # P03: an empty gold is found everywhere
        ("The Paris", ["paris", "x"], 1, 1, 1),
        ("x", [], 0, 0, 0),
    ],
)
def test_flashrag(prediction: str, gold: list[str], em: float, f1: float, acc: float) -> None:
    values = score("compat_flashrag", prediction, gold)
    assert (values["em"], values["f1"], values["acc"]) == (em, f1, acc)


def test_search_r1_takes_any_gold() -> None:
    assert score("compat_search_r1", "the paris", ["Lutetia", "Paris"]) == {"em": 1.0}
    assert score("compat_search_r1", "in paris", ["Paris"]) == {"em": 0.0}
    assert score("compat_search_r1", "x", []) == {"em": 0.0}


@pytest.mark.parametrize(
    ("prediction", "gold", "match", "acc", "f1"),
    [
        ("A politician", ["politician"], 1, 0, 1),
        ("Politician", ["politician"], 0, 0, 1),  # P58
        ("b", ["a", "b"], 1, 0, 1),  # acc looks at the first gold only
        ("a", ["a", "b"], 1, 1, 0),
        ("x", [], 0, 0, 0),  # P60
        ("xParis", "Paris", 1, 0, 0),
    ],
)
def test_self_rag(prediction: str, gold: list[str], match: float, acc: float, f1: float) -> None:
    assert score("compat_self_rag", prediction, gold) == {"match": match, "acc": acc, "f1": f1}
