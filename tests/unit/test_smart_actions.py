"""SmartRAG's actions: how a tag is read. Oracle 18 of specs/smart_rag.md."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._smart_actions import ANSWER, SEARCH, Action, Tag, given_tag, parse_action
from ragtrials.program import Generate, assistant, user

ORACLES = {
    "[Answer] Paris": Action(ANSWER, "Paris"),
    " [Search]  who won ": Action(SEARCH, "who won"),
    "[Answer]": Action(ANSWER, ""),
    "[Search] [Answer] x": Action(SEARCH, "[Answer] x"),
    "[Answer]\tParis": Action(ANSWER, "Paris"),
    "Answer: Paris": Action(None, "Answer: Paris"),
    "": Action(None, ""),
    " ": Action(None, ""),
    "Paris [Answer]": Action(None, "Paris [Answer]"),
    "[Retrieve] who won": Action(None, "[Retrieve] who won"),
}
LENIENT = {
    "[Answer]Paris": Action(ANSWER, "Paris"),
    "[answer] Paris": Action(ANSWER, "Paris"),
    "[SEARCH] who won": Action(SEARCH, "who won"),
    "[ Search ]who won": Action(SEARCH, "who won"),
    "\n[Search]\nwho won\n": Action(SEARCH, "who won"),
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("text", "action"), ORACLES.items())
def test_what_an_action_is(text: str, action: Action, strict: bool) -> None:
    assert parse_action(text, strict) == action


@pytest.mark.parametrize(("text", "action"), LENIENT.items())
def test_other_case_and_spacing_count_unless_it_is_strict(text: str, action: Action) -> None:
    assert parse_action(text) == action
    if not text.isspace() and text.split()[0] not in (SEARCH, ANSWER):
        assert parse_action(text, strict=True) == Action(None, text.strip())


def official(text: str) -> Action:
    """The released code's rule as the spec page tells it: split at the first white space."""
    words = text.split(maxsplit=1)
    tag: Tag | None = {SEARCH: SEARCH, ANSWER: ANSWER}.get(words[0]) if words else None  # type: ignore[assignment]
    return Action(tag, words[1].strip() if len(words) > 1 else "") if tag else Action(None, text.strip())


PIECES = st.sampled_from(["[Answer]", "[Search]", "[answer]", "[", "]", " ", "  ", "\t", "\n", "Paris", "é"])


@given(st.lists(PIECES, max_size=6).map("".join))
def test_strict_reading_is_the_official_one_and_lenient_reading_takes_more(text: str) -> None:
    strict, lenient = parse_action(text, strict=True), parse_action(text)
    assert strict == official(text)
    assert strict.tag is None or lenient == strict


def test_a_tag_that_the_request_wrote() -> None:
    chat = (user("?"),)
    assert given_tag(Generate(chat)) is None
    assert given_tag(Generate((*chat, assistant(ANSWER)))) == ANSWER
    assert given_tag(Generate((*chat, assistant(SEARCH)))) == SEARCH
