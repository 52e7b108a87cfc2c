"""Questions, a library and an absent model for SmartRAG's warm-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragtrials.data import Example, Passage
from ragtrials.program import Completion, Generate, Hit, Score

# Of n = 0, 1, ... the even ones are known to the untrained model, and those that 3 divides are in the library.
EXAMPLES = [Example(f"q{n}", f"Where was Person{n} born?", ((f"Town{n}", f"Ville{n}"),)) for n in range(12)]
KNOWN = {e.id for e in EXAMPLES[::2]}
FOUND = {e.id for e in EXAMPLES[::3]}
LIBRARY = {f"Person{n}": f"Person{n} was born in Ville{n}." for n in range(0, 12, 3)}
COMPARED = Example("c", "Who was older, Ada Byron or Alan Turing?", (("Ada Byron",),))
SEVERAL = Example("s", "Where is Emporia?", (("Kansas", "KS"), ("Virginia",)))


class Library:
    """Finds what is said of a name in the query; else something of no use."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, texts: Mapping[str, str] = LIBRARY) -> None:
        self.texts = texts
        self.asked: list[str] = []

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        self.asked += queries
        return [self.found(query) for query in queries]

    def found(self, query: str) -> list[Hit]:
        named = [name for name in self.texts if name in query.split()] or ["Nobody"]
        return [Hit(Passage(name, name, self.texts.get(name, "It rains.")), 1.0) for name in named]


class Mute:
    """An engine that must not be asked."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        raise AssertionError

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        raise AssertionError
