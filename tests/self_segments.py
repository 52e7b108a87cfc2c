"""Made-up segments of Self-RAG, for tests of its scores and its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from ragtrials.data import Passage
from ragtrials.methods.self_rag import WATCHED
from ragtrials.program import Completion, Hit, Mark

FLOOR = 1e-9
"""The probability of a watched token that nothing is said of."""


def said(
    *tokens: str, at: Mapping[int, Mapping[str, float]] | None = None, logprob: float = -0.2, first: int = 100
) -> Completion:
    """A completion of these tokens: watched ones are marks, all others are words of its text.

    Args:
        tokens: Words and reflection tokens.
        at: The probabilities of watched tokens by place; a watched token that is said has 1 where none is given.
        logprob: Of every token.
        first: Its ids count from here.
    """
    given = at or {}
    rows = []
    for place, token in enumerate(tokens):
        p = {token: 1.0} if token in WATCHED else {}
        rows.append(tuple(log({**p, **given.get(place, {})}.get(name, FLOOR)) for name in WATCHED))
    return Completion(
        " ".join(token for token in tokens if token not in WATCHED),
        tuple(range(first, first + len(tokens))),
        (1, 2, 3),
        (logprob,) * len(tokens),
        watched=tuple(rows),
        marks=tuple(Mark(place, token) for place, token in enumerate(tokens) if token in WATCHED),
    )


class Shelf:
    """Finds the same passages for every question."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, *titles: str) -> None:
        self.found = [Hit(Passage(title, title, f"Text of {title}."), 1.0) for title in titles]

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        return [self.found[:k] for _ in queries]
