"""What decides a BM25 ranking besides the passages: the settings, and the libraries that carry them out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from ragtrials.errors import UserError

METHODS = ("lucene", "robertson", "atire")
"""The scorings under which a passage that shares no word with the query scores zero."""

STOPWORDS = ("english", "none")
STEMMERS = ("porter", "english", "none")


@dataclass(frozen=True, slots=True)
class BM25Settings:
    """The settings of a BM25 index; its queries are read with the very same ones.

    Attributes:
        method: The scoring variant, one of `METHODS`.
        k1: Saturation of term frequency, ≥ 0. 0.9 and b = 0.4 are the defaults of pyserini (Lucene).
        b: How far a passage's length counts, in 0..1.
        stopwords: "english" (the 33 words of Lucene's list) or "none".
        stemmer: A Snowball algorithm ("porter" as in pyserini, "english" = Porter 2) or "none".
        lower: Whether case is ignored.
        pattern: The regular expression of a word. Words of one character count: "Malcolm X", "Apollo 8".

    Raises:
        UserError: A value is out of its range.
    """

    method: str = "lucene"
    k1: float = 0.9
    b: float = 0.4
    stopwords: str = "english"
    stemmer: str = "porter"
    lower: bool = True
    pattern: str = r"\w+"

    def __post_init__(self) -> None:
        for name, known in (("method", METHODS), ("stopwords", STOPWORDS), ("stemmer", STEMMERS)):
            if getattr(self, name) not in known:
                raise UserError(f"bm25 {name} {getattr(self, name)!r} is unknown: use {' or '.join(known)}")
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise UserError(f"bm25 k1 is {self.k1}: use a number ≥ 0")
        if not 0 <= self.b <= 1:
            raise UserError(f"bm25 b is {self.b}: use a number from 0 to 1")
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise UserError(f"bm25 pattern {self.pattern!r} is no regular expression: {error}") from error
        if groups:
            raise UserError(f"bm25 pattern {self.pattern!r} has groups: write (?:…) instead of (…)")

    def plain(self) -> Mapping[str, Any]:
        """As JSON values; equal settings give equal values (1 and 1.0 are the same number)."""
        return asdict(self) | {"k1": float(self.k1), "b": float(self.b)}


def libraries(settings: BM25Settings) -> Mapping[str, str]:
    """Versions of the libraries that decide the ranking; nothing is imported.

    Raises:
        UserError: One is not installed.
    """
    needed = ("bm25s",) if settings.stemmer == "none" else ("bm25s", "PyStemmer")
    return {name: _version(name) for name in needed}


def missing(distribution: str) -> UserError:
    """The one line for a library that is not installed."""
    return UserError(f"the bm25 retriever needs {distribution}: run `pip install {distribution}`")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise missing(distribution) from error
