"""Builds the world of the geo tasks from GeoNames' tables: which places are in, and what is known of them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from typing import Any

from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_distance import Landmark, landmarks
from ragtrials.tasks._geo_names import fold, is_plain, other_names, spellings
from ragtrials.tasks._geo_places import LARGE, City, Country, State, World, region_key
from ragtrials.tasks._geo_source import read_tables

_SMALLEST = 5_000
_ONE_IN = 8
_ENGLISH = frozenset({"AU", "CA", "GB", "IE", "NZ", "US"})
_NO_LONGER = frozenset({"AN", "CS"})
_UNSETTLED = frozenset({"AQ", "BV", "GS", "HM", "IO", "TF", "UM"})
_LEFT_OUT = _NO_LONGER | _UNSETTLED


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
        neighbours=tuple(
            code
            for code in record["neighbours"].split(",")
            if code and code not in _LEFT_OUT and (iso, code) not in tables.NO_BORDER
        ),
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
