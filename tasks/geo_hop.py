"""geo_hop: questions over two passages in HotpotQA's shape, made from GeoNames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from ragtrials.data import Corpus, Example
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _geo_passages
from ragtrials.tasks._geo_bridge import bridge_questions
from ragtrials.tasks._geo_card import geo_card
from ragtrials.tasks._geo_compare import comparison_questions
from ragtrials.tasks._geo_world import world

_BRIDGE = {"train": 1800, "dev": 180, "test": 360}
_COMPARISON = {"train": 1200, "dev": 120, "test": 240}


class GeoHop(Task):
    """Bridge questions need a city's passage and then its country's; comparison questions name two places.

    `meta` has "type" (bridge or comparison), "level" (easy, medium, hard), "relation", "wording",
    "popularity" and "entities"; bridge questions "clue", comparison questions "places" (as the question
    names them) and "parts" (one question for each).
    """

    name: ClassVar[str] = "geo_hop"
    card: ClassVar[TaskCard] = geo_card(
        "geo_hop", {"train": 3000, "dev": 300, "test": 600}, ("hotpotqa_v1", "containment_v1")
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
    found = [
        *bridge_questions(world(), split, _BRIDGE[split]),
        *comparison_questions(world(), split, _COMPARISON[split]),
    ]
    return tuple(sorted(found, key=lambda example: example.id))
