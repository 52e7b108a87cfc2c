"""The places of the geo tasks: which ones are in the corpus, and all facts that they are known for."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_distance import Landmark, landmarks
from ragtrials.tasks._geo_names import fold, is_plain, other_names, spellings
from ragtrials.tasks._geo_source import read_tables

LARGE = 100_000
"""Inhabitants from which a place is called a city, serves as a landmark, and is always in the corpus."""

_SMALLEST = 5_000
_ONE_IN = 8
_NO_LONGER = frozenset({"AN", "CS"})
_UNSETTLED = frozenset({"AQ", "BV", "GS", "HM", "IO", "TF", "UM"})
_ENGLISH = frozenset({"AU", "CA", "GB", "IE", "NZ", "US"})
_LEFT_OUT = _NO_LONGER | _UNSETTLED


@dataclass(frozen=True, slots=True, eq=False)
class City:
    """A populated place.

    `folded` is its name for comparisons, `state` a US state's code or a nation of the United Kingdom or
    empty, `rank` its place by population in its country.
    """

    id: int
    name: str
    folded: str
    country: str
    state: str
    population: int
    latitude: float
    longitude: float
    timezone: str
    other_names: tuple[str, ...]
    rank: int
    landmark: Landmark | None

    @property
    def entity(self) -> str:
        """What splits are made by: places that share a name are never in different splits."""
        return f"city {self.folded}"

    @property
    def key(self) -> str:
        """What tells it from all other places."""
        return f"city {self.id}"

    @property
    def kind(self) -> str:
        """What a sentence calls it."""
        return "city" if self.population >= LARGE else "town"


@dataclass(frozen=True, slots=True, eq=False)
class Country:
    """A country or dependent territory."""

    iso: str
    name: str
    continent: str
    capital: str
    capital_other_names: tuple[str, ...]
    largest: str
    population: int
    area: int
    currency: str
    languages: tuple[str, ...]
    neighbours: tuple[str, ...]
    phone: str
    tld: str

    @property
    def entity(self) -> str:
        """What splits are made by."""
        return self.key

    @property
    def key(self) -> str:
        """What tells it from all other places."""
        return f"country {self.iso}"

    @property
    def spoken(self) -> str:
        """The name as it stands within a sentence."""
        return f"the {self.name}" if self.iso in tables.ARTICLE else self.name

    @property
    def sovereign(self) -> bool:
        """Whether questions may treat it as a country."""
        return self.iso not in tables.TERRITORIES


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A state of the United States, or the District of Columbia.

    `places` counts its places of at least 5,000 inhabitants, `timezone` is where most of them lie.
    """

    code: str
    name: str
    counties: int
    largest: str
    places: int
    timezone: str

    @property
    def entity(self) -> str:
        """What splits are made by."""
        return self.key

    @property
    def key(self) -> str:
        """What tells it from all other places."""
        return f"state {self.code}"


Place: TypeAlias = City | Country | State


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """All places of the corpus, in its order, and how often names occur among all places GeoNames lists."""

    countries: Mapping[str, Country]
    states: Mapping[str, State]
    cities: tuple[City, ...]
    bearers: Mapping[str, int]
    regional_bearers: Mapping[tuple[str, str], int]

    def __iter__(self) -> Iterator[Place]:
        yield from self.countries.values()
        yield from self.states.values()
        yield from self.cities

    def is_unique(self, folded: str) -> bool:
        """Whether one place only bears the (folded) name, other names counted."""
        return self.bearers[folded] == 1

    def is_unique_in_region(self, city: City) -> bool:
        """Whether no other place of its country (in the United States: of its state) bears its name."""
        return self.regional_bearers[region_key(city.country, city.state), city.folded] == 1

    def country(self, city: City) -> Country:
        """The country that a city lies in."""
        return self.countries[city.country]


