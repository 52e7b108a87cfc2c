"""Normal forms of answers. Each dataset's official script has its own; none is "better"."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from functools import lru_cache

ARTICLES = re.compile(r"\b(a|an|the)\b")

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TRIVIAQA_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))

_CACHED_LENGTH = 256
"""Answers come again and again and are short; whole passages would only push them out of the cache."""


def _remember_short(normal_form: Callable[[str], str]) -> Callable[[str], str]:
    cached = lru_cache(maxsize=1 << 16)(normal_form)

    def remembered(text: str) -> str:
        return cached(text) if len(text) <= _CACHED_LENGTH else normal_form(text)

    remembered.__doc__ = normal_form.__doc__
    return remembered


def _squad(text: str) -> str:
    """SQuAD v1.1: lower-case, delete ASCII punctuation, articles become a space, white space collapses.

    HotpotQA, 2WikiMultihopQA, AmbigQA, MuSiQue, ASQA and KILT use it unchanged. Punctuation leaves no space
    behind ("Jean-Luc" is "jeanluc"); dashes and quotes beyond ASCII stay.
    """
    return " ".join(ARTICLES.sub(" ", without_punctuation(text.lower())).split())


def _nq_open(text: str) -> str:
    """Google's NQ-open script: decompose accents (NFD), then as SQuAD.

    The article rule then meets bare letters: of "à la" only the accent and "la" remain.
    """
    return _squad(unicodedata.normalize("NFD", text))


def _triviaqa(text: str) -> str:
    """TriviaQA v1.0: as SQuAD, but underscores, ASCII punctuation and ‘ ’ ´ ` become spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(_TRIVIAQA_PUNCTUATION)).split())


def without_punctuation(text: str) -> str:
    """The text without ASCII punctuation; no space is put in its place."""
    return text.translate(_DELETE_PUNCTUATION)


normalise = _remember_short(_squad)
nq_open_form = _remember_short(_nq_open)
triviaqa_form = _remember_short(_triviaqa)
