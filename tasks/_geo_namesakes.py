"""Questions about names that several places share, in AmbigQA's shape: one answer slot for each reading."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragtrials.data import Example
from ragtrials.tasks import _geo_answers as answers
from ragtrials.tasks import _geo_questions as ask
from ragtrials.tasks._geo_draw import Draw, spread
from ragtrials.tasks._geo_places import City, World

MOST_READINGS = 5
"""So that a retriever can bring the passages of all readings among five."""

FRAMES = {
    "country": (
        "In which country is {name}?",
        "In which country is the town or city of {name}?",
        "Which country does {name} belong to?",
        "{name} is a town or city in which country?",
        "Where is {name}: in which country?",
        "What country is {name} in?",
    ),
    "US state": (
        "In which US state is {name}?",
        "In which state of the United States is {name}?",
        "Which US state does {name} belong to?",
        "{name} is a town or city in which US state?",
        "Where in the United States is {name}: in which state?",
    ),
}


@dataclass(frozen=True, slots=True)
class _Name:
    """A name with the places that the question may mean, by descending population."""

    relation: str
    readings: tuple[City, ...]

    @property
    def key(self) -> str:
        return f"namesakes {self.readings[0].entity}"

    @property
    def slots(self) -> tuple[answers.Aliases, ...]:
        answer_of = answers.country_of if self.relation == "country" else answers.state_of
        return tuple({answer_of(city)[0]: answer_of(city) for city in self.readings}.values())


def namesake_questions(everything: World, split: str, several: int, single: int) -> list[Example]:
    """At most `several` questions with two or more answers and `single` with one, one per name."""
    found: list[Example] = []
    names = [name for name in _names(everything, split) if len(name.readings) <= MOST_READINGS]
    for count, has_several in ((several, True), (single, False)):
        wanted = [name for name in names if (len(name.slots) > 1) is has_several]
        ordered = spread(wanted, lambda name: name.key, _stratum)
        found += ask.take(ordered, lambda name: _write(name, everything), count)
    return found


def _stratum(name: _Name) -> tuple[str, int]:
    return name.relation, ask.size_class(name.readings[0].population)


def _names(everything: World, split: str) -> Iterator[_Name]:
    by_name: dict[str, list[City]] = defaultdict(list)
    for city in ask.cities_of(split, everything):
        by_name[city.folded].append(city)
    for folded, cities in by_name.items():
        has_other_bearers = everything.bearers[folded] > len(cities)  # if only as an other name of theirs
        if not has_other_bearers and len({city.name for city in cities}) == 1:
            cities.sort(key=lambda city: (-city.population, city.id))
            yield _name(cities)


def _name(cities: Sequence[City]) -> _Name:
    """The name as a question about states, if it has American bearers and the draw wants it, or countries."""
    draw = Draw(f"geo name {cities[0].entity}")
    american = tuple(city for city in cities if city.country == "US")
    all_american = len(american) == len(cities)
    if american and draw.below(2) == 0 and (all_american or len({city.state for city in american}) > 1):
        return _Name("US state", american)
    if all_american and len({city.state for city in american}) > 1:
        return _Name("US state", american)
    return _Name("country", tuple(cities))


def _write(name: _Name, everything: World) -> Example | None:
    """The question, or None if it would give away an answer."""
    first = name.readings[0]
    question = Draw(f"geo {name.key}").pick(FRAMES[name.relation]).format(name=first.name)
    if any(ask.contains_name(question, alias) for slot in name.slots for alias in slot):
        return None
    meta = {
        "type": "several" if len(name.slots) > 1 else "single",
        "relation": name.relation,
        "readings": len(name.readings),
        "popularity": first.population,
        "entities": [first.entity],
    }
    return ask.example("geo_ambig", question, name.slots, name.readings, everything, meta)
