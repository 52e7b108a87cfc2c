"""What must hold for every metric and any input, whatever went wrong elsewhere with one of its kind."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.metrics import METRICS, flags, normalise, score

OF_ALIASES = sorted(m.name for m in METRICS.values() if (m.prediction_depth, m.gold_depth) == (0, 1))
BEST_ALIAS = [
    name for name in OF_ALIASES if name not in ("compat_mmoa", "compat_mmoa_reward", "compat_self_rag")
]
DEGENERATE = ["A", "the", "...", "The The", "an, a!", " ", "", "?"]

# Characters and words that normal forms treat specially, and anything else, lone surrogates included.
PIECES = [
    "a",
    "The",
    "an",
    "yes",
    "no",
    "noanswer",
    "Paris",
    "1,000",
    ".",
    "-",
    "_",
    "’",
    "é",
    "e\u0301",
    "ß",
    "\ud800",
]
TEXT = st.lists(st.sampled_from([*PIECES, " ", "\n\n", "Answer: "]) | st.text(max_size=3), max_size=6).map(
    "".join
)
ALIASES = st.lists(TEXT, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.parametrize("name", sorted(METRICS))
@given(prediction=JSON, gold=JSON)
@settings(max_examples=20, deadline=None)
def test_any_input_ends_in_values_or_in_one_line(name: str, prediction: Any, gold: Any) -> None:  # P60
    try:
        values = score(name, prediction, gold)
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert set(values) == set(METRICS[name].values)
        assert all(0.0 <= value <= 1.0 for value in values.values())


@pytest.mark.parametrize("name", OF_ALIASES)
@given(prediction=TEXT | st.none(), alias=TEXT)
@settings(max_examples=20, deadline=None)
def test_a_string_is_one_alias_never_its_characters(
    name: str, prediction: str | None, alias: str
) -> None:  # P35
    assert score(name, prediction, alias) == score(name, prediction, [alias])


@pytest.mark.parametrize("name", BEST_ALIAS)
@given(prediction=TEXT, aliases=ALIASES, more=ALIASES)
@settings(max_examples=20, deadline=None)
def test_aliases_are_alternatives(name: str, prediction: str, aliases: list[str], more: list[str]) -> None:
    alone, together = score(name, prediction, aliases), score(name, prediction, [*aliases, *more])
    assert all(together[value] >= alone[value] for value in alone)
    assert score(name, prediction, [*more, *aliases, *aliases]) == together


@pytest.mark.parametrize("name", BEST_ALIAS)
@given(prediction=TEXT, aliases=ALIASES)
@settings(max_examples=20, deadline=None)
def test_each_value_is_the_best_over_single_aliases(
    name: str, prediction: str, aliases: list[str]
) -> None:  # P26
    singles = [score(name, prediction, [alias]) for alias in aliases]
    for value, got in score(name, prediction, aliases).items():
        assert got == max((single[value] for single in singles), default=0.0)


@pytest.mark.parametrize("gold", DEGENERATE)
@given(prediction=TEXT)
@settings(max_examples=20, deadline=None)
def test_an_empty_gold_credits_nothing(gold: str, prediction: str) -> None:  # P03, P04
    assert score("containment_v1", prediction, [gold]) == {"acc": 0.0}
    assert score("asqa_str_em_guarded", prediction, [[gold]])["str_em"] == 0.0
    assert score("hotpotqa_v1", prediction, [gold])["em"] == float(normalise(prediction) == "")
    assert "degenerate_gold" in flags(prediction, [gold])


@pytest.mark.parametrize("rule", ["hotpotqa_v1", "twowiki_v1_1", "compat_flashrag"])
@pytest.mark.parametrize("closed", ["yes", "no", "noanswer", "Yes.", "The no"])
@given(other=TEXT)
@settings(max_examples=20, deadline=None)
def test_part_of_a_closed_answer_is_no_answer(rule: str, closed: str, other: str) -> None:  # P01, P02
    equal = normalise(other) == normalise(closed)
    assert score(rule, other, [closed])["f1"] == score(rule, closed, [other])["f1"] == float(equal)


@pytest.mark.parametrize(
    "name", ["hotpotqa_v1", "squad_v1", "musique_v1", "triviaqa_v1", "nq_open", "twowiki_v1_1"]
)
@given(answer=TEXT)
@settings(max_examples=20, deadline=None)
def test_the_gold_itself_is_exact(name: str, answer: str) -> None:  # P05: its F1 may still be 0
    assert score(name, answer, ["x y", answer])["em"] == 1.0


@pytest.mark.parametrize("name", [name for name in OF_ALIASES if not name.startswith("compat_")])
@pytest.mark.parametrize("prediction", ["", None])
def test_an_empty_prediction_scores_nothing_and_is_flagged(name: str, prediction: str | None) -> None:  # P08
    assert set(score(name, prediction, ["Paris", "42"]).values()) == {0.0}
    assert flags(prediction, ["Paris"]) == ("empty_pred",)


@pytest.mark.parametrize("name", [name for name in OF_ALIASES if name != "curatedtrec"])
def test_huge_texts_take_no_time(name: str) -> None:
    text = "The quick-brown fox, " * 50_000
    start = time.process_time()
    score(name, text, [text[:-5], "fox"])
    assert time.process_time() - start < 5


def test_a_million_predictions_fit_into_a_minute() -> None:
    started, n = time.process_time(), 20_000
    for i in range(n):
        score("hotpotqa_v1", f"The answer is number {i}, Paris", ["Paris", "City of Paris"])
    assert (time.process_time() - started) * 1_000_000 / n < 60
