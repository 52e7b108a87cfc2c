"""The agents' penalties with the paper's meaning and the released code's: spec §1.2, oracles 1, 2, 4 and 7."""

from __future__ import annotations

from typing import Any

import pytest

from ragtrials.errors import UserError
from ragtrials.methods._agent_penalties import OFFICIAL, PAPER, Penalties, unmarked
from ragtrials.methods._rewrites import parse_rewrites
from ragtrials.methods._selection import parse_selection

QUESTION = "Where?"


def words(count: int) -> str:
    return " ".join(["word"] * count)


def rewriter(text: str, question: str = QUESTION) -> tuple[float, float]:
    """The penalties of both presets, each with its own rule for blank lines."""
    paper = parse_rewrites(text, question)
    official = parse_rewrites(text, question, blank="keep")
    return PAPER.of_rewriter(paper), OFFICIAL.of_rewriter(official)


@pytest.mark.parametrize(
    ("lines", "paper"), [(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (5, -0.5), (8, -0.5), (9, -0.5)]
)
def test_many_lines_cost_something_in_the_paper_alone(lines: int, paper: float) -> None:
    assert rewriter("\n".join(["short"] * lines)) == (paper, 0.0)


def test_long_queries_cost_something_in_the_released_code_alone() -> None:
    assert rewriter("a" * 150 + "\n" + "b" * 150) == (0.0, 0.0)
    assert rewriter("a" * 150 + "\n" + "b" * 151) == (0.0, -0.5)


def test_only_what_is_searched_can_be_too_long() -> None:
    assert rewriter("\n".join(["a" * 75] * 8)) == (-0.5, 0.0)
    assert rewriter("\n".join(["a" * 75] * 9), question="q" * 301) == (-0.5, -0.5)


def test_both_rules_together_cost_no_more_than_one() -> None:
    both = Penalties(most_query_characters=10)
    assert both.of_rewriter(parse_rewrites("\n".join(["long query"] * 5), QUESTION)) == -0.5


def test_blank_lines_cost_nothing_unless_they_are_kept() -> None:
    text = "\n".join(["a", "", "b", "", "c"])
    assert PAPER.of_rewriter(parse_rewrites(text, QUESTION)) == 0.0
    assert PAPER.of_rewriter(parse_rewrites(text, QUESTION, blank="keep")) == -0.5


@pytest.mark.parametrize(
    ("text", "penalty"),
    [
        ("", 0.0),
        ("Document0,Document3,Document9", 0.0),
        ("Document0,Document0", -1.0),
        ("Document10", -1.0),
        ("Document0,,Document1,Document1, ", -1.0),  # several faults cost as much as one
    ],
)
def test_a_selection_is_well_formed_or_costs_one(text: str, penalty: float) -> None:
    selection = parse_selection(text, 10)
    assert PAPER.of_selector(selection) == OFFICIAL.of_selector(selection) == penalty


@pytest.mark.parametrize(
    ("answer", "paper", "official"),
    [
        ("", 0.0, 0.0),
        (words(30), 0.0, 0.0),
        (words(31), -0.5, -1.0),
        (f"**{words(30)}**", 0.0, 0.0),
        (f"** {words(30)} **", 0.0, 0.0),
    ],
)
def test_long_answers(answer: str, paper: float, official: float) -> None:
    assert PAPER.of_generator(answer) == paper
    assert OFFICIAL.of_generator(answer) == official


def test_the_marks_of_an_answer() -> None:
    assert unmarked("**Paris**") == "Paris"


def test_rewards_of_three_agents() -> None:  # oracle 7
    text, selection, answer = "\n".join(["query"] * 6), parse_selection("Document0,Document0", 10), words(31)

    def rewards(penalties: Penalties, blank: Any) -> list[float]:
        rewrites = parse_rewrites(text, QUESTION, blank)
        return [
            0.4 + penalties.of_rewriter(rewrites),
            0.4 + penalties.of_selector(selection),
            0.4 + penalties.of_generator(answer),
        ]

    assert rewards(PAPER, "drop") == pytest.approx([-0.1, -0.6, -0.1])
    assert rewards(OFFICIAL, "keep") == pytest.approx([0.4, -0.6, -0.6])


@pytest.mark.parametrize("name", ["rewriter", "selector", "generator"])
@pytest.mark.parametrize("value", [0.1, float("nan"), float("-inf")])
def test_a_penalty_takes_away(name: str, value: float) -> None:
    with pytest.raises(UserError, match=rf"^penalties\.{name} is .*: use a number that is 0 or less$"):
        Penalties(**{name: value})


@pytest.mark.parametrize("name", ["most_queries", "most_query_characters", "most_answer_words"])
def test_a_limit_is_at_least_one(name: str) -> None:
    with pytest.raises(UserError, match=rf"^penalties\.{name} is 0: use a number that is at least 1$"):
        Penalties(**{name: 0})
    assert Penalties(**{name: 1}) != Penalties()
