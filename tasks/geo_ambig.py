"""geo_ambig: names that several places share, in AmbigQA's shape, made from GeoNames."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from ragtrials.data import Corpus, Example
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _geo_passages
from ragtrials.tasks._geo_card import geo_card
from ragtrials.tasks._geo_namesakes import namesake_questions
from ragtrials.tasks._geo_world import world
from ragtrials.tasks._several import answers_in, score_annotations

_SEVERAL = {"train": 840, "dev": 225, "test": 375}
_SINGLE = {"train": 280, "dev": 75, "test": 125}


class GeoAmbig(Task):
    """A question has a slot for each country or US state in which a place of that name lies.

    `meta` has "type" (several or single), "relation", "readings" (places of that name), "popularity" and
    "entities".
    """

    name: ClassVar[str] = "geo_ambig"
    several_answers: ClassVar[bool] = True
    card: ClassVar[TaskCard] = geo_card(
        "geo_ambig", {"train": 1120, "dev": 300, "test": 500}, ("ambigqa_v1", "containment_v1")
    )

    def examples(self, split: str) -> Sequence[Example]:
        """The questions of a split, ordered by id."""
        if split not in self.card.splits:
            raise self.unknown_split(split)
        return _examples(split)

    def corpus(self) -> Corpus:
        """The passages of all places, shared by the geo tasks."""
        return _geo_passages.corpus()

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Scores of a prediction that gives its answers one after the other, divided by ";" or line breaks.

        Returns:
            f1: AmbigQA's F1 of answers. em: 1 where f1 is 1. acc: the share of slots that the prediction
            contains an alias of.
        """
        return self.score_several(answers_in(prediction), example)

    def score_several(self, answers: Sequence[str], example: Example) -> dict[str, float]:
        """As `score`, for a list of answers."""
        return score_annotations(answers, [example.answers])


@lru_cache(maxsize=3)
def _examples(split: str) -> tuple[Example, ...]:
    found = namesake_questions(world(), split, _SEVERAL[split], _SINGLE[split])
    return tuple(sorted(found, key=lambda example: example.id))
