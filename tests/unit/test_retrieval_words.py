"""From text to index words."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.retrieval.settings import BM25Settings
from ragtrials.retrieval.words import Analyzer

DEFAULT = Analyzer(BM25Settings())
ANY_CHARACTER = st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00\x00😀 ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The acquired companies of the CITY", ["acquir", "compani", "citi"]),
        ("Malcolm X and Apollo 8", ["malcolm", "x", "apollo", "8"]),
        ("city, city; cities", ["citi", "citi", "citi"]),
        ("Reykjavík's höfn", ["reykjavík", "höfn"]),
        ("東京 1961–62", ["東京", "1961", "62"]),
        ("to be or not", []),
        ("", []),
        ("?! … \ud83d", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert DEFAULT.words(text) == words


def test_each_setting_changes_the_words() -> None:
    text = "The Cities of 3-D"

    def words(**settings: object) -> list[str]:
        return Analyzer(BM25Settings(**settings)).words(text)  # type: ignore[arg-type]

    assert words() == ["citi", "3", "d"]
    assert words(lower=False) == ["The", "Citi", "3", "D"]
    assert words(stopwords="none") == ["the", "citi", "of", "3", "d"]
    assert words(stemmer="none") == ["cities", "3", "d"]
    assert words(pattern=r"\w\w+") == ["citi"]


def test_a_lone_surrogate_separates_words_whatever_the_pattern() -> None:
    assert Analyzer(BM25Settings(pattern=r"\S+")).words("new\ud83dtown") == ["new", "town"]


def test_the_two_snowball_stemmers_differ() -> None:
    text = "generously"
    stems = [Analyzer(BM25Settings(stemmer=name)).words(text) for name in ("porter", "english")]
    assert stems == [["gener"], ["generous"]]


@given(st.text(ANY_CHARACTER, max_size=30), st.sampled_from([r"\w+", r"\S+", r".", r"\w*"]))
def test_any_text_has_words_that_can_be_written(text: str, pattern: str) -> None:
    words = Analyzer(BM25Settings(pattern=pattern)).words(text)
    assert all(words)
    assert "".join(words).encode("utf-8").decode("utf-8") == "".join(words)


@pytest.mark.parametrize(("module", "package"), [("Stemmer", "PyStemmer"), ("bm25s.stopwords", "bm25s")])
def test_a_missing_package_is_named_and_nothing_else_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=f"needs {package}: run `pip install {package}`"):
        Analyzer(BM25Settings())


def test_what_is_not_asked_for_need_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    assert Analyzer(BM25Settings(stemmer="none")).words("Cities") == ["cities"]


def test_memory_for_known_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragtrials.retrieval.words.REMEMBERED_WORDS", 3)
    analyzer = Analyzer(BM25Settings())
    text = "cities of rivers and lakes; cities again, rivers again"
    assert analyzer.words(text) == DEFAULT.words(text)
    assert len(analyzer._stems) <= 3