@lru_cache(maxsize=1)
def world() -> World:
    """The world as the pinned GeoNames data describe it.

    Raises:
        UserError: The data package is missing or another version.
    """
    with _collector_paused():
        return _build(read_tables())


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Millions of parsed records live for a second: Python's collector would walk them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _build(raw: Mapping[str, Any]) -> World:
    records = [r for r in raw["cities5000"].values() if r["population"] >= _SMALLEST and is_plain(r["name"])]
    records.sort(key=itemgetter("population"), reverse=True)
    by_country: dict[str, list[dict[str, Any]]] = {iso: [] for iso in raw["countries"]}
    for record in records:
        by_country[record["countrycode"]].append(record)
    folded = {record["geonameid"]: fold(record["name"]) for record in records}
    bearers = Counter(folded.values())
    regional = Counter(
        (region_key(record["countrycode"], record["admin1code"]), folded[record["geonameid"]])
        for record in records
    )
    cities = _cities(by_country, folded, bearers)
    countries = {
        iso: _country(record, by_country[iso])
        for iso, record in sorted(raw["countries"].items())
        if iso not in _LEFT_OUT
    }
    states = _states(raw, by_country["US"])
    bearers.update(fold(country.name) for country in countries.values())
    bearers.update(fold(state.name) for state in states.values())
    bearers.update(fold(other) for city in cities for other in city.other_names)
    return World(countries, states, cities, bearers, regional)


def region_key(country: str, state: str) -> str:
    """What a place is told from its namesakes by: its country, in the United States its state."""
    return f"US {state}" if country == "US" else country


def _cities(
    by_country: Mapping[str, list[dict[str, Any]]], folded: Mapping[int, str], names: Mapping[str, int]
) -> tuple[City, ...]:
    """Large places, places that share their name, and one in eight of the others, by GeoNames id."""
    found = []
    for records in by_country.values():
        ranks = {record["geonameid"]: rank for rank, record in enumerate(records, start=1)}
        chosen = [
            record
            for record in records
            if record["population"] >= LARGE
            or names[folded[record["geonameid"]]] > 1
            or record["geonameid"] % _ONE_IN == 0
        ]
        near = landmarks(chosen, [record for record in records if record["population"] >= LARGE])
        for record, landmark in zip(chosen, near, strict=True):
            found.append(_city(record, folded[record["geonameid"]], ranks[record["geonameid"]], landmark))
    return tuple(sorted(found, key=lambda city: city.id))


def _city(record: Mapping[str, Any], folded: str, rank: int, landmark: Landmark | None) -> City:
    return City(
        id=record["geonameid"],
        name=record["name"],
        folded=folded,
        country=record["countrycode"],
        state=record["admin1code"] if record["countrycode"] in ("US", "GB") else "",
        population=record["population"],
        latitude=record["latitude"],
        longitude=record["longitude"],
        timezone=record["timezone"].replace("_", " "),
        other_names=other_names(record["name"], record["alternatenames"], record["countrycode"] in _ENGLISH),
        rank=rank,
        landmark=landmark,
    )


def _country(record: Mapping[str, Any], cities: list[dict[str, Any]]) -> Country:
    iso = record["iso"]
    capital, capital_other_names = _capital(record, cities)
    languages = (tables.LANGUAGES.get(code.split("-")[0]) for code in record["languages"].split(","))
    return Country(
        iso=iso,
        name=tables.COUNTRY_NAMES.get(iso, record["name"]),
        continent=tables.CONTINENTS[record["continentcode"]],
        capital=capital,
        capital_other_names=capital_other_names,
        largest=cities[0]["name"] if cities else "",
        population=record["population"],
        area=record["areakm2"],
        currency=record["currencycode"],
        languages=tuple(dict.fromkeys(language for language in languages if language)),
        neighbours=tuple(code for code in record["neighbours"].split(",") if code and code not in _LEFT_OUT),
        phone=record["phone"] if record["phone"].isdigit() else "",
        tld=record["tld"].strip(),
    )


def _capital(record: Mapping[str, Any], cities: list[dict[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """The capital as its own record spells it, and its other names."""
    name = tables.CAPITALS.get(record["iso"], record["capital"].strip())
    own = next((city for city in cities if fold(city["name"]) == fold(name)), None)
    known = tables.CAPITAL_OTHER_NAMES.get(record["iso"])
    others = known.split("; ") if known else []
    if own is None:
        return name, tuple(others)
    return own["name"], (*others, name, *spellings(own["name"], own["alternatenames"]))


def _states(raw: Mapping[str, Any], cities: list[dict[str, Any]]) -> dict[str, State]:
    counties = Counter(county["state"] for county in raw["us_counties"])
    own: dict[str, list[dict[str, Any]]] = {code: [] for code in raw["us_states"]}
    for city in cities:
        own[city["admin1code"]].append(city)
    return {
        code: State(
            code=code,
            name=record["name"],
            counties=counties[code],
            largest=own[code][0]["name"],
            places=len(own[code]),
            timezone=Counter(c["timezone"] for c in own[code]).most_common(1)[0][0].replace("_", " "),
        )
        for code, record in sorted(raw["us_states"].items())
    }
