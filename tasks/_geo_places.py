"""The kinds of places of the geo tasks, with all facts that passages and questions use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_distance import Landmark

LARGE = 100_000
"""Inhabitants from which a place is called a city, serves as a landmark, and is always in the corpus."""


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
    """A country or dependent territory.

    `currency` and `neighbours` are codes, what is not known is empty. The most populous city is `largest`.
    """

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


def region_key(country: str, state: str) -> str:
    """What a place is told from its namesakes by: its country, in the United States its state."""
    return f"US {state}" if country == "US" else country
