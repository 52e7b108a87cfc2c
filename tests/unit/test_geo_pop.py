"""geo_pop: single facts, spread over relations and popularity."""

from __future__ import annotations

from collections import Counter

import pytest

from ragtrials.data import Example
from ragtrials.tasks import _geo_answers as answers
from ragtrials.tasks._geo_draw import SPLITS
from ragtrials.tasks._geo_questions import size_class
from ragtrials.tasks._geo_world import world
from ragtrials.tasks.geo_pop import GeoPop

RELATIONS = {
    "country",
    "US state",
    "time zone",
    "capital",
    "capital of",
    "continent",
    "currency",
    "largest city",
}


def all_examples() -> list[Example]:
    return [example for split in SPLITS for example in GeoPop(None).examples(split)]


def test_every_relation_occurs_in_every_split() -> None:
    for split in SPLITS:
        assert {example.meta["relation"] for example in GeoPop(None).examples(split)} == RELATIONS


def test_a_question_has_one_answer_and_one_gold_passage() -> None:
    for example in all_examples():
        assert len(example.answers) == len(example.supporting) == 1
        assert isinstance(example.meta["popularity"], int)
        assert example.meta["subject"].casefold() in example.question.casefold()


def test_places_of_all_sizes_are_asked_about_alike() -> None:
    for split in ("train", "test"):
        classes = Counter(
            size_class(example.meta["popularity"])
            for example in GeoPop(None).examples(split)
            if example.meta["relation"] == "country"
        )
        largest, most = classes.pop(max(classes)), max(classes.values())
        assert largest > 0
        assert min(classes.values()) > most / 4


def gold(question_part: str, relation: str) -> tuple[str, ...]:
    (found,) = {
        example.answers[0]
        for example in all_examples()
        if example.meta["subject"] == question_part and example.meta["relation"] == relation
    }
    return found


@pytest.mark.parametrize(
    ("land", "capital", "currency", "continent"),
    [
        ("Japan", "Tokyo", "Japanese yen", "Asia"),
        ("Peru", "Lima", "Peruvian sol", "South America"),
        ("Kenya", "Nairobi", "Kenyan shilling", "Africa"),
        ("the Philippines", "Manila", "Philippine peso", "Asia"),
        ("Australia", "Canberra", "Australian dollar", "Oceania"),
    ],
)
def test_facts_about_countries(land: str, capital: str, currency: str, continent: str) -> None:
    assert gold(land, "capital")[0] == capital
    assert gold(land, "currency")[0] == currency
    assert gold(land, "continent")[0] == continent


def test_no_question_rests_on_a_disputed_fact() -> None:
    asked = {(example.meta["subject"], example.meta["relation"]) for example in all_examples()}
    assert ("Israel", "capital") not in asked
    assert ("South Africa", "capital") not in asked
    assert ("Russia", "continent") not in asked
    assert ("Turkey", "continent") not in asked
    assert ("Greenland", "currency") not in asked


def test_aliases_credit_what_is_right_and_nothing_else() -> None:
    lands = {land.name: land for land in world().countries.values()}
    states = answers.country(lands["United States"])
    assert states[0] == "United States"
    assert {"United States of America", "USA"} <= {*states}
    assert "US" not in states  # containment would find it in "Russia"
    assert "UK" not in answers.country(lands["United Kingdom"])  # and this one in "Ukraine"
    assert "zloty" in answers.currency(lands["Poland"])
    assert "franc" not in answers.currency(lands["Switzerland"])
    assert "ALL" not in answers.currency(lands["Albania"])  # "called"
    assert "Kiev" in answers.capital(lands["Ukraine"])
    assert "Bogota" in answers.capital(lands["Colombia"])


def test_a_place_in_the_united_kingdom_may_be_said_to_be_in_its_nation() -> None:
    cities = {city.name: city for city in world().cities if city.country == "GB"}
    assert {"United Kingdom", "Britain", "Scotland"} <= {*answers.country_of(cities["Glasgow"])}
    assert answers.country_of(cities["Belfast"]) == ("United Kingdom", "Northern Ireland")


def test_no_alias_is_part_of_another_canonical_answer() -> None:
    lands = [land for land in world().countries.values() if land.capital]
    for answer_of in (answers.country, answers.capital, answers.currency):
        groups = {answer_of(land)[0]: answer_of(land) for land in lands}
        for canonical, group in groups.items():
            for other in groups:
                if other != canonical:
                    assert not any(alias.casefold() in other.casefold() for alias in group[1:]), (
                        group,
                        other,
                    )
