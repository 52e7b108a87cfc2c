"""The rewriter's lines and the shares of the retrieval budget: spec §1.3, oracles 2 and 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._rewrites import Rewrites, parse_rewrites, quotas


def lines(count: int) -> str:
    return "\n".join("abcdefghijkl"[:count])


@pytest.mark.parametrize(
    ("count", "searched"),
    [(1, "a"), (2, "ab"), (3, "abc"), (4, "abcd"), (5, "abcd"), (8, "abcd"), (9, "q"), (12, "q")],
)
def test_of_too_many_lines_the_first_count_or_none(count: int, searched: str) -> None:
    found = parse_rewrites(lines(count), "q")
    assert found.queries == tuple(searched)
    assert len(found.lines) == count


def test_the_released_evaluation_never_gives_up() -> None:
    assert parse_rewrites(lines(12), "q", give_up=None).queries == tuple("abcd")


def test_the_limits_are_settings() -> None:
    assert parse_rewrites(lines(3), "q", most=2, give_up=3).queries == tuple("ab")
    assert parse_rewrites(lines(4), "q", most=2, give_up=3).queries == ("q",)


def test_blank_lines_are_dropped_or_empty_queries() -> None:
    text = " a \n\n\tb\r\n"
    assert parse_rewrites(text, "q") == Rewrites(("a", "b"), ("a", "b"))
    assert parse_rewrites(text, "q", blank="keep").queries == ("a", "", "b", "")


def test_blank_lines_count_as_the_rule_says() -> None:
    text = "\n\n".join("abcde")  # nine lines, five of which say something
    assert parse_rewrites(text, "q").queries == tuple("abcd")
    assert parse_rewrites(text, "q", blank="keep").queries == ("q",)


def test_without_a_line_the_question_is_searched() -> None:
    assert parse_rewrites(" \n\n", "q") == Rewrites((), ("q",))
    assert parse_rewrites("", "q", blank="keep") == Rewrites(("",), ("",))


@given(
    text=st.text(alphabet="ab \n\r\t") | st.text(),
    blank=st.sampled_from(["drop", "keep"]),
    most=st.integers(1, 6),
    give_up=st.none() | st.integers(1, 9),
)
def test_any_text_gives_one_to_most_queries(text: str, blank: str, most: int, give_up: int | None) -> None:
    found = parse_rewrites(text, "q", blank, most, give_up)
    assert 1 <= len(found.queries) <= most
    assert found.queries in (found.lines[:most], ("q",))
    assert blank == "keep" or all(found.lines)


@pytest.mark.parametrize("shares", [(10,), (5, 5), (4, 3, 3), (3, 3, 2, 2), (2, 2, 2, 2, 2)])
def test_quotas_for_ten_passages(shares: tuple[int, ...]) -> None:
    assert quotas(len(shares), 10) == shares


def test_quotas_for_fewer_passages_than_queries() -> None:
    assert quotas(4, 3) == (1, 1, 1, 0)
    assert quotas(2, 0) == (0, 0)


@given(queries=st.integers(1, 20), k=st.integers(0, 100))
def test_quotas_are_even_and_sum_to_k(queries: int, k: int) -> None:
    shares = quotas(queries, k)
    assert len(shares) == queries
    assert sum(shares) == k
    assert list(shares) == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] <= 1


@pytest.mark.parametrize(("queries", "k"), [(0, 10), (1, -1)])
def test_what_cannot_be_shared_is_an_error(queries: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be shared"):
        quotas(queries, k)
