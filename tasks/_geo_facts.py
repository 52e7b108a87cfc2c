"""Single facts in PopQA's shape: one subject, one relation, one answer, one passage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragtrials.data import Example
from ragtrials.tasks import _geo_answers as answers
from ragtrials.tasks import _geo_questions as ask
from ragtrials.tasks._geo_draw import Draw, common_split, split_of, spread
from ragtrials.tasks._geo_names import fold
from ragtrials.tasks._geo_places import City, Country, World

FRAMES = {
    "country": (
        "In which country is {subject}?",
        "What country does {subject} belong to?",
        "Which country would you visit to see {subject}?",
        "{subject} is a place in which country?",
        "Where in the world is {subject}: in which country?",
    ),
    "US state": (
        "In which US state is {subject}?",
        "Which state of the United States does {subject} belong to?",
        "{subject} is a place in which US state?",
        "What US state would you travel to for a visit to {subject}?",
    ),
    "time zone": (
        "Which time zone does {subject} use?",
        "What is the time zone of {subject}?",
        "By which time zone do people in {subject} set their clocks?",
    ),
    "capital": (
        "What is the capital of {subject}?",
        "Which city is the capital of {subject}?",
        "Name the capital of {subject}.",
        "What do you call the capital of {subject}?",
    ),
    "capital of": (
        "Of which country is {subject} the capital?",
        "{subject} is the capital of which country?",
        "Which country has {subject} as its capital?",
    ),
    "continent": (
        "On which continent is {subject}?",
        "Which continent does {subject} belong to?",
        "What continent is {subject} a part of?",
    ),
    "currency": (
        "What is the currency of {subject}?",
        "Which currency is used in {subject}?",
        "What money do people in {subject} pay with?",
    ),
    "largest city": (
        "What is the most populous city of {subject}?",
        "Which is the largest city in {subject}?",
        "Which city in {subject} has the most inhabitants?",
    ),
}
_ANSWERS: Mapping[str, Callable[[Any], answers.Aliases]] = {
    "country": answers.country_of,
    "US state": answers.state_of,
    "time zone": answers.timezone_of,
    "capital": answers.capital,
    "capital of": answers.country,
    "continent": answers.continent,
    "currency": answers.currency,
    "largest city": answers.largest_of,
}
_OTHER_NAME_ONE_IN = 3


@dataclass(frozen=True, slots=True)
class _Fact:
    """What is asked: the `relation` of a place that the question calls `subject`."""

    relation: str
    place: City | Country
    subject: str
    wording: str
    entities: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"fact {self.relation} {self.place.key}"


def fact_questions(everything: World, split: str, most: Mapping[str, int]) -> list[Example]:
    """The questions of a split: of each relation at most `most` (all, where it is not named).

    Well-known and obscure places occur alike: questions of a relation are spread over classes of population.
    """
    by_relation: dict[str, list[_Fact]] = defaultdict(list)
    for fact in (*_about_cities(everything, split), *_about_countries(everything, split)):
        by_relation[fact.relation].append(fact)
    found: list[Example] = []
    for relation, facts in by_relation.items():
        ordered = spread(facts, lambda fact: fact.key, lambda fact: ask.size_class(fact.place.population))
        count = most.get(relation, len(facts))
        found += ask.take(ordered, lambda fact: _write(fact, everything), count)
    return found


def _about_cities(everything: World, split: str) -> Iterator[_Fact]:
    """One fact about each place that a name tells from all others."""
    for city in ask.cities_of(split, everything):
        draw = Draw(f"geo fact {city.key}")
        other = ask.unique_other_name(city, everything)
        if other and draw.below(_OTHER_NAME_ONE_IN) == 0:
            subject, wording = other, "other name"
        elif everything.is_unique(city.folded):
            subject, wording = ask.called(city, draw), "name"
        else:
            continue
        yield _Fact(_city_relation(city, draw), city, subject, wording, (city.entity,))


def _city_relation(city: City, draw: Draw) -> str:
    if city.country == "US" and draw.below(3) > 0:
        return "US state"
    return "time zone" if draw.below(5) == 0 else "country"


def _about_countries(everything: World, split: str) -> Iterator[_Fact]:
    for land in everything.countries.values():
        if not land.sovereign:
            continue
        asked = {
            "currency": True,
            "capital": bool(land.capital) and ask.has_one_capital(land.iso),
            "continent": ask.has_one_continent(land.iso),
            "largest city": bool(land.largest),
        }
        if split_of(land.entity) == split:
            for relation in (relation for relation, is_asked in asked.items() if is_asked):
                yield _Fact(relation, land, land.spoken, "name", (land.entity,))
        both = (land.entity, f"city {fold(land.capital)}")  # the capital is the subject, the country is gold
        if asked["capital"] and common_split(both) == split:
            yield _Fact("capital of", land, land.capital, "name", both)


def _write(fact: _Fact, everything: World) -> Example | None:
    """The question, or None if it would give away its answer."""
    question = Draw(f"geo {fact.key}").pick(FRAMES[fact.relation]).format(subject=fact.subject)
    question = question[0].upper() + question[1:]
    gold = _ANSWERS[fact.relation](fact.place)
    if any(ask.contains_name(question, alias) for alias in gold):
        return None
    meta = {
        "relation": fact.relation,
        "subject": fact.subject,
        "wording": fact.wording,
        "popularity": fact.place.population,
        "entities": list(fact.entities),
    }
    return ask.example("geo_pop", question, [gold], [fact.place], everything, meta)
