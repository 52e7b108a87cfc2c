"""From text to the words that BM25 counts. Passages and queries go through the same function."""

from __future__ import annotations

import re

from ragtrials.retrieval.settings import BM25Settings, missing

_SURROGATES = re.compile("[\ud800-\udfff]")


class Analyzer:
    """Splits text into index words: lower case, words by pattern, no stop words, stems.

    Raises:
        UserError: bm25s (stop words) or PyStemmer (stems) is not installed but asked for.
    """

    def __init__(self, settings: BM25Settings) -> None:
        self._lower = settings.lower
        self._split = re.compile(settings.pattern).findall
        self._stopwords = frozenset[str]()
        self._stemmer = None
        if settings.stopwords != "none":
            try:
                from bm25s.stopwords import STOPWORDS_EN
            except ImportError as error:
                raise missing("bm25s") from error
            self._stopwords = frozenset(STOPWORDS_EN)
        if settings.stemmer != "none":
            try:
                import Stemmer
            except ImportError as error:
                raise missing("PyStemmer") from error
            self._stemmer = Stemmer.Stemmer(settings.stemmer)

    def words(self, text: str) -> list[str]:
        """The words of a text in order, with repetition."""
        if not text.isascii():
            text = _SURROGATES.sub(" ", text)  # no word has one, and the stemmer refuses them
        if self._lower:
            text = text.lower()
        words = [word for word in self._split(text) if word and word not in self._stopwords]
        if self._stemmer is not None:
            words = self._stemmer.stemWords(words)
        return words
