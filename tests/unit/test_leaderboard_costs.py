"""What an answer costs, on the leaderboard's page and in the terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from recording import save

from ragtrials.cli.show import print_standings
from ragtrials.costs import cost_view, gains
from ragtrials.leaderboard import standings
from ragtrials.leaderboard_page import render

# (options, F1 of each question, retrievals, prompt tokens) of a method's family.
FAMILY = (
    ("-o gate=never", [0.0, 0.0, 0.0, 1.0], 0.0, 100.0),
    ("-o threshold=0.7", [0.0, 0.0, 1.0, 1.0], 0.5, 400.0),
    ("-o threshold=0.9", [0.0, 0.5, 0.5, 0.5], 0.75, 200.0),
    ("", [0.0, 1.0, 1.0, 1.0], 1.0, 600.0),
    ("-o gate=always", [0.0, 1.0, 1.0, 0.5], 1.5, 700.0),
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for number, (options, f1, retrievals, tokens) in enumerate(FAMILY):
        save(
            tmp_path / "results",
            "smart_rag",
            f1,
            command=f"ragtrials run --method smart_rag {options}",
            cost={"retrieval_calls": retrievals, "prompt_tokens": tokens},
            config={"k": number},
        )
    return tmp_path / "results"


def page(results: Path) -> str:
    text, problems = render(results, results.parent / "leaderboard.md")
    assert problems == []
    return text


def cells(text: str, column: str) -> dict[str, str]:
    """A column of the first main table, by method."""
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    header = next(line for line in lines if line[0] == "| rank")
    rows = [line for line in lines if len(line) == len(header) and line[0][2:].isdigit()]
    return {row[1]: row[header.index(column)] for row in rows}


def test_every_row_says_which_fronts_it_is_on(results: Path) -> None:
    assert cells(page(results), "front") == {
        "smart_rag (gate=never)": "both",
        "smart_rag (threshold=0.7)": "both",
        "smart_rag (threshold=0.9)": "tokens",
        "smart_rag": "both",
        "smart_rag (gate=always)": "–",
    }


def test_the_fronts_stand_below_from_cheap_to_dear_with_what_more_cost_bought(results: Path) -> None:
    block = page(results).split("### What an answer costs\n")[1]
    assert block == (
        "\n"
        "| method | retrievals/q | F1 | gain per retrieval |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| smart_rag (gate=never) | 0.00 | 25.0 | – |\n"
        "| smart_rag (threshold=0.7) | 0.50 | 50.0 | +50.0 |\n"
        "| smart_rag | 1.00 | 75.0 | +50.0 |\n"
        "\n"
        "| method | prompt tokens/q | F1 | gain per 1000 prompt tokens |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| smart_rag (gate=never) | 100 | 25.0 | – |\n"
        "| smart_rag (threshold=0.9) | 200 | 37.5 | +125.0 |\n"
        "| smart_rag (threshold=0.7) | 400 | 50.0 | +62.5 |\n"
        "| smart_rag | 600 | 75.0 | +125.0 |\n"
    )


def test_a_single_row_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", [1.0, 0.0])
    text = page(tmp_path)
    assert "What an answer costs" not in text
    assert "| front |" not in text


def test_gains_are_per_unit_of_cost_and_none_without_more_cost() -> None:
    assert gains([]) == []
    assert gains([(1.0, 0.25), (1.0, 0.25), (3.0, 0.75)]) == [None, None, 0.25]


def test_seeds_of_one_setting_share_a_label_and_are_apart_among_the_points(tmp_path: Path) -> None:
    save(tmp_path, "sft", [1.0, 0.0], seed=0)
    save(tmp_path, "sft", [1.0, 1.0], seed=1)
    [table], _ = standings(tmp_path)
    assert [entry.label for entry in table.rows] == ["sft", "sft"]
    view = cost_view(table)
    assert view is not None
    assert [point.name for point in view.points] == ["sft, seed 1", "sft, seed 0"]


def test_a_run_that_two_suites_hold_counts_once(results: Path) -> None:
    before = page(results)
    shutil.copytree(results / "s", results / "sweep")
    assert page(results) == before


def test_a_bar_in_a_value_does_not_end_its_cell(tmp_path: Path) -> None:
    save(tmp_path, "sft", [1.0], config={"k": 1}, command="ragtrials run -o 'prompt=a|b'")
    save(tmp_path, "sft", [0.0], config={"k": 2})
    assert "| sft (prompt=a\\|b) |" in page(tmp_path)


def test_a_record_with_a_broken_command_is_named_and_the_others_shown(results: Path) -> None:
    bad = save(results, "sft", [1.0] * 4, command="ragtrials run -o 'k=3")
    text, problems = render(results, results.parent / "leaderboard.md")
    [problem] = problems
    assert f"run {bad.name.split('-')[-1]}: its command is no command line" in problem
    assert len(cells(text, "front")) == len(FAMILY)


def test_the_terminal_tells_runs_apart_as_well(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables, _ = standings(results)
    print_standings(tables, {tables[0].records[0].id})
    shown = capsys.readouterr().out
    assert "smart_rag (threshold=0.7)  " in shown
    assert "smart_rag (gate=never)  " in shown
