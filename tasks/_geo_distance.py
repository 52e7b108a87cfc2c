"""How far and in which direction the nearest large city lies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_EARTH_KM = 6371.0
_NEAREST, _FARTHEST = 3, 300
_POINTS = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")


@dataclass(frozen=True, slots=True)
class Landmark:
    """A place lies `km` kilometres to the `direction` of the city `name`."""

    name: str
    km: int
    direction: str


def landmarks(
    places: Sequence[Mapping[str, Any]], large: Sequence[Mapping[str, Any]]
) -> list[Landmark | None]:
    """The nearest of the large cities for each place; None where it is beyond 300 km or within 3 km.

    Args:
        places: Records of GeoNames.
        large: Records of the large cities of the same country. A place is not its own landmark.
    """
    if not places or not large:
        return [None] * len(places)
    closeness = _directions(places) @ _directions(large).T
    own = {record["geonameid"]: column for column, record in enumerate(large)}
    for row, place in enumerate(places):
        if place["geonameid"] in own:
            closeness[row, own[place["geonameid"]]] = -np.inf
    nearest = closeness.argmax(axis=1).tolist()
    return [_landmark(place, large[column]) for place, column in zip(places, nearest, strict=True)]


def _directions(places: Sequence[Mapping[str, Any]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Unit vectors from the centre of the earth, shape [places, 3]: the larger their product, the closer."""
    latitude = np.radians([place["latitude"] for place in places])
    longitude = np.radians([place["longitude"] for place in places])
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _landmark(place: Mapping[str, Any], city: Mapping[str, Any]) -> Landmark | None:
    lat, lat_city = math.radians(place["latitude"]), math.radians(city["latitude"])
    right = math.radians((place["longitude"] - city["longitude"] + 180) % 360 - 180)
    half_chord = math.sin((lat - lat_city) / 2) ** 2
    half_chord += math.cos(lat) * math.cos(lat_city) * math.sin(right / 2) ** 2
    km = 2 * _EARTH_KM * math.asin(math.sqrt(half_chord))
    if not _NEAREST <= km <= _FARTHEST or city["name"] == place["name"]:
        return None
    angle = math.degrees(math.atan2(right * math.cos(lat_city), lat - lat_city))
    return Landmark(city["name"], round(km), _POINTS[round(angle / 45) % 8])
