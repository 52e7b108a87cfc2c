"""Comparison questions: which of two places has more of something, or whether they share something."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ragtrials.data import Example
from ragtrials.tasks import _geo_answers as answers
from ragtrials.tasks import _geo_questions as ask
from ragtrials.tasks._geo_draw import Draw, split_of
from ragtrials.tasks._geo_names import ascii_form, distinct, fold
from ragtrials.tasks._geo_places import City, Country, World

_MORE = (
    "Which has more inhabitants, {a} or {b}?",
    "Do more people live in {a} or in {b}?",
    "Which of the two is more populous: {a} or {b}?",
    "Between {a} and {b}, which one has the larger population?",
)
_FEWER = (
    "Which has fewer inhabitants, {a} or {b}?",
    "Which of the two is less populous: {a} or {b}?",
    "Between {a} and {b}, where do fewer people live?",
)
_NORTH = (
    "Which lies farther north, {a} or {b}?",
    "Is {a} or {b} closer to the North Pole?",
    "Between {a} and {b}, which one has the more northerly position?",
)
_SOUTH = (
    "Which lies farther south, {a} or {b}?",
    "Is {a} or {b} closer to the South Pole?",
    "Of {a} and {b}, which one is nearer to the southern end of the globe?",
)
_LARGER = (
    "Which is larger in area, {a} or {b}?",
    "Which covers more square kilometres, {a} or {b}?",
    "Between {a} and {b}, which one has more land?",
)
_SAME_COUNTRY = (
    "Are {a} and {b} in the same country?",
    "Do {a} and {b} belong to the same country?",
    "Is the country of {a} also that of {b}?",
)
_SAME_CURRENCY = (
    "Do {a} and {b} use the same currency?",
    "Is the money of {a} also that of {b}?",
    "Can one pay with the same currency in {a} and in {b}?",
)
_SAME_CONTINENT = (
    "Are {a} and {b} on the same continent?",
    "Do {a} and {b} belong to the same continent?",
)


_PEOPLE, _LATITUDE = "What is the population of {a}?", "What is the latitude of {a}?"
_AREA, _CURRENCY = "What is the area of {a}?", "What is the currency of {a}?"
_COUNTRY, _CONTINENT = "In which country is {a}?", "On which continent is {a}?"


@dataclass(frozen=True, slots=True)
class _Mention:
    """A place and how a question names it: by its name, an other name, or its name and region."""

    place: Any
    text: str
    wording: Literal["name", "other name", "name and region"]


@dataclass(frozen=True, slots=True)
class _Relation:
    """What is compared.

    Attributes:
        name: Its name.
        wordings: The ways to ask.
        of: Whether cities or countries are compared.
        part: The same question about one place alone.
        value: What is compared of each place.
        least: "Which" questions: the second value must be beyond the first by this factor or difference.
            None for yes/no questions, which ask whether the values are equal.
        by: Whether `least` is a factor or a difference.
        wants: The larger or the smaller value.
    """

    name: str
    wordings: tuple[str, ...]
    of: Literal["cities", "countries"]
    part: str
    value: Callable[[Any], Any]
    least: float | None = None
    by: Literal["factor", "difference"] = "factor"
    wants: Literal["larger", "smaller"] = "larger"


_MORE_PEOPLE = _Relation("population", _MORE, "cities", _PEOPLE, lambda p: p.population, 1.25)
_IN_ONE_COUNTRY = _Relation("same country", _SAME_COUNTRY, "cities", _COUNTRY, lambda p: p.country)
_RELATIONS = (
    _MORE_PEOPLE,
    _MORE_PEOPLE,
    _Relation("population", _FEWER, "cities", _PEOPLE, lambda p: p.population, 1.25, wants="smaller"),
    _Relation("latitude", _NORTH, "cities", _LATITUDE, lambda p: p.latitude, 1.0, "difference"),
    _Relation("latitude", _SOUTH, "cities", _LATITUDE, lambda p: p.latitude, 1.0, "difference", "smaller"),
    _IN_ONE_COUNTRY,
    _IN_ONE_COUNTRY,
    _Relation("population", _MORE, "countries", _PEOPLE, lambda p: p.population, 1.25),
    _Relation("area", _LARGER, "countries", _AREA, lambda p: p.area, 1.25),
    _Relation("same currency", _SAME_CURRENCY, "countries", _CURRENCY, lambda p: p.currency),
    _Relation("same continent", _SAME_CONTINENT, "countries", _CONTINENT, lambda p: p.continent),
)
"""A pair of places gets one of these by chance: what stands twice is asked twice as often."""

_ATTEMPTS = 60

_Pool: TypeAlias = Mapping[Any, Sequence[_Mention]]


def comparison_questions(everything: World, split: str, count: int) -> list[Example]:
    """`count` comparison questions of a split, over places of all sizes alike, no pair of places twice."""
    places = _Places(everything, split)
    found: dict[frozenset[str], Example] = {}
    for number in range(count * _ATTEMPTS):
        draw = Draw(f"geo comparison {split} {number}")
        relation = draw.pick(_RELATIONS)
        pair = places.pair(relation, draw)
        gold = _answer(relation, *pair)
        if gold is not None:
            written = _write(relation, pair, gold, everything, draw)
            found.setdefault(frozenset(written.supporting), written)
        if len(found) == count:
            break
    return list(found.values())


class _Places:
    """The places of a split that a question can name, by what a pair is drawn by."""

    def __init__(self, everything: World, split: str) -> None:
        self._by_size: dict[int, list[_Mention]] = defaultdict(list)
        self._unique_by_country: dict[str, list[_Mention]] = defaultdict(list)
        self._by_continent: dict[str, list[_Mention]] = defaultdict(list)
        for city in ask.cities_of(split, everything):
            for mention in _mentions(city, everything):
                self._by_size[ask.size_class(city.population)].append(mention)
                if mention.wording != "name and region":
                    self._unique_by_country[city.country].append(mention)
        for land in everything.countries.values():
            if split_of(land.entity) == split and land.sovereign and ask.has_one_continent(land.iso):
                self._by_continent[land.continent].append(_Mention(land, land.spoken, "name"))

    def pair(self, relation: _Relation, draw: Draw) -> tuple[_Mention, _Mention]:
        """Two places, often near in size or place, so that as many answers are "yes" as "no"."""
        alike = draw.below(5) < 3
        if relation.of == "countries":
            return self._two(self._by_continent, draw, alike)
        if relation.name == "same country":
            return self._two(self._unique_by_country, draw, alike)
        return self._two(self._by_size, draw, alike)

    @staticmethod
    def _two(pool: _Pool, draw: Draw, alike: bool) -> tuple[_Mention, _Mention]:
        groups = list(pool)
        first = draw.pick(groups)
        return draw.pick(pool[first]), draw.pick(pool[first if alike else draw.pick(groups)])


def _mentions(city: City, everything: World) -> Iterator[_Mention]:
    """The one way in which questions name this place; none if no short name tells it from all others."""
    draw = Draw(f"geo mention {city.key}")
    other = ask.unique_other_name(city, everything)
    if other and draw.below(3) > 0:
        yield _Mention(city, other, "other name")
    elif everything.is_unique(city.folded):
        yield _Mention(city, ask.called(city, draw), "name")
    elif everything.is_unique_in_region(city):
        yield _Mention(city, f"{city.name} in {ask.region(city, everything)}", "name and region")


def _answer(relation: _Relation, a: _Mention, b: _Mention) -> Sequence[str] | None:
    """The aliases of the answer; None where the pair does not make a fair question."""
    names = [fold(mention.place.name) for mention in (a, b)]
    if names[0] in names[1] or names[1] in names[0]:
        return None
    values = [relation.value(mention.place) for mention in (a, b)]
    if relation.least is None:
        return ("yes",) if values[0] == values[1] else ("no",)
    smaller, larger = sorted((0, 1), key=values.__getitem__)
    by_factor, least = relation.by == "factor", relation.least
    if values[larger] < (values[smaller] * least if by_factor else values[smaller] + least):
        return None
    chosen = (a, b)[larger if relation.wants == "larger" else smaller]
    if isinstance(chosen.place, Country):
        return answers.country(chosen.place)
    named = [chosen.text] if chosen.wording == "other name" else []
    return distinct([*named, chosen.place.name, ascii_form(chosen.place.name), chosen.text])


def _write(
    relation: _Relation, pair: tuple[_Mention, _Mention], gold: Sequence[str], everything: World, draw: Draw
) -> Example:
    a, b = pair
    return ask.example(
        "geo_hop",
        draw.pick(relation.wordings).format(a=a.text, b=b.text),
        [gold],
        [a.place, b.place],
        everything,
        {
            "type": "comparison",
            "level": "easy" if {a.wording, b.wording} == {"name"} else "medium",
            "relation": relation.name,
            "wording": "; ".join(sorted({a.wording, b.wording})),
            "places": [place.text for place in pair],
            "parts": [relation.part.format(a=place.text) for place in pair],
            "popularity": min(a.place.population, b.place.population),
        },
    )
