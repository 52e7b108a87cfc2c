"""Normal forms of answers. Each dataset's official script has its own; none is "better"."""

from __future__ import annotations

import re
import string
from functools import lru_cache

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)

_CACHED_LENGTH = 256
"""Answers come again and again and are short; whole passages would only push them out of the cache."""


def squad_normal_form(text: str) -> str:
    """Lower-case, delete ASCII punctuation, articles become a space, white space collapses.

    This is `normalize_answer` of SQuAD v1.1, which HotpotQA, 2WikiMultihopQA, AmbigQA, MuSiQue, ASQA and
    KILT use unchanged. Punctuation leaves no space behind ("Jean-Luc" is "jeanluc"); dashes and quotes
    beyond ASCII stay.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


_cached_squad_normal_form = lru_cache(maxsize=1 << 17)(squad_normal_form)


def normalise(text: str) -> str:
    """`squad_normal_form`, remembered for short texts."""
    if len(text) <= _CACHED_LENGTH:
        return _cached_squad_normal_form(text)
    return squad_normal_form(text)
