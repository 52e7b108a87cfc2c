"""Breakdowns: how questions are grouped, what is averaged, and what is refused."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any
from xml.etree import ElementTree

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recording import save

from ragtrials.breakdown import UNKNOWN, Breakdown, Group, breakdown, find_runs, groups_of
from ragtrials.breakdown_plots import draw_breakdown
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.results import PREDICTIONS_FILE, RECORD_FILE
from ragtrials.signature import digest

F1 = [1.0, 0.5, 0.0, 0.5, 1.0, 1.0]


def examples(values: list[Any]) -> list[Example]:
    """Questions q0, q1, ... as `recording.save` records them, and one more that no run was asked."""
    made = [
        Example(f"q{n}", f"What is {n}?", (("x",),), meta={} if value is None else {"popularity": value})
        for n, value in enumerate(values)
    ]
    return [*made, Example("other", "What else?", (("x",),), meta={"rare": 1})]


def recorded(results: Path, method: str, values: list[Any], f1: list[float] = F1) -> Path:
    """The record of a run on the first of these examples, whose mean EM is that of its rows too."""
    folder = save(results, method, f1, examples=digest(examples(values)[:-1]))
    record = json.loads((folder / RECORD_FILE).read_text())
    record["scores"]["em"] = {"mean": fmean(float(v == 1) for v in f1), "low": 0.0, "high": 1.0}
    (folder / RECORD_FILE).write_text(json.dumps(record))
    return folder


def broken(results: Path, values: list[Any], bins: int = 10) -> Breakdown:
    folder = recorded(results, "vanilla_rag", values)
    return breakdown(find_runs([str(folder)], results), examples(values), "popularity", ["f1", "em"], bins)


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
    assert [group.label for group in groups] == ["1 to 2", "5", "8 to 9"]


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
    view = broken(tmp_path, [10, 20, 30, 40, 50, 60], bins=2)
    assert [group.ids for group in view.groups] == [("q0", "q1", "q2"), ("q3", "q4", "q5")]
    f1, em = view.series
    assert [value.mean for value in f1.values] == pytest.approx([0.5, 5 / 6])
    assert [value.mean for value in em.values] == pytest.approx([1 / 3, 2 / 3])
    assert all(value.low <= value.mean <= value.high for value in f1.values)
    # The ranks of F1 are 5, 2.5, 1, 2.5, 5, 5: a sum of products of 4.5, and of squares of 17.5 and 15.
    assert f1.correlation is not None
    assert f1.correlation.rho == pytest.approx(4.5 / (17.5 * 15) ** 0.5)
    assert view == broken(tmp_path, [10, 20, 30, 40, 50, 60], bins=2)


def test_words_have_no_correlation_and_the_unnamed_stand_last(tmp_path: Path) -> None:
    view = broken(tmp_path, ["b", "a", None, "a", "b", "a"])
    assert [(group.label, len(group.ids)) for group in view.groups] == [("a", 3), ("b", 2), (UNKNOWN, 1)]
    assert [series.correlation for series in view.series] == [None, None]


def test_the_unknown_have_no_part_in_a_correlation(tmp_path: Path) -> None:
    view = broken(tmp_path, [None, 20, 30, 40, 50, None], bins=2)
    assert [group.label for group in view.groups] == ["20 to 30", "40 to 50", UNKNOWN]
    # F1 of q1 to q4 is 0.5, 0, 0.5, 1: ranks 2.5, 1, 2.5, 4 over 1 to 4.
    correlation = view.series[0].correlation
    assert correlation is not None
    assert correlation.rho == pytest.approx(3.0 / (5 * 4.5) ** 0.5)


def test_a_field_that_is_always_null_has_one_group_and_no_correlation(tmp_path: Path) -> None:
    asked = [Example(f"q{n}", "What?", (("x",),), meta={"clue": None}) for n in range(6)]
    folder = save(tmp_path, "vanilla_rag", F1, examples=digest(asked))
    view = breakdown(find_runs([str(folder)], tmp_path), asked, "clue", ["f1"], 10)
    assert [(group.label, len(group.ids)) for group in view.groups] == [(UNKNOWN, 6)]
    assert view.series[0].correlation is None


def test_runs_stand_side_by_side_by_folder_or_id(tmp_path: Path) -> None:
    values = [1, 2, 3, 4, 5, 6]
    first, second = recorded(tmp_path, "vanilla_rag", values), recorded(tmp_path, "sft", values, F1[::-1])
    # What is named twice, as by a pattern that matches two suites, counts once.
    names = [str(first), second.name.rpartition("-")[2][:6], str(second)]
    view = breakdown(find_runs(names, tmp_path), examples(values), "popularity", ["f1", "f1"], 2)
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


@pytest.mark.parametrize(
    ("name", "told"),
    [("nothing", "'nothing' is no record's folder, and no id below"), ("", "is the beginning of .*, ")],
)
def test_a_run_that_is_not_there_or_not_unique_is_refused(tmp_path: Path, name: str, told: str) -> None:
    save(tmp_path, "a", F1)
    save(tmp_path, "b", F1)
    with pytest.raises(UserError, match=told):
        find_runs([name], tmp_path)


@pytest.mark.parametrize(
    ("values", "field", "column", "told"),
    [
        ([1, 2, 3, 4, 5, 6], "popularty", "f1", r"no question has a field 'popularty'.*'popularity'"),
        (
            [1, 2, 3, 4, 5, 6],
            "rare",
            "f1",
            "no question has a field 'rare'",
        ),  # only one that was not asked has
        ([1, 2, 3, 4, 5, 6], "popularity", "f2", r"no column 'f2'.*'f1'"),
        ([[1], 2, 3, 4, 5, 6], "popularity", "f1", "holds lists or tables"),
    ],
)
def test_wrong_fields_and_columns_get_one_line(
    tmp_path: Path, values: list[Any], field: str, column: str, told: str
) -> None:
    folder = recorded(tmp_path, "a", values)
    with pytest.raises(UserError, match=told):
        breakdown(find_runs([str(folder)], tmp_path), examples(values), field, [column], 2)


@pytest.mark.parametrize(("here", "known"), [([1, 2, 3, 4, 5, 7], "6 of 6"), ([1, 2, 3], "3 of 6")])
def test_data_that_have_changed_since_the_run_are_refused(
    tmp_path: Path, here: list[int], known: str
) -> None:
    folder = recorded(tmp_path, "a", [1, 2, 3, 4, 5, 6])
    with pytest.raises(UserError, match=rf"has other data here than run .*{known} ids are known"):
        breakdown(find_runs([str(folder)], tmp_path), examples(here), "popularity", ["f1"], 2)


def test_predictions_that_do_not_give_the_record_are_refused(tmp_path: Path) -> None:
    values = [1, 2, 3, 4, 5, 6]
    first, second = recorded(tmp_path, "a", values), recorded(tmp_path, "b", values)
    frame = polars.read_parquet(second / PREDICTIONS_FILE)
    for change, told in (
        (frame[[0, 1, 3]], "its f1 does not give the mean in run.json"),  # though their mean is the same
        (frame.with_columns(f1=polars.lit(1.0)), "its f1 does not give the mean in run.json"),
        (frame.with_columns(f1=polars.lit(None)), "f1 is not known of every question"),
    ):
        change.write_parquet(second / PREDICTIONS_FILE)
        with pytest.raises(UserError, match=told):
            breakdown(
                find_runs([str(first), str(second)], tmp_path),
                examples(values),
                "popularity",
                ["f1"],
                2,
            )


def joined(svg: bytes) -> list[int]:
    """How many means each line goes through: no other path of the figure is as thick as they are."""
    paths = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")
    lines = [path for path in paths if "stroke-width: 1.2;" in path.get("style", "")]
    return [len(re.findall("[ML]", line.get("d", ""))) for line in lines]


def test_a_figure_joins_numbers_and_not_words_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    numbers = broken(tmp_path / "numbers", [1, 2, 3, 4, 5, None], bins=2)
    words = broken(tmp_path / "words", ["b", "a", "c", "a", "b", None])
    drawn = draw_breakdown(numbers, "geo_hop by popularity")
    assert drawn == draw_breakdown(numbers, "geo_hop by popularity")
    texts = [text for text in ElementTree.fromstring(drawn).itertext() if text.strip()]
    for text in ("geo_hop by popularity", "popularity", "f1 (%)", "em (%)", "vanilla_rag", "1 to 2", UNKNOWN):
        assert text in texts
    # Two panels, and in each a line through the two groups of numbers, not to that of the unknown.
    assert joined(drawn) == [2, 2]
    assert joined(draw_breakdown(words, "words")) == []
