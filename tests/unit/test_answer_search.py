from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ragtrials.answer_search import AnswerSearch
from ragtrials.metrics.retrieval import dpr_answer_recall


def found(golds: Sequence[Sequence[str]], text: str) -> set[int]:
    return set(AnswerSearch(golds).questions_in(text))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paris", "It is PARIS."),
        ("The Beatles", "Two Beatles sang."),
        ("the The", "the the The"),
        ("Jean-Luc Picard", "captain jean luc Picard"),
        ("East Germany", "West–East Germany-based"),
        ("1572", "the years 1572-1573"),
        ('"House"', "House, M.D."),
        ("Jimmy Durante.", "by Jimmy Durante and others"),
        ("Beyonce\u0301", "Beyoncé"),
        ("北京", "(北京)"),
    ],
)
def test_whole_words_are_found_whatever_stands_between_them(answer: str, text: str) -> None:
    assert found([[answer]], text) == ({0} if answer != "the The" else set())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("US", "a bus"),
        ("Paris Texas", "Paris. In Texas"),
        ("Beyonce", "Beyoncé"),
        ("Plan A", "the plan"),
        ("act", "the actor"),
        ("Paris", ""),
    ],
)
def test_parts_of_words_and_words_apart_are_not_found(answer: str, text: str) -> None:
    assert found([[answer]], text) == set()


def test_each_question_is_found_by_any_of_its_answers() -> None:
    golds = [["x", "New York City"], ["New York"], ["York"], ["new york city"], ["Boston"]]
    assert found(golds, "In New York City.") == {0, 1, 2, 3}


@pytest.mark.parametrize("answers", [[], ["..."], ["The"], ["an", "—"], ["_"]])
def test_answers_without_words_cannot_be_looked_for(answers: list[str]) -> None:
    search = AnswerSearch([answers, ["Paris", *answers]])
    assert search.searchable == (False, True)
    assert set(search.questions_in("The ... an — _ Paris")) == {1}


TEXTS = st.text(st.sampled_from("ab Aé\u0301ÉI-–.'_1½² \nथि€"), max_size=30)


@given(before=TEXTS, answer=TEXTS, after=TEXTS)
@example("", "1", "st")
def test_what_dpr_finds_is_found(before: str, answer: str, after: str) -> None:
    search = AnswerSearch([[answer]])
    assume(search.searchable[0])
    text = before + answer + after
    if dpr_answer_recall([text], [answer]):
        assert set(search.questions_in(text)) == {0}
