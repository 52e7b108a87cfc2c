"""`ragtrials leaderboard`, with plots."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from recording import save

from ragtrials.cli import main

PLOT = Path("results/plots/geo-hop-tiny-bm25.svg")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a table of two rows and one of a single row."""
    monkeypatch.chdir(tmp_path)
    save(Path("results"), "vanilla_rag", [1.0, 0.0, 0.5, 1.0], cost={"prompt_tokens": 400.0})
    save(Path("results"), "no_retrieval", [0.0, 0.0, 0.5, 1.0], retriever=None)
    save(Path("results"), "vanilla_rag", [1.0], task="geo_pop")


def board(*words: str) -> Result:
    return CliRunner().invoke(main, ["leaderboard", *words])


def refused(*words: str) -> str:
    result = board(*words)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def test_plots_are_drawn_linked_checked_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    result = board("--plots")
    assert result.exit_code == 0, result.output
    assert "1 plot(s) written to results/plots" in result.stdout
    assert [path.name for path in Path("results/plots").iterdir()] == [PLOT.name]
    assert f"](<{PLOT.as_posix()}>)" in Path("leaderboard.md").read_text()
    drawn = PLOT.read_bytes()

    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib", None)
        assert board("--check").exit_code == 0
        save(Path("results"), "sft", [1.0, 1.0, 1.0, 1.0])
        assert board().exit_code == 0  # the page alone is made anew
        line = refused("--check")
        assert line == (
            f"Error: {PLOT} does not show the present points; run `ragtrials leaderboard --plots` and commit "
            "what it changes"
        )
        assert PLOT.read_bytes() == drawn

    PLOT.with_name("geo-gone.svg").write_bytes(drawn)
    assert "(and 1 more)" in refused("--check")
    again = board("--plots")
    assert "Removed results/plots/geo-gone.svg: there is no such table any more" in again.stdout
    assert PLOT.read_bytes() != drawn
    assert board("--check").exit_code == 0

    PLOT.rename(PLOT.with_name("geo-gone.svg"))
    assert "geo-gone.svg is of a table that does not exist" in refused("--check")
    PLOT.with_name("geo-gone.svg").unlink()
    assert "leaderboard.md is not what results gives" in refused("--check")  # its link leads nowhere


def test_without_matplotlib_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'ragtrials[plots]'" in refused("--plots")
    assert not Path("leaderboard.md").exists()
    assert not PLOT.parent.exists()


def test_a_check_draws_nothing() -> None:
    assert "leave --plots out" in refused("--plots", "--check")
