from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.metrics import METRICS, flags, metric_names, score
from ragtrials.metrics.qa import token_overlap


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("The Beatles", "Beatles", 1, 1.0),
        ("Yes.", "yes", 1, 1.0),
        ("yes, it was", "yes", 0, 0.0),  # P01
        ("no", "noanswer", 0, 0.0),  # P02
        ("noanswer", "no answer", 0, 0.0),
        ("", "", 1, 0.0),
        ("", "Paris", 0, 0.0),
        (None, "Paris", 0, 0.0),  # P08
        ("The The", "The The", 1, 0.0),  # P05
        ("A", "A", 1, 0.0),  # P03
        ("B", "A", 0, 0.0),
        ("1,000", "1000", 1, 1.0),  # P12
        ("Jean-Luc Picard", "Jean Luc Picard", 0, 0.4),  # P13
        ("1961–62", "1961-62", 0, 0.0),  # P14
        ("it’s", "it's", 0, 0.0),  # P16
        ("Beyonce\u0301", "Beyoncé", 0, 0.0),  # P17
        ("Straße", "STRASSE", 0, 0.0),  # P19
        ("New_York", "New York", 0, 0.0),  # P21
        ("Obama Obama", "Barack Obama", 0, 0.5),  # P23
        ("New York City", "new york", 0, 0.8),
        ("Paris</s>", "Paris", 0, 0.0),  # P09: special tokens must be gone before scoring
    ],
)
def test_hotpotqa(prediction: str | None, gold: str, em: float, f1: float) -> None:
    values = score("hotpotqa_v1", prediction, gold)
    assert (values["em"], values["f1"]) == (em, pytest.approx(f1))


def test_hotpotqa_precision_and_recall() -> None:
    assert score("hotpotqa_v1", "Chief", ["Chief of Protocol"]) == {
        "em": 0.0,
        "f1": 0.5,
        "precision": 1.0,
        "recall": pytest.approx(1 / 3),
    }


def test_each_value_takes_its_own_best_alias() -> None:
    values = score("hotpotqa_v1", "a b c", ["b", "b c d e"])
    assert values["precision"] == 1.0  # of "b c d e": b, c
    assert values["recall"] == 1.0  # of "b"
    assert values["f1"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [("yes, it was", ["yes"], 0, 0.5), ("paris", ["Paris", "City of Paris"], 1, 1.0), ("", [""], 1, 0.0)],
)
def test_squad_has_no_yes_no_rule(prediction: str, gold: list[str], em: float, f1: float) -> None:
    assert score("squad_v1", prediction, gold) == {"em": em, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("prediction", "gold", "acc"),
    [
        ("It is the U.S. of A.", ["US"], 1),
        ("anything", ["A"], 0),  # P03
        ("anything", ["..."], 0),  # P04
        ("the answer is Paris", ["The", "paris"], 1),
        ("", ["Paris"], 0),
        (None, [""], 0),
        ("party", ["Art"], 1),
        ("Paris", [], 0),  # P07
    ],
)
def test_containment_never_credits_an_empty_gold(prediction: str | None, gold: list[str], acc: float) -> None:
    assert score("containment_v1", prediction, gold) == {"acc": acc}


@pytest.mark.parametrize("name", ["hotpotqa_v1", "squad_v1", "containment_v1"])
def test_a_plain_string_is_one_alias(name: str) -> None:  # P35
    assert score(name, "P", "Paris") == score(name, "P", ["Paris"])
    assert score(name, "P", "Paris")[METRICS[name].values[0]] == 0.0


@pytest.mark.parametrize("name", ["hotpotqa_v1", "squad_v1", "containment_v1", "ambigqa_v1"])
def test_no_gold_at_all_scores_zero(name: str) -> None:  # P07
    assert set(score(name, "x", []).values()) == {0.0}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_values_are_the_declared_ones(name: str) -> None:
    gold = {"strategyqa_acc": True, "fever_acc": "SUPPORTS"}.get(name, [])
    assert set(score(name, None, gold)) == set(METRICS[name].values)


def test_unknown_metric_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"unknown metric 'hotpotqa_v2'; did you mean 'hotpotqa_v1'\?"):
        score("hotpotqa_v2", "x", ["x"])
    with pytest.raises(UserError, match="known: ambigqa_v1"):
        score("zzz", "x", ["x"])


def test_names_are_sorted() -> None:
    assert list(metric_names()) == sorted(METRICS)


