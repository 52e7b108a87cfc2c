"""From text to the words that BM25 counts. Passages and queries go through the same function."""

from __future__ import annotations

import re
from collections.abc import Callable

from ragtrials.retrieval.settings import BM25Settings, missing

_SURROGATES = re.compile("[\ud800-\udfff]")


REMEMBERED_WORDS = 2**18
"""Bound of the memory for words already looked at; text repeats its words, stemming is slow."""


class Analyzer:
    """Splits text into index words: lower case, words by pattern, no stop words, stems.

    Raises:
        UserError: bm25s (stop words) or PyStemmer (stems) is not installed but asked for.
    """

    def __init__(self, settings: BM25Settings) -> None:
        self._lower = settings.lower
        self._split = re.compile(settings.pattern).findall
        self._stems = _Stems(_stopwords(settings), _stemmer(settings))

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with repetition."""
        if not text.isascii():
            text = _SURROGATES.sub(" ", text)  # no word has one, and the stemmer refuses them
        if self._lower:
            text = text.lower()
        return [stem for word in self._split(text) if (stem := self._stems[word])]


class _Stems(dict[str, str]):
    """From a word to its stem; to "" for a stop word and for what stems to nothing (a possessive's "s")."""

    def __init__(self, stopwords: frozenset[str], stem: Callable[[str], str]) -> None:
        super().__init__()
        self._stopwords, self._stem = stopwords, stem

    def __missing__(self, word: str) -> str:
        if len(self) >= REMEMBERED_WORDS:
            self.clear()
        self[word] = stem = "" if word in self._stopwords else self._stem(word)
        return stem


def _stopwords(settings: BM25Settings) -> frozenset[str]:
    if settings.stopwords == "none":
        return frozenset()
    try:
        from bm25s.stopwords import STOPWORDS_EN
    except ImportError as error:
        raise missing("bm25s") from error
    return frozenset(STOPWORDS_EN)


def _stemmer(settings: BM25Settings) -> Callable[[str], str]:
    if settings.stemmer == "none":
        return str
    try:
        import Stemmer
    except ImportError as error:
        raise missing("PyStemmer") from error
    stem: Callable[[str], str] = Stemmer.Stemmer(settings.stemmer).stemWord
    return stem
