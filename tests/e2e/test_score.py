"""`ragtrials score` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from click.testing import CliRunner, Result
from fakes import hotpot_folder

from ragtrials.cli import main


@pytest.fixture
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAGTRIALS_DATA", str(hotpot_folder(tmp_path / "data", dev=4)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").write_text(
        '{"id": "q000", "prediction": "Town 0"}\n{"id": "q001", "prediction": "Town 2"}\n'
        '{"id": "q001", "prediction": "Town 3"}\n{"id": "zzz", "prediction": null}\n'
    )
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_the_table_and_what_does_not_fit(here: Path) -> None:
    result = call("score", "p.jsonl", "--task", "hotpot")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.strip()}
    assert rows["questions"] == ["n", "em", "f1", "precision", "recall", "acc"]
    assert rows["all"] == ["4", "25.00", "37.50", "37.50", "37.50", "25.00"]
    assert rows["answered"] == ["2", "50.00", "75.00", "75.00", "75.00", "50.00"]
    assert "hotpotqa (dev, 4 questions): hotpotqa_v1, containment_v1" in result.stdout
    assert "3 predictions; 2 questions without one (all scores 0)" in result.stdout
    assert "1 of no question ('zzz'); 1 repeated ids, the last counts ('q001'); 0 empty" in result.stdout


def test_json_and_a_row_for_every_question(here: Path) -> None:
    result = call("score", "p.jsonl", "-t", "hotpotqa", "--json", "--per-example", "rows.parquet")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["scores"]["f1"] == 0.375
    assert found["groups"]["answered"] == {
        "questions": 2,
        "em": 0.5,
        "f1": 0.75,
        "precision": 0.75,
        "recall": 0.75,
        "acc": 0.5,
    }
    assert found["interval"][0] <= 0.375 <= found["interval"][1]
    assert (found["extra"], found["repeated"], found["flags"]) == (["zzz"], ["q001"], {"missing": 2})
    assert (found["task"], found["split"], found["questions"], found["predictions"]) == (
        "hotpotqa",
        "dev",
        4,
        3,
    )
    rows = polars.read_parquet(here / "rows.parquet")
    assert rows["id"].to_list() == ["q000", "q001", "q002", "q003"]
    assert rows["f1"].to_list() == [1.0, 0.5, 0.0, 0.0]
    assert rows["flags"].to_list() == ["", "", "missing", "missing"]
    again = call("score", "rows.parquet", "-t", "hotpotqa", "--json")
    assert json.loads(again.stdout)["scores"] == found["scores"]


def test_wrong_requests_are_one_line(here: Path) -> None:
    for words, message in (
        (("nothing.jsonl", "-t", "hotpotqa"), "nothing.jsonl does not exist"),
        (("p.jsonl", "-t", "hotpotqua"), "unknown task 'hotpotqua'; did you mean 'hotpotqa'?"),
        (("p.jsonl", "-t", "hotpotqa", "--split", "test"), "hotpotqa has no split 'test'"),
        (("p.jsonl", "-t", "nq"), "put nq/dev.jsonl[.gz] into a folder"),
        (("p.jsonl", "-t", "hotpotqa", "--per-example", "p.jsonl/rows"), "cannot write p.jsonl/rows"),
    ):
        result = call("score", *words)
        assert result.exit_code == 2, words
        assert len(result.stderr.strip().splitlines()) == 1
        assert message in result.stderr