@pytest.mark.parametrize(
    ("prediction", "gold"),
    [(3, ["3"]), (["3"], ["3"]), ("3", [3]), ("3", [None]), ("3", {"3": 1}), ("3", b"3"), ("3", 3)],
)
def test_wrong_shapes_are_one_line(prediction: object, gold: object) -> None:  # P60
    with pytest.raises(UserError, match=r"^[^\n]+$"):
        score("hotpotqa_v1", prediction, gold)


@pytest.mark.parametrize(
    ("prediction", "aliases", "expected"),
    [
        ("Paris", ["Paris"], ()),
        ("", ["Paris"], ("empty_pred",)),
        (" \n", ["Paris"], ("empty_pred",)),
        (None, [], ("empty_pred", "degenerate_gold")),
        ("the", ["The The"], ("degenerate_gold",)),
        ("x", ["Paris", "..."], ("degenerate_gold",)),
    ],
)
def test_flags(prediction: str | None, aliases: list[str], expected: tuple[str, ...]) -> None:
    assert flags(prediction, aliases) == expected


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("", "", 1, 1.0),
        ("", "Paris", 0, 0.0),
        ("The The", "The The", 1, 1.0),  # P05
        ("yes, it was", "yes", 0, 0.5),
        ("Barack Obama", "Obama", 0, 2 / 3),
    ],
)
def test_musique(prediction: str, gold: str, em: float, f1: float) -> None:
    assert score("musique_v1", prediction, gold) == {"em": em, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("1,000", "1000", 0, 0.0),  # P12
        ("Jean-Luc Picard", "Jean Luc Picard", 1, 1.0),  # P13
        ("1961–62", "1961-62", 0, 0.0),  # P14
        ("it’s", "it's", 1, 1.0),  # P16
        ("New_York", "New York", 1, 1.0),  # P21
        ("Paris</s>", "Paris", 0, 2 / 3),
    ],
)
def test_triviaqa(prediction: str, gold: str, em: float, f1: float) -> None:
    assert score("triviaqa_v1", prediction, gold) == {"em": em, "f1": pytest.approx(f1)}


@pytest.mark.parametrize(
    ("prediction", "gold", "em"),
    [("Beyonce\u0301", "Beyoncé", 1), ("Beyonce", "Beyoncé", 0), ("1961–62", "1961-62", 0), (None, "x", 0)],
)
def test_nq_open(prediction: str | None, gold: str, em: float) -> None:  # P17, P19
    assert score("nq_open", prediction, [gold]) == {"em": em}


@pytest.mark.parametrize(
    ("prediction", "pattern", "em"),
    [
        ("3,480 miles", r"3,?480", 1),
        ("about 3,480", r"3,?480", 0),
        ("PARIS", "paris|lutetia", 1),
        ("x", "(", 0),
        ("x", "x{99999999999}", 0),
        ("x", "(" * 5000 + ")" * 5000, 0),
        (None, "x", 0),
    ],
)
def test_curatedtrec_patterns_match_the_raw_text(
    prediction: str | None, pattern: str, em: float
) -> None:  # P70
    assert score("curatedtrec", prediction, [pattern]) == {"em": em}


@pytest.mark.parametrize(
    ("prediction", "gold", "acc"),
    [
        ("New york", "New York", 1),  # P59
        ("new york", "New York", 1),
        ("NEW YORK", "New York", 0),
        ("Iphone", "iPhone", 1),
        ("he was an actor", "act", 1),
        ("The U.S.A", "USA", 0),
        ("Beyoncé", "Beyonce", 0),
        ("Politician", "politician", 1),  # P58
    ],
)
def test_popqa(prediction: str, gold: str, acc: float) -> None:
    assert score("popqa_2023", prediction, [gold]) == {"acc": acc}


@given(st.text("ab c", max_size=60), st.text("ab c", max_size=60))
def test_overlap_counts_multisets_at_every_length(prediction: str, gold: str) -> None:
    predicted, wanted = prediction.split(), gold.split()
    common = sum((Counter(predicted) & Counter(wanted)).values())
    shared = token_overlap(prediction, gold)
    assert shared.precision == (common / len(predicted) if common else 0)
    assert shared.recall == (common / len(wanted) if common else 0)
    assert shared.f1 == pytest.approx(2 * common / (len(predicted) + len(wanted)) if common else 0)
