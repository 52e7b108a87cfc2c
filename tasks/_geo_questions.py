"""What the question writers of the geo tasks share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from ragtrials.data import Example
from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_draw import SPLITS, Draw, split_of
from ragtrials.tasks._geo_names import fold
from ragtrials.tasks._geo_passages import passage
from ragtrials.tasks._geo_places import City, Place, World

T = TypeVar("T")

SIZE_CLASSES = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000)
"""Upper bounds of population, one more class above the last: questions are spread over these evenly."""

DISPUTED_ZONES = frozenset({"Europe/Simferopol"})
"""Time zones of places whose country is in dispute; no question asks about them."""


def example(
    task: str,
    question: str,
    answers: Sequence[Sequence[str]],
    places: Sequence[Place],
    everything: World,
    meta: Mapping[str, Any],
) -> Example:
    """An example whose supporting passages are those of `places`; its id is a hash of question and places.

    `meta` gains "entities": what the question is about and what split it was put into by. Its own wins.
    """
    content = "\n".join([question, *(place.key for place in places)])
    return Example(
        id=f"{task}-{hashlib.sha256(content.encode()).hexdigest()[:10]}",
        question=question,
        answers=tuple(tuple(group) for group in answers),
        supporting=tuple(passage(place, everything).id for place in places),
        meta={"entities": [place.entity for place in places], **meta},
    )


def take(candidates: Iterable[T], write: Callable[[T], Example | None], count: int) -> list[Example]:
    """The first `count` examples that come of the candidates; those that `write` refuses are passed over."""
    written = (write(candidate) for candidate in candidates)
    return list(islice((example for example in written if example is not None), count))


def size_class(population: int) -> int:
    """The index of the class in `SIZE_CLASSES` that a population falls into."""
    return sum(population >= bound for bound in SIZE_CLASSES)


@lru_cache(maxsize=len(SPLITS))
def cities_of(split: str, everything: World) -> tuple[City, ...]:
    """The cities of a split whose country is beyond dispute; no question asks about others."""
    return tuple(
        city
        for city in everything.cities
        if split_of(city.entity) == split
        and city.timezone not in DISPUTED_ZONES
        and everything.country(city).sovereign
    )


def unique_other_name(city: City, everything: World) -> str | None:
    """An other name of the place that nothing else in the world bears."""
    return next((name for name in city.other_names if everything.is_unique(fold(name))), None)


def region(city: City, everything: World) -> str:
    """The country, or for the United States the state, as it follows "in"."""
    return everything.states[city.state].name if city.country == "US" else everything.country(city).spoken


def contains_name(text: str, name: str) -> bool:
    """Whether the words of `name` stand in `text` one after the other, whatever case and accents."""
    return f" {fold(name)} " in f" {fold(text)} "


def called(city: City, draw: Draw) -> str:
    """The plain name, or "the town of" before it."""
    return draw.pick((city.name, city.name, f"the {city.kind} of {city.name}"))


def has_one_capital(iso: str) -> bool:
    """Whether sources agree on the capital."""
    return iso not in tables.SEVERAL_CAPITALS


def has_one_continent(iso: str) -> bool:
    """Whether sources agree on the continent."""
    return iso not in tables.SEVERAL_CONTINENTS
