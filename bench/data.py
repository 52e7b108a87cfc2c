"""What is asked and what is known: passages, examples and corpora."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable unit of text. `title` may be empty; `id` is unique in its corpus."""

    id: str
    title: str
    text: str


def passage_id(title: str, text: str) -> str:
    """An id made from the content, so that it survives any change of file or order (16 hex digits)."""
    return hashlib.sha256(f"{title}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def passages_digest(passages: Iterable[Passage]) -> str:
    """SHA-256 over all ids, titles and texts in order (64 hex digits)."""
    sha = hashlib.sha256()
    for passage in passages:
        for part in (passage.id, passage.title, passage.text):
            encoded = part.encode("utf-8", "surrogatepass")
            sha.update(len(encoded).to_bytes(8, "little"))
            sha.update(encoded)
    return sha.hexdigest()


@dataclass(frozen=True, slots=True)
class Example:
    """One question with everything that is known about its answer.

    Attributes:
        id: The id of the published record, unique in its split.
        question: The question as published.
        answers: One group of aliases per slot. A question with one answer has one slot; AmbigQA's
            shape has one slot per reading. The first alias of a group is its canonical form.
        supporting: Ids of the gold passages in the task's corpus, if known.
        meta: What else the record says (type, level, popularity, ...). JSON values only.
    """

    id: str
    question: str
    answers: tuple[tuple[str, ...], ...]
    supporting: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The answer as a model should write it: canonical forms, joined by "; " over slots."""
        return "; ".join(group[0] for group in self.answers)

    @property
    def aliases(self) -> tuple[str, ...]:
        """All acceptable strings of all slots, in order, without repetition."""
        return tuple(dict.fromkeys(alias for group in self.answers for alias in group))


class Corpus:
    """A named, streamable collection of passages; never held in memory by this class.

    Args:
        name: What the leaderboard calls it, e.g. "hotpotqa-dev-pool".
        source: Called for a fresh iterator each time the passages are read.
        known_digest: The digest, or what gives it when it is asked for, where the source already knows
            it; otherwise it is computed by reading the corpus once.
    """

    def __init__(
        self,
        name: str,
        source: Callable[[], Iterable[Passage]],
        known_digest: str | Callable[[], str] | None = None,
    ) -> None:
        self.name = name
        self._source = source
        self._known_digest = known_digest

    def __iter__(self) -> Iterator[Passage]:
        return iter(self._source())

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all ids, titles and texts in order (64 hex digits)."""
        if self._known_digest is None:
            return passages_digest(self)
        return self._known_digest if isinstance(self._known_digest, str) else self._known_digest()
