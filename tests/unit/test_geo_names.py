"""Cleaning names, drawing and spreading."""

from __future__ import annotations

from collections import Counter

import pytest

from ragtrials.tasks._geo_draw import Draw, common_split, fraction, split_of, spread
from ragtrials.tasks._geo_names import distinct, fold, is_plain, other_names, safe_aliases, spellings


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("São Paulo", "sao paulo"),
        ("Łódź", "lodz"),
        ("N'Djamena", "n djamena"),
        ("Saint John’s", "saint john s"),
        ("Fort-de-France", "fort de france"),
        ("Weißenfels", "weissenfels"),
        ("Nuku‘alofa", "nuku alofa"),
    ],
)
def test_folding_takes_off_case_accents_and_punctuation(name: str, folded: str) -> None:
    assert fold(name) == folded


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("St. Louis", True),
        ("Fort-de-France", True),
        ("Zürich (Kreis 11) / Oerlikon", False),
        ("Ct 0003", False),
        ("Mianzhu, Deyang, Sichuan", False),
        ("6th of October City", False),
    ],
)
def test_names_that_sentences_can_use(name: str, plain: bool) -> None:
    assert is_plain(name) is plain


def test_other_names_are_truly_other_latin_names_in_title_case() -> None:
    recorded = [
        "BJS",
        "Beijing",
        "Beijing Shi",
        "Pei-ching",
        "Peking",
        "Pekin",
        "pei jing",
        "Пекин",
        "北京",
        "Pechino",
    ]
    assert other_names("Beijing", recorded) == ("Pekin", "Pechino")


def test_other_names_leave_out_spellings_of_the_same_sounds() -> None:
    assert other_names("Chicago", ["Chikago", "Čikago", "Cicago", "Windy City"]) == ("Windy City",)
    assert other_names("Southgate", ["Sautgejt"]) == ()
    assert other_names("Anywhere", [""]) == ()


def test_spellings_are_near_the_name() -> None:
    assert spellings("Bucharest", ["Bucarest", "Bukarest", "Bükreş", "OTP", "Bucharest"]) == (
        "Bucarest",
        "Bukarest",
    )


def test_distinct_ignores_case_and_punctuation() -> None:
    assert distinct(["Basse-Terre", "Basse Terre", "basseterre", "Other", "..."]) == ("Basse-Terre", "Other")


def test_unsafe_aliases_fall_out() -> None:
    safe = safe_aliases(
        [
            ("United States", "US", "USA", "Union"),
            ("Russia", "Russian Federation", "Union"),
            ("Niger",),
            ("Nigeria", "Niger State"),
        ]
    )
    assert safe["United States"] == ("United States", "USA")  # "us" in "russia"; "Union" names two
    assert safe["Russia"] == ("Russia", "Russian Federation")
    assert safe["Niger"] == ("Niger",)
    assert safe["Nigeria"] == ("Nigeria", "Niger State")


def test_alias_groups_are_limited_and_keep_the_canonical_name_first() -> None:
    safe = safe_aliases([("Name", *(f"Alias{letter}" for letter in "abcdefghijk"))])
    assert len(safe["Name"]) == 8
    assert safe["Name"][0] == "Name"


def test_a_draw_is_fixed_by_its_key_and_uses_all_options() -> None:
    draws = [Draw("key"), Draw("key"), Draw("other")]
    streams = [[draw.below(10) for _ in range(500)] for draw in draws]
    assert streams[0] == streams[1] != streams[2]
    assert all(30 <= count <= 70 for count in Counter(streams[0]).values())
    assert sorted(draws[0].order("abcdef")) == list("abcdef")


def test_splits_have_their_shares_and_do_not_mix() -> None:
    shares = Counter(split_of(f"city {number}") for number in range(10_000))
    assert shares["train"] == pytest.approx(5_200, abs=200)
    assert shares["dev"] == pytest.approx(1_800, abs=200)
    same = [f"city {n}" for n in range(50) if split_of(f"city {n}") == "test"][:2]
    other = next(f"city {n}" for n in range(50) if split_of(f"city {n}") == "train")
    assert common_split(same) == "test"
    assert common_split([*same, other]) is None
    assert 0 <= fraction("x") < 1


def test_a_spread_is_even_over_strata_from_its_beginning() -> None:
    items = [f"common {n}" for n in range(100)] + [f"rare {n}" for n in range(5)]
    ordered = spread(items, key=str, stratum=lambda item: item.split()[0])
    assert sorted(ordered) == sorted(items)
    assert sum(item.startswith("rare") for item in ordered[:10]) == 5
    assert ordered == spread(reversed(items), key=str, stratum=lambda item: item.split()[0])
