"""What SmartRAG's answers and actions earn. Oracles 1 to 17 of specs/smart_rag.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._smart_actions import ANSWER, SEARCH, Tag
from ragtrials.methods._smart_profiles import PROFILES
from ragtrials.methods._smart_rewards import correctness, episode_rewards
from ragtrials.metrics import normalise, score
from ragtrials.registry import TASKS

# Answers (1 to 8) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Quick, brown-fox!", "quick brownfox"),
        ("A", ""),
        ("an apple a day", "apple day"),
        ("U.S.", "us"),
        ("Žarko Petan", "žarko petan"),
        ("theater", "theater"),
    ],
)
def test_normal_forms(text: str, normal: str) -> None:
    assert normalise(text) == normal


MEASURED = [
    ("The Beatles", ["Beatles"], 1, 1),
    ("twenty-one", ["twenty one"], 0, 0),
    ("U.S.A.", ["USA"], 1, 1),
    ("1,234", ["1234"], 1, 1),
    ("John Quincy Adams", ["John Adams"], 0, 0.8),
    ("New York City", ["New York"], 0, 0.8),
    ("paris paris", ["Paris"], 0, 2 / 3),
    ("Adams", ["John Adams", "Adams"], 1, 1),  # the second alias matches
    ("John Adams", ["Adams", "John Quincy Adams"], 0, 0.8),
    ("", ["x"], 0, 0),
    ("A", ["A"], 1, 0),
    ("the", ["A"], 1, 0),  # the trap of articles
    ("B", ["B"], 1, 1),
    ("john adams", ["John Adams"], 1, 1),
    ("Cadillac", ["C"], 0, 0),
    ("Yes", ["y"], 0, 0),
]


@pytest.mark.parametrize(("answer", "aliases", "em", "f1"), MEASURED)
def test_an_answer_earns_em_and_f1_over_all_aliases(
    answer: str, aliases: list[str], em: float, f1: float
) -> None:
    scores = score("squad_v1", answer, aliases)
    assert scores == pytest.approx({"em": em, "f1": f1})
    assert correctness(scores, "auto", choosing=False) == pytest.approx(em + f1)
    assert correctness(scores, "em_f1", choosing=False) == pytest.approx(em + f1)
    assert correctness(scores, "em_f1", choosing=True) == pytest.approx(em + f1)


def test_a_gold_that_is_a_string_is_one_alias_not_its_letters() -> None:
    def earned(answer: str, gold: Any) -> float:
        return correctness(score("squad_v1", answer, gold), "auto", choosing=False)

    assert earned("Paris", "Paris") == 2.0
    assert earned("P", "Paris") == 0.0
    assert earned("Paris", ["Paris"]) == 2.0


@pytest.mark.parametrize("measure", ["auto", "em"])
def test_between_choices_em_alone_counts(measure: Any) -> None:
    for choice in ("A", "C"):  # of an article F1 would make 0
        assert correctness(score("squad_v1", choice, [choice]), measure, choosing=True) == 1.0
    assert correctness(score("squad_v1", "not enough", ["NOT ENOUGH INFO"]), measure, choosing=True) == 0.0


def test_em_alone_may_be_asked_for_everywhere() -> None:
    scores = score("squad_v1", "New York City", ["New York"])
    assert correctness(scores, "em", choosing=False) == 0.0
    assert correctness(scores, "auto", choosing=False) == pytest.approx(0.8)


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - {"fever"}))
def test_no_adapter_makes_letters_of_an_answer(name: str, tmp_path: Path) -> None:
    # The released data of HotpotQA have "C" for "Cadillac": `answer[0]` of a string.
    layout = LAYOUTS[name]
    write_split(tmp_path, name, layout.reported, [layout.record(n) for n in range(3)])
    examples = TASKS.load(name)(tmp_path).examples(layout.reported)
    assert examples
    for example in examples:
        assert all(len(max(group, key=len)) > 1 for group in example.answers), example


# Episodes (9 to 17) -------------------------------------------------------------------------------------


def earned(tags: Sequence[Tag | None], correct: float, **changes: float) -> tuple[float, ...]:
    return episode_rewards(tags, correct, **{"alpha": 0.2, "malformed": -1.0} | changes)


EPISODES: list[tuple[list[Tag | None], float, list[float]]] = [
    ([ANSWER], 2.0, [2.0]),
    ([ANSWER], 0.0, [0.0]),
    ([SEARCH, ANSWER], 2.0, [-0.2, 2.0]),
    ([SEARCH, ANSWER], 0.0, [-0.2, 0.0]),
    ([SEARCH, SEARCH, ANSWER], 2.0, [-0.2, -0.2, 2.0]),
    ([SEARCH, SEARCH, ANSWER], 0.8, [-0.2, -0.2, 0.8]),
    ([None], 2.0, [-1.0]),  # whatever its text would be worth
    ([SEARCH, None], 2.0, [-0.2, -1.0]),
    ([ANSWER], 1.0, [1.0]),  # a choice
    ([SEARCH, ANSWER], 1.0, [-0.2, 1.0]),
]
SUMS = [2.0, 0.0, 1.8, -0.2, 1.6, 0.4, -1.0, -1.2, 1.0, 0.8]


@pytest.mark.parametrize(("episode", "total"), list(zip(EPISODES, SUMS, strict=True)))
def test_an_episode_s_rewards(episode: tuple[list[Tag | None], float, list[float]], total: float) -> None:
    tags, correct, rewards = episode
    found = earned(tags, correct)
    assert found == tuple(rewards)
    assert sum(found) == pytest.approx(total)


def test_costs_are_settings() -> None:
    assert earned([SEARCH, ANSWER], 2.0, alpha=0.0) == (0.0, 2.0)
    assert earned([SEARCH, None], 2.0, alpha=-0.5, malformed=-2.0) == (0.5, -2.0)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 2))
def test_a_search_pays_if_it_makes_the_answer_likelier_by_half_its_cost(
    searched: float, direct: float, alpha: float
) -> None:
    def expected(tags: list[Tag | None], right: float) -> float:
        good, bad = (sum(earned(tags, correct, alpha=alpha)) for correct in (2.0, 0.0))
        return right * good + (1 - right) * bad

    gain = expected([SEARCH, ANSWER], searched) - expected([ANSWER], direct)
    assert gain == pytest.approx(2 * (searched - direct) - alpha, abs=1e-9)


def test_break_even_at_the_paper_s_cost_is_ten_points() -> None:
    alpha = PROFILES["paper"].alpha
    assert (alpha, PROFILES["paper"].malformed) == (0.2, -1.0)
    for gain, pays in ((0.11, True), (0.09, False)):
        with_search = (0.5 + gain) * sum(earned([SEARCH, ANSWER], 2.0)) + (0.5 - gain) * -alpha
        assert (with_search > 0.5 * 2.0) is pays
