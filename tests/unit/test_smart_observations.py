"""SmartRAG's observations and its hit rate. Oracles 20 and 21 of specs/smart_rag.md."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragtrials.data import Passage
from ragtrials.methods._smart_observations import NOTHING, hit, observation_parts
from ragtrials.program import Evidence

TWO = (Passage("1", "T1", "s1"), Passage("2", "T2", "s2"))


def shown(passages: Sequence[Passage], words: int | None = None) -> str:
    return "".join(
        part if isinstance(part, str) else part.text for part in observation_parts(passages, words)
    )


def test_an_observation_is_one_line() -> None:
    assert shown(TWO) == "T1: s1 T2: s2"
    assert shown((Passage("1", "A\nB", "c\n\n d\te"), TWO[0])) == "A B: c d e T1: s1"


def test_of_each_text_the_first_words_are_shown() -> None:
    assert shown((Passage("1", "T", "a b c"), Passage("2", "U", "d")), words=2) == "T: a b U: d"


def test_passages_alone_may_be_shortened() -> None:
    assert observation_parts(TWO, None) == ("", Evidence("T1: s1"), " ", Evidence("T2: s2"))


def test_an_empty_observation_says_so() -> None:
    assert observation_parts((), 5) == (NOTHING,)
    assert NOTHING.strip()


@pytest.mark.parametrize(
    ("aliases", "observation", "found"),
    [
        (["Obama"], "Barack Obama, obama!", True),
        (["Obama"], "", False),
        (["cat"], "concatenate", True),  # letters count
        (["The"], "xyz", False),  # fixed: in the released code an alias that normalises to nothing hits
        (["The"], "", False),
        (["The", "xyz"], "XYZ.", True),  # and it does not hide the others
        (["U.S."], "the US", True),
        (["New York"], "New  York!", True),
        (["Rome", "Paris"], "in Paris", True),
        ([], "Paris", False),
    ],
)
def test_hits(aliases: list[str], observation: str, found: bool) -> None:
    assert hit(aliases, observation) is found
