"""`ragtrials breakdown`, on the committed records of geo_pop."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from ragtrials.cli import main

RESULTS = Path(__file__).parents[2] / "results"
RUNS = sorted(RESULTS.glob("laptop/geo_pop/sft-*")) + sorted(RESULTS.glob("laptop/geo_pop/vanilla_rag-*"))


def breakdown(*words: object) -> Result:
    return CliRunner().invoke(main, ["breakdown", *map(str, words)])


def test_deciles_of_a_number_and_its_correlation(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "figure.svg"
    result = breakdown(*RUNS, "--by", "popularity", "--output", figure)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "geo_pop (test, 300 of 990 questions) by popularity"
    start = next(n for n, line in enumerate(lines) if line.startswith("popularity "))
    sizes = [int(line.split()[3]) for line in lines[start + 1 : start + 11]]
    assert sum(sizes) == 300
    assert max(sizes) - min(sizes) <= 2
    assert lines[start + 11].split()[:2] == ["rank", "correlation"]
    text = "".join(ElementTree.fromstring(figure.read_bytes()).itertext())
    assert "vanilla_rag" in text
    assert "retrieval_calls" in text


def test_values_of_a_word_and_columns_by_choice() -> None:
    result = breakdown(RUNS[0], "--by", "relation", "--column", "em", "--column", "prompt_tokens")
    assert result.exit_code == 0, result.output
    header = next(line for line in result.output.splitlines() if line.startswith("relation "))
    assert header.split() == ["relation", "n", "em", "prompt_tokens"]
    assert "rank correlation" not in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere", "--by", "popularity"), "is no record's folder, and no id below"),
        ((*RUNS, "--by", "fame"), "no question has a field 'fame'"),
        ((*RUNS, "--by", "popularity", "--output", "figure.png"), "ends in .svg"),
    ],
)
def test_what_is_wrong_gets_one_line(words: tuple[object, ...], told: str) -> None:
    result = breakdown(*words)
    assert result.exit_code == 2
    assert told in result.output
    assert len(result.output.splitlines()) == 1
