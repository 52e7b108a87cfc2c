from __future__ import annotations

import pytest

from ragtrials.errors import UserError
from ragtrials.metrics import score


@pytest.mark.parametrize("gold", [True, "true", "Yes", ["yes"]])
@pytest.mark.parametrize(
    ("prediction", "acc"),
    [
        ("Yes.", 1),
        ("true", 1),
        ("TRUE, because", 1),
        ("The answer is yes, no doubt", 1),
        ("No.", 0),
        ("no, yes", 0),
        ("False", 0),
        ("yesterday", 0),
        ("perhaps", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_strategyqa(prediction: str | None, gold: object, acc: float) -> None:  # P41
    assert score("strategyqa_acc", prediction, gold) == {"acc": acc}


def test_strategyqa_false_is_not_the_mere_absence_of_true() -> None:
    assert score("strategyqa_acc", "No", False) == {"acc": 1.0}
    assert score("strategyqa_acc", "perhaps", False) == {"acc": 0.0}


@pytest.mark.parametrize("gold", ["perhaps", "", [], ["yes", "no"], None, 1])
def test_strategyqa_refuses_another_gold(gold: object) -> None:
    with pytest.raises(UserError):
        score("strategyqa_acc", "yes", gold)


@pytest.mark.parametrize(
    ("prediction", "label"),
    [
        ("SUPPORTS", "SUPPORTS"),
        ("Supported.", "SUPPORTS"),
        ("true", "SUPPORTS"),
        ("REFUTES", "REFUTES"),
        ("No, it is refuted", "REFUTES"),
        ("False", "REFUTES"),
        ("NOT ENOUGH INFO", "NOT ENOUGH INFO"),
        ("Not enough information.", "NOT ENOUGH INFO"),
        ("NOT_ENOUGH_INFO", "NOT ENOUGH INFO"),
        ("NEI", "NOT ENOUGH INFO"),
        ("nothing", None),
        ("It supports", None),
        ("", None),
        (None, None),
    ],
)
def test_fever(prediction: str | None, label: str | None) -> None:
    for gold in ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"):
        assert score("fever_acc", prediction, gold) == {"acc": float(gold == label)}


@pytest.mark.parametrize("gold", ["perhaps", "", None, ["SUPPORTS", "REFUTES"]])
def test_fever_refuses_another_gold(gold: object) -> None:
    with pytest.raises(UserError):
        score("fever_acc", "SUPPORTS", gold)
