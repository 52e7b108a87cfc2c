"""Score against cost as SVG files: what they show, whose they are, and whether they are of today's points."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from recording import save

from ragtrials.cost_plots import draw_costs
from ragtrials.costs import CostView, cost_view
from ragtrials.errors import UserError
from ragtrials.leaderboard import Table, standings
from ragtrials.leaderboard_page import render
from ragtrials.plot_files import mark, mark_of, orphans, outdated, plot_names, plots_folder

SVG = "{http://www.w3.org/2000/svg}"
NAME = "geo-hop-tiny-bm25.svg"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    save(folder, "vanilla_rag", [1.0, 0.0, 0.5, 1.0], cost={"prompt_tokens": 400.0})
    save(folder, "no_retrieval", [0.0, 0.0, 0.5, 1.0], retriever=None)
    return folder


def only(results: Path) -> tuple[Table, CostView]:
    [table], problems = standings(results)
    assert not problems
    view = cost_view(table)
    assert view is not None
    return table, view


def drawn(results: Path) -> bytes:
    pytest.importorskip("matplotlib")
    table, view = only(results)
    return draw_costs(view, "a title", "F1", mark(table, view))


def stand_in(results: Path, name: str, identifier: str) -> Path:
    """A file with the metadata of a plot, for what needs no picture."""
    path = plots_folder(results) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<svg><dc:identifier>{identifier}</dc:identifier></svg>")
    return path


def test_both_panels_name_every_point_and_the_file_carries_the_mark(results: Path) -> None:
    svg = drawn(results)
    texts = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert texts.count("vanilla_rag") == texts.count("no_retrieval") == 2
    for once in ("a title", "retrieval calls per question", "prompt tokens per question"):
        assert texts.count(once) == 1
    assert "F1 (%), with 95 % interval" in texts
    assert not [text for text in texts if text and text.startswith("−")]  # nothing costs less than nothing
    path = results / "x.svg"
    path.write_bytes(svg)
    assert mark_of(path) == mark(*only(results))


def test_the_same_points_are_the_same_bytes_and_others_are_not(results: Path) -> None:
    before = drawn(results)
    assert drawn(results) == before
    assert b"dc:date" not in before
    save(results, "sft", [1.0, 1.0, 1.0, 1.0])
    assert drawn(results) != before


def test_a_crowd_at_one_place_is_drawn_with_a_name_each(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for number in range(12):
        save(tmp_path, f"method_{number}", [0.0, 0.0], cost={"retrieval_calls": 0.0})
    table, view = only(tmp_path)
    texts = [
        element.text
        for element in ElementTree.fromstring(draw_costs(view, "t", "F1", mark(table, view))).iter(
            f"{SVG}text"
        )
    ]
    assert all(texts.count(f"method_{number}") == 2 for number in range(12))


def test_without_matplotlib_there_is_one_line(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, view = only(results)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'ragtrials\[plots\]'"):
        draw_costs(view, "title", "F1", mark(table, view))


def test_names_say_task_model_and_retriever_and_more_only_where_two_would_share_one(results: Path) -> None:
    assert plot_names(standings(results)[0]) == [NAME]
    save(results, "sft", [1.0], split="dev")
    save(results, "sft", [1.0], task="geo_pop", retriever="oracle")
    *twins, other = plot_names(standings(results)[0])
    assert other == "geo-pop-tiny-oracle.svg"
    assert len(set(twins)) == 2
    assert all(name.startswith("geo-hop-tiny-bm25-") and len(name) == len(NAME) + 7 for name in twins)


def test_the_page_shows_a_plot_if_and_only_if_its_file_is_there(results: Path) -> None:
    board = results.parent / "boards" / "leaderboard.md"
    assert "![" not in render(results, board)[0]
    path = stand_in(results, NAME, mark(*only(results)))
    assert (
        f"\n![Score against retrieval calls and prompt tokens](<../results/plots/{NAME}>)\n"
        in render(results, board)[0]
    )
    path.unlink()
    assert "![" not in render(results, board)[0]


def test_a_plot_of_other_points_is_outdated(results: Path) -> None:
    tables, _ = standings(results)
    assert outdated(results, tables) == []  # none is asked for
    path = stand_in(results, NAME, mark(*only(results)))
    assert outdated(results, tables) == []
    save(results, "sft", [1.0, 1.0, 1.0, 1.0])
    assert outdated(results, standings(results)[0]) == [path]


@pytest.mark.parametrize("cost", ["retrieval_calls", "prompt_tokens"])
def test_a_mark_changes_with_every_cost(tmp_path: Path, cost: str) -> None:
    for name, value in (("a", 1.0), ("b", 1.5)):
        save(tmp_path / name, "vanilla_rag", [1.0, 0.0])
        save(tmp_path / name, "sft", [1.0, 1.0], cost={cost: value})
    assert mark(*only(tmp_path / "a")) != mark(*only(tmp_path / "b"))


def test_a_file_under_the_name_of_a_plot_that_is_none_is_outdated(results: Path) -> None:
    path = stand_in(results, NAME, "something else")
    assert outdated(results, standings(results)[0]) == [path]


def test_a_plot_of_no_table_or_of_a_table_of_one_row_is_an_orphan_and_other_figures_are_not(
    results: Path,
) -> None:
    save(results, "sft", [1.0], task="geo_pop")
    gone = stand_in(results, "a-gone-table.svg", "ragtrials-points:0123456789abcdef")
    single = stand_in(results, "geo-pop-tiny-bm25.svg", "ragtrials-points:0123456789abcdef")
    stand_in(results, "deciles.svg", "something else")
    stand_in(results, NAME, "ragtrials-points:0123456789abcdef")
    assert orphans(results, standings(results)[0]) == [gone, single]
