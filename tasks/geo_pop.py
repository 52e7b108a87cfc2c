"""geo_pop: single facts about well-known and obscure places in PopQA's shape, made from GeoNames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from ragtrials.data import Corpus, Example
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _geo_passages
from ragtrials.tasks._geo_card import geo_card
from ragtrials.tasks._geo_facts import fact_questions
from ragtrials.tasks._geo_world import world

_MOST = {
    "train": {"country": 2000, "US state": 500, "time zone": 250},
    "dev": {"country": 110, "US state": 40, "time zone": 25},
    "test": {"country": 460, "US state": 170, "time zone": 90},
}
"""Questions of a relation at most; of the relations of countries, which are few, all are taken."""


class GeoPop(Task):
    """One fact each. `meta` has "relation", "subject", "popularity" (inhabitants), "wording", "entities"."""

    name: ClassVar[str] = "geo_pop"
    card: ClassVar[TaskCard] = geo_card(
        "geo_pop", {"train": 3027, "dev": 294, "test": 990}, ("squad_v1", "containment_v1")
    )

    def examples(self, split: str) -> Sequence[Example]:
        """The questions of a split, ordered by id."""
        if split not in self.card.splits:
            raise self.unknown_split(split)
        return _examples(split)

    def corpus(self) -> Corpus:
        """The passages of all places, shared by the geo tasks."""
        return _geo_passages.corpus()


@lru_cache(maxsize=3)
def _examples(split: str) -> tuple[Example, ...]:
    found = fact_questions(world(), split, _MOST[split])
    return tuple(sorted(found, key=lambda example: example.id))
