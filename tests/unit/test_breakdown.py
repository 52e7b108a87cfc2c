"""Breakdowns: how questions are grouped, what is averaged, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import save

from ragtrials.breakdown import UNKNOWN, Group, breakdown, find_runs, groups_of
from ragtrials.data import Example
from ragtrials.errors import UserError

F1 = [1.0, 0.5, 0.0, 0.5, 1.0, 1.0]


def examples(values: list[Any], field: str = "popularity") -> list[Example]:
    """Questions q0, q1, ... as `recording.save` records them, and one more that no run was asked."""
    made = [
        Example(f"q{n}", f"What is {n}?", (("x",),), meta={} if value is None else {field: value})
        for n, value in enumerate(values)
    ]
    return [*made, Example("other", "What else?", (("x",),), meta={"rare": 1})]


def broken(runs: Path, values: list[Any], bins: int = 10, field: str = "popularity") -> Any:
    return breakdown(find_runs([str(runs)], runs), examples(values), field, ["f1", "em"], bins)


def test_numbers_are_cut_into_parts_of_equal_size() -> None:
    values = {f"q{n}": (n * 37) % 100 for n in range(100)}
    groups = groups_of(values, 10)
    assert [len(group.ids) for group in groups] == [10] * 10
    assert [group.label for group in groups][:2] == ["0 to 9", "10 to 19"]
    assert {values[i] for i in groups[3].ids} == set(range(30, 40))


def test_equal_numbers_are_never_cut_apart() -> None:
    values = {f"q{n}": value for n, value in enumerate([1, 2, 5, 5, 5, 5, 5, 5, 8, 9])}
    groups = groups_of(values, 3)
    assert [sorted(values[i] for i in group.ids) for group in groups] == [[1, 2], [5] * 6, [8, 9]]


@given(st.lists(st.one_of(st.none(), st.integers(-3, 30), st.floats(0, 1)), min_size=1), st.integers(2, 12))
def test_every_question_is_in_one_group_and_groups_are_in_order(values: list[Any], bins: int) -> None:
    by_id = {f"q{n}": value for n, value in enumerate(values)}
    groups = groups_of(by_id, bins)
    assert sorted(i for group in groups for i in group.ids) == sorted(by_id)
    known = [[by_id[i] for i in group.ids] for group in groups if group.label != UNKNOWN]
    assert len(known) <= max(bins, 1)
    assert all(max(a) < min(b) for a, b in pairwise(known))


def test_words_and_few_numbers_have_a_group_for_each_value() -> None:
    assert groups_of({"a": "x", "b": "w", "c": "x", "d": None}, 2) == [
        Group("w", ("b",)),
        Group("x", ("a", "c")),
        Group(UNKNOWN, ("d",)),
    ]
    assert [group.label for group in groups_of({"a": 3, "b": 1000}, 2)] == ["3", "1,000"]
    assert [group.label for group in groups_of({"a": True, "b": False}, 2)] == ["False", "True"]


def test_means_intervals_and_correlations(tmp_path: Path) -> None:
    folder = save(tmp_path, "vanilla_rag", F1)
    view = broken(folder, [10, 20, 30, 40, 50, 60], bins=2)
    assert [group.ids for group in view.groups] == [("q0", "q1", "q2"), ("q3", "q4", "q5")]
    f1, em = view.series
    assert [value.mean for value in f1.values] == pytest.approx([0.5, 5 / 6])
    assert [value.mean for value in em.values] == pytest.approx([1 / 3, 2 / 3])
    assert all(value.low <= value.mean <= value.high for value in f1.values)
    # The ranks of F1 are 5, 2.5, 1, 2.5, 5, 5: a sum of products of 4.5, and of squares of 17.5 and 15.
    assert f1.correlation is not None
    assert f1.correlation.rho == pytest.approx(4.5 / (17.5 * 15) ** 0.5)
    assert view == broken(folder, [10, 20, 30, 40, 50, 60], bins=2)


def test_words_have_no_correlation_and_the_unnamed_stand_last(tmp_path: Path) -> None:
    view = broken(save(tmp_path, "vanilla_rag", F1), ["b", "a", None, "a", "b", "a"])
    assert [(group.label, len(group.ids)) for group in view.groups] == [("a", 3), ("b", 2), (UNKNOWN, 1)]
    assert [series.correlation for series in view.series] == [None, None]


def test_runs_stand_side_by_side_by_folder_or_id(tmp_path: Path) -> None:
    first = save(tmp_path, "vanilla_rag", F1)
    second = save(tmp_path, "sft", F1[::-1])
    runs = find_runs([str(first), second.name.rpartition("-")[2][:6]], tmp_path)
    view = breakdown(runs, examples([1, 2, 3, 4, 5, 6]), "popularity", ["f1"], 2)
    assert [series.run for series in view.series] == ["vanilla_rag", "sft"]
    assert [v.mean for v in view.series[0].values] == [v.mean for v in view.series[1].values][::-1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"task": "geo_pop"}, "is of task geo_pop, run .* of geo_hop"),
        ({"split": "dev"}, "is of split dev"),
        ({"examples": "f" * 10}, "of other questions"),
    ],
)
def test_runs_of_other_questions_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    folders = [save(tmp_path, "a", F1), save(tmp_path, "b", F1, **changes)]
    with pytest.raises(UserError, match=told):
        find_runs([str(folder) for folder in folders], tmp_path)


@pytest.mark.parametrize("name", ["nothing", ""])
def test_a_run_that_is_not_there_or_not_unique_is_refused(tmp_path: Path, name: str) -> None:
    save(tmp_path, "a", F1)
    save(tmp_path, "b", F1)
    with pytest.raises(UserError, match=r"is (no record's folder, and no id below|the beginning of)"):
        find_runs([name] if name else ["x" * 0], tmp_path)


def test_wrong_fields_columns_and_data_get_one_line(tmp_path: Path) -> None:
    folder = save(tmp_path, "a", F1)
    runs, asked = find_runs([str(folder)], tmp_path), examples([1, 2, 3, 4, 5, 6])
    for field, column, found, told in (
        ("popularty", "f1", asked, r"no question has a field 'popularty'.*'popularity'"),
        ("rare", "f1", asked, "no question has a field 'rare'"),  # that of a question that was not asked
        ("popularity", "f2", asked, r"no column 'f2'.*'f1'"),
        ("popularity", "f1", asked[:3], "3 questions of the runs are not in the task's data.*q3"),
        ("popularity", "f1", examples([[1], 2, 3, 4, 5, 6]), "holds lists or tables"),
    ):
        with pytest.raises(UserError, match=told):
            breakdown(runs, found, field, [column], 2)
