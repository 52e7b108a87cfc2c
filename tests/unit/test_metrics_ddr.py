"""RAG-DDR's metrics: ROUGE-L of the package `rouge` 1.0.1, and the older metrics that its accuracy and F1 are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.metrics import score
from ragtrials.metrics.ddr import common_words

CAT = "the cat sat on the mat"
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


def rouge_l(prediction: str | None, *golds: str) -> float:
    return score("ragddr_rouge_l_v1", prediction, list(golds))["rouge_l"]


@pytest.mark.parametrize(
    ("prediction", "gold", "value"),
    [
        (CAT, CAT, 0.999999995),
        ("the cat", CAT, 0.5714285673),
        ("a cat sat", CAT, 0.4999999953),
        ("", CAT, 0.0),
        ("Cat", "cat", 0.0),
        (".", CAT, 0.0),
    ],
)
def test_rouge_l_oracles(prediction: str, gold: str, value: float) -> None:  # spec 9.2
    assert rouge_l(prediction, gold) == pytest.approx(value, abs=1e-10)


# Values of the package itself, to the last bit.
@pytest.mark.parametrize(
    ("prediction", "gold", "value"),
    [
        ("It is red. It is big.", "It is big. It is red.", 0.999999995),  # the order of sentences is free
        ("big is It", "It is big", 0.3333333283333334),  # that of words is not
        ("the the the", "the", 0.999999995),  # a repeated word counts once
        ("a b. ", "a b", 0.7999999952000001),  # the blank behind the stop is a word of its own
        ("a b.", "a b", 0.999999995),  # nothing behind it is none
        (" ", ".. ", 0.999999995),
        ("a b b", "b a b", 0.999999995),  # of the equally long "a b" and "b b" it takes the former here
        ("b a b", "a b b", 0.4999999950000001),  # and the latter here
        ("x.a", "a", 0.6666666622222223),
    ],
)
def test_rouge_l_where_the_package_is_peculiar(prediction: str, gold: str, value: float) -> None:
    assert rouge_l(prediction, gold) == value


def test_rouge_l_takes_the_best_alias_and_nothing_is_no_text() -> None:
    assert rouge_l("the cat", "dog", CAT, "the mat") == pytest.approx(0.5714285673)
    assert rouge_l("the cat") == 0.0
    assert rouge_l(None, "cat") == rouge_l("cat", "") == 0.0


def by_table(reference: list[str], hypothesis: list[str]) -> set[str]:
    """`common_words` by the textbook's table of lengths."""
    lengths = [[0] * (len(hypothesis) + 1) for _ in range(len(reference) + 1)]
    for i, one in enumerate(reference, 1):
        for j, other in enumerate(hypothesis, 1):
            above, left = lengths[i - 1][j], lengths[i][j - 1]
            lengths[i][j] = lengths[i - 1][j - 1] + 1 if one == other else max(above, left)
    i, j, words = len(reference), len(hypothesis), set()
    while i and j:
        if reference[i - 1] == hypothesis[j - 1]:
            words.add(reference[i - 1])
            i, j = i - 1, j - 1
        elif lengths[i - 1][j] > lengths[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return words


@given(reference=WORDS, hypothesis=WORDS)
@settings(max_examples=300, deadline=None)
def test_the_walk_is_that_through_the_table(reference: list[str], hypothesis: list[str]) -> None:
    assert common_words(reference, hypothesis) == by_table(reference, hypothesis)


@pytest.mark.parametrize(
    ("prediction", "gold", "acc"),
    [
        ("It is Paris.", "Paris", 1),
        ("paris", "Paris", 1),
        ("PARIS", "Paris", 0),
        ("The united states", "United States", 1),
        ("New york city", "new york", 1),
        ("New York", "new york", 0),
        ("abc", "", 1),
        ("", "x", 0),
        ("carbon", "car", 1),
    ],
)
def test_its_accuracy_is_that_of_popqa(prediction: str, gold: str, acc: float) -> None:  # spec 9.1
    assert score("popqa_2023", prediction, [gold]) == {"acc": acc}


def test_its_evaluation_is_that_of_popqa_and_squad() -> None:  # spec 9.8
    assert score("popqa_2023", "the answer is paris", ["Paris", "Lutetia"]) == {"acc": 1.0}
    assert score("squad_v1", "I like the dogs", ["i like dogs a lot"])["f1"] == pytest.approx(0.857142857)
    assert score("squad_v1", " Paris. ", ["the paris"])["em"] == 1.0
