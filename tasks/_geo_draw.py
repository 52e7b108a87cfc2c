"""Choices that look random and never change: everything is drawn from a SHA-256 of a stable key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

SPLITS = ("train", "dev", "test")
_DEV_FROM, _TEST_FROM = 0.52, 0.70


def fraction(key: str) -> float:
    """A number in [0, 1) that depends on the key alone."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big") / 2**48


@lru_cache(maxsize=2**15)
def split_of(entity: str) -> str:
    """The one split that may ask about an entity (see `Place.entity`), the same one in all geo tasks."""
    position = fraction(f"geo split {entity}")
    return "train" if position < _DEV_FROM else "dev" if position < _TEST_FROM else "test"


def common_split(entities: Iterable[str]) -> str | None:
    """The split that all the entities belong to; None where they differ: such a question is not asked."""
    splits = {split_of(entity) for entity in entities}
    return splits.pop() if len(splits) == 1 else None


class Draw:
    """A stream of choices, fixed by its key."""

    def __init__(self, key: str) -> None:
        self._hash = hashlib.sha256(key.encode())
        self._bits = int.from_bytes(self._hash.digest(), "big")

    def below(self, bound: int) -> int:
        """An integer in [0, bound), for bounds far below 2**64."""
        if self._bits < 2**64:
            self._hash.update(b"more")
            self._bits = int.from_bytes(self._hash.digest(), "big")
        self._bits, choice = divmod(self._bits, bound)
        return choice

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def order(self, items: Sequence[T]) -> list[T]:
        """All items in a drawn order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in items]


def spread(candidates: Iterable[T], key: Callable[[T], str], stratum: Callable[[T], Hashable]) -> list[T]:
    """All candidates in an order whose every beginning is as even over the strata as these allow.

    Within that the hash of their keys decides; keys must be unique.
    """
    numbered = enumerate(candidates)
    drawn = sorted((fraction(key(candidate)), number, candidate) for number, candidate in numbered)
    taken: Counter[Hashable] = Counter()
    ranked = []
    for position, number, candidate in drawn:
        group = stratum(candidate)
        ranked.append((taken[group], position, number, candidate))
        taken[group] += 1
    return [candidate for *_, candidate in sorted(ranked)]
