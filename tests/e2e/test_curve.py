"""`ragtrials curve`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtrials.cli import main

HEADER = ["stage", "scalar", "steps", "first", "fifth", "last", "fifth", "slope", "per", "step", "p"]


@pytest.fixture(autouse=True)
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unfinished training of a warm start whose last loss is no number, and of a rising reward."""
    folder = tmp_path / "runs" / "train" / "geo_hop" / "mmoa_rag-s0-0123456789"
    folder.mkdir(parents=True)
    warm = [{"stage": "warm", "step": step, "loss": loss} for step, loss in ((1, 2.0), (2, float("nan")))]
    ppo = [
        {"stage": "ppo", "step": step, "reward": step / 100, "generator/entropy": 1.0}
        for step in range(1, 31)
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in warm + ppo))
    monkeypatch.chdir(tmp_path)
    return folder


def curve(*words: object) -> Result:
    return CliRunner().invoke(main, ["curve", *map(str, words)])


def test_each_stage_is_a_row_with_its_trend(training: Path) -> None:
    result = curve(training)
    assert result.exit_code == 0, result.output
    title, _, header, warm, ppo, note = result.stdout.splitlines()
    assert title == "mmoa_rag on geo_hop, seed 0"
    assert header.split() == HEADER
    assert warm.split() == ["warm", "loss", "1", "2", "2", "+0", "1.0000"]
    assert ppo.split() == ["ppo", "reward", "30", "0.035", "0.275", "+0.01", "0.0001"]
    assert note == "warm loss: not a finite number at 1 of 2 steps (first: step 2); left out"


def test_chosen_scalars_of_a_stage_are_drawn(training: Path) -> None:
    pytest.importorskip("matplotlib")
    words = (training, "--stage", "ppo", "--scalar", "generator/entropy", "--scalar", "reward")
    first, second = (curve(*words, "--output", f"figures/{name}.svg") for name in "ab")
    assert first.exit_code == 0, first.output
    assert [line.split()[:2] for line in first.stdout.splitlines()[3:5]] == [
        ["ppo", "generator/entropy"],
        ["ppo", "reward"],
    ]
    assert first.stdout.splitlines()[-1] == "Curves drawn to figures/a.svg"
    assert second.exit_code == 0, second.output
    drawn = Path("figures/a.svg").read_bytes()
    assert b"generator/entropy" in drawn
    assert drawn == Path("figures/b.svg").read_bytes()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--stage", "po"), "did you mean 'ppo'?"),
        (("--scalar", "rewards"), "did you mean 'reward'?"),
        (("--output", "curve.png"), "--output curve.png: curves are drawn as SVG"),
    ],
)
def test_wrong_requests_end_in_one_line(training: Path, words: tuple[str, ...], told: str) -> None:
    result = curve(training, *words)
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert told in line
    assert not result.stdout


def test_without_matplotlib_the_table_is_there_and_the_figure_is_refused(
    training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert curve(training).exit_code == 0
    result = curve(training, "--output", "curve.svg")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: drawing needs matplotlib: pip install 'ragtrials[plots]'\n"
    assert not Path("curve.svg").exists()


def test_a_folder_that_is_no_training_is_told() -> None:
    result = curve("runs")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: runs: no log.jsonl here")
    assert "  curve " in CliRunner().invoke(main, ["--help"]).stdout
