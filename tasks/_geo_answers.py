"""The answers of the geo tasks with their aliases, canonical form (the one that passages use) first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_names import ascii_form, distinct, safe_aliases
from ragtrials.tasks._geo_places import City, Country, State
from ragtrials.tasks._geo_world import world

Aliases = tuple[str, ...]

_UNPRONOUNCEABLE = re.compile("EUR|USD|(?!RSD)[B-DF-HJ-NP-TV-XZ]{3}")
"""Currency codes that containment does not find by chance; ALL is found in "called", RSD in "Thursday"."""

_TELLING = 5
"""Letters from which the noun of a currency is an alias: "zloty" is, "rand" is found in "grand"."""


def country(land: Country) -> Aliases:
    """A country by its name."""
    return _countries()[land.name]


def country_of(city: City) -> Aliases:
    """The country that a city lies in. For the United Kingdom its nation is right as well."""
    land = world().country(city)
    nation = tables.UK_NATIONS.get(city.state) if land.iso == "GB" else None
    if nation is None:
        return country(land)
    if nation == tables.UK_NATIONS["NIR"]:  # not a part of Great Britain
        return (land.name, nation)
    return (*country(land), nation)


def state(place: State) -> Aliases:
    """A US state. Its abbreviation is no alias: two letters are found in too many words."""
    return (place.name,)


def state_of(city: City) -> Aliases:
    """The US state that a city lies in."""
    return state(world().states[city.state])


def capital(land: Country) -> Aliases:
    """The capital of a country."""
    return _capitals()[land.capital]


def currency(land: Country) -> Aliases:
    """The currency of a country."""
    return _currencies()[tables.CURRENCIES[land.currency]]


def continent(land: Country) -> Aliases:
    """The continent of a country."""
    return (land.continent, "Australia and Oceania") if land.continent == "Oceania" else (land.continent,)


def largest_of(place: Country | State) -> Aliases:
    """The most populous city of a country or state."""
    return distinct((place.largest, ascii_form(place.largest)))


def timezone_of(city: City) -> Aliases:
    """The time zone of a city, by its name in the tz database with or without underscores."""
    return tuple(dict.fromkeys((city.timezone, city.timezone.replace(" ", "_"))))


@lru_cache(maxsize=1)
def _countries() -> Mapping[str, Aliases]:
    lands = world().countries.values()
    return safe_aliases([(land.name, *_divided(tables.OTHER_NAMES.get(land.iso))) for land in lands])


@lru_cache(maxsize=1)
def _capitals() -> Mapping[str, Aliases]:
    lands = [land for land in world().countries.values() if land.capital]
    groups = {land.capital: (land.capital, *land.capital_other_names) for land in lands}
    return safe_aliases(list(groups.values()))


@lru_cache(maxsize=1)
def _currencies() -> Mapping[str, Aliases]:
    used = dict.fromkeys(land.currency for land in world().countries.values())
    groups = []
    for code in used:
        name = tables.CURRENCIES[code]
        group = [name, *_divided(tables.CURRENCY_OTHER_NAMES.get(code))]
        if _UNPRONOUNCEABLE.fullmatch(code):
            group.append(code)
        if len(name.split()[-1]) >= _TELLING:
            group.append(name.split()[-1])
        groups.append(group)
    return safe_aliases(groups)


def _divided(names: str | None) -> list[str]:
    return names.split("; ") if names else []
