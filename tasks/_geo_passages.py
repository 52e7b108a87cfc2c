"""One short passage per place: several facts, in sentences and an order that are drawn for each place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from ragtrials.data import Corpus, Passage, passage_id
from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks import _geo_templates as say
from ragtrials.tasks._geo_draw import Draw
from ragtrials.tasks._geo_places import City, Country, Place, State, World
from ragtrials.tasks._geo_world import world

CORPUS_NAME = "geo-v1"
MOST_WORDS = 60

Wordings: TypeAlias = Sequence[str]

_MOST_LISTED = 5
_TOP_RANK = 25
_TROPIC, _POLAR_CIRCLE = 23.44, 66.56


def corpus() -> Corpus:
    """The passages of all places, written while they are read."""
    return Corpus(CORPUS_NAME, _passages)


def _passages() -> Iterator[Passage]:
    everything = world()
    return (_write(place, everything) for place in everything)


@lru_cache(maxsize=4096)
def passage(place: Place, everything: World) -> Passage:
    """The passage about a place; its title is the place's name, which other places may share."""
    return _write(place, everything)


def _write(place: Place, everything: World) -> Passage:
    text = _text(place, everything)
    return Passage(passage_id(place.name, text), place.name, text)


def _text(place: Place, everything: World) -> str:
    draw = Draw(f"geo passage {place.key}")
    if isinstance(place, City):
        first, needed, more = _city(place, everything, draw)
    elif isinstance(place, Country):
        first, needed, more = _country(place, everything, draw)
    else:
        first, needed, more = _state(place, draw)
    words = len(first.split()) + sum(len(sentence.split()) for sentence in needed)
    for sentence in draw.order(more):
        if words + len(sentence.split()) <= MOST_WORDS:
            needed.append(sentence)
            words += len(sentence.split())
    return " ".join([first, *draw.order(needed)])


def _city(city: City, everything: World, draw: Draw) -> tuple[str, list[str], list[str]]:
    """The opening, the sentences that questions rely on, and those that are added while there is room."""
    country = everything.country(city)
    state = everything.states[city.state].name if country.iso == "US" else tables.UK_NATIONS.get(city.state)
    facts: dict[str, object] = {
        "name": city.name,
        "kind": city.kind,
        "kinds": "cities" if city.kind == "city" else "towns",
        "where": f"{state}, {country.name}" if state else country.spoken,
        "where_reversed": f"{country.spoken} ({state})" if state else country.spoken,
        "country": country.spoken,
        "population": f"{city.population:,}",
        "latitude": degrees(city.latitude, "N", "S"),
        "longitude": degrees(city.longitude, "E", "W"),
        "timezone": city.timezone,
        "others": " or ".join(city.other_names),
        "zone": _zone(city.latitude),
        "rank": city.rank,
        "rank_less": city.rank - 1,
        "ordinal": _ordinal(city.rank),
    }
    opening = draw.pick(say.CITY_OPENING)
    needed: list[Wordings] = [say.CITY_POSITION, say.CITY_TIME]
    if "{population}" not in opening:
        needed.append(say.CITY_POPULATION)
    if city.other_names:
        needed.append(say.CITY_OTHER_NAMES)
    more: list[Wordings] = []
    if city.landmark:
        near = city.landmark
        facts |= {"landmark": near.name, "km": near.km, "direction": near.direction}
        more.append(say.CITY_LANDMARK)
    if 1 < city.rank <= _TOP_RANK:
        more.append(say.CITY_RANK)
    if not more or not city.other_names:
        more.append(say.CITY_ZONE)
    return _said(opening, needed, more, facts, draw)


def _country(country: Country, everything: World, draw: Draw) -> tuple[str, list[str], list[str]]:
    listed = draw.order(country.neighbours)[:_MOST_LISTED]
    neighbours = [everything.countries[iso].spoken for iso in listed]
    several = country.name.endswith("Islands")
    facts: dict[str, object] = {
        "name": country.spoken,
        "is_": "are" if several else "is",
        "belong": "belong" if several else "belongs",
        "s": "" if several else "s",
        "a_land": "a country" if country.sovereign else "a territory",
        "continent": country.continent,
        "capital": country.capital,
        "currency": tables.CURRENCIES[country.currency],
        "code": country.currency,
        "population": f"{country.population:,}",
        "area": f"{country.area:,}",
        "largest": country.largest,
        "neighbours": _listed(neighbours, "and"),
        "languages": _listed(country.languages[:_MOST_LISTED], "and"),
        "phone": country.phone,
        "tld": country.tld,
    }
    needed: list[Wordings] = [
        say.COUNTRY_CAPITAL_AND_CURRENCY if country.capital else say.COUNTRY_CURRENCY,
        say.COUNTRY_SIZE,
    ]
    more: list[Wordings] = []
    if country.largest:
        needed.append(say.COUNTRY_LARGEST)
    if len(country.neighbours) == 1:
        needed.append(say.COUNTRY_ONLY_NEIGHBOUR)
    elif neighbours:
        more.append(say.COUNTRY_NEIGHBOURS)
    if country.languages:
        more.append(say.COUNTRY_LANGUAGES)
    if country.phone and country.tld:
        more.append(say.COUNTRY_CODES)
    return _said(draw.pick(say.COUNTRY_OPENING), needed, more, facts, draw)


def _state(state: State, draw: Draw) -> tuple[str, list[str], list[str]]:
    facts: dict[str, object] = {
        "name": state.name,
        "a_state": "a state" if state.code != "DC" else "the federal district",
        "code": state.code,
        "largest": state.largest,
        "counties": f"{state.counties} counties or their equivalents",
        "places": state.places,
        "timezone": state.timezone,
    }
    more: list[Wordings] = (
        [say.STATE_PLACES, say.STATE_COUNTIES] if state.counties > 1 else [say.STATE_PLACES]
    )
    return _said(draw.pick(say.STATE_OPENING), [say.STATE_LARGEST, say.STATE_TIME], more, facts, draw)


def _said(
    opening: str,
    needed: Sequence[Wordings],
    more: Sequence[Wordings],
    facts: dict[str, object],
    draw: Draw,
) -> tuple[str, list[str], list[str]]:
    """The opening and one drawn wording of each fact."""
    return (
        capitalised(opening.format_map(facts)),
        [capitalised(draw.pick(wordings).format_map(facts)) for wordings in needed],
        [capitalised(draw.pick(wordings).format_map(facts)) for wordings in more],
    )


def capitalised(sentence: str) -> str:
    """The sentence with "the Gambia" at its beginning made "The Gambia"."""
    return "T" + sentence[1:] if sentence.startswith("the ") else sentence


def degrees(value: float, positive: str, negative: str) -> str:
    """A coordinate for people: "45.76° N"."""
    return f"{abs(value):.2f}° {positive if value >= 0 else negative}"


def _zone(latitude: float) -> str:
    """The belt of the earth that a latitude lies in."""
    if abs(latitude) < _TROPIC:
        return f"in the tropics, {'north' if latitude >= 0 else 'south'} of the equator"
    if latitude < 0:
        return "south of the Tropic of Capricorn"
    if latitude > _POLAR_CIRCLE:
        return "north of the Arctic Circle"
    return "between the Tropic of Cancer and the Arctic Circle"


def _listed(names: Sequence[str], last: str) -> str:
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
