"""`ragtrials sweep`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fakes import hotpot_folder

from ragtrials import runner
from ragtrials.cli import main
from ragtrials.errors import RunFailure
from ragtrials.methods._reader import FineTunedReader
from ragtrials.results import RunRecord
from ragtrials.stats import Estimate

HEADER = ["EM", "F1", "acc", "retr/q", "prompt/q", "gen/q", "front"]


@pytest.fixture
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, an empty cache, and a made-up hotpotqa."""
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    hotpot_folder(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*words: object) -> Result:
    return CliRunner().invoke(main, ["sweep", *map(str, words)])


def hotpot(method: str, model: Path, *words: object) -> Result:
    return sweep(method, "hotpotqa", "--data-dir", "data", "--profile", "smoke", "--model", model, *words)


def rows(result: Result, names: int) -> list[list[str]]:
    """The cells of the table below its header, without the intervals."""
    lines = result.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[names:] == HEADER)
    body = lines[start + 1 : lines.index("", start)]
    return [[cell for cell in line.split() if not cell.startswith("[") and cell[-1] != "]"] for line in body]


def test_a_family_is_recorded_shown_and_found_again(here: Path, model: Path) -> None:
    words = ("vanilla_rag", "geo_pop", "--over", "config.k=1,2", "--over", "seed=0,1")
    words += ("--profile", "smoke", "--limit", 3, "--model", model, "--name", "passages")
    result = sweep(*words)
    assert result.exit_code == 0, result.output
    files = sorted(here.glob("results/passages/geo_pop/*/run.json"))
    records = {(r["config"]["k"], r["seed"]): r for r in map(json.loads, (f.read_text() for f in files))}
    assert sorted(records) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert "vanilla_rag on geo_pop, test, 3 of 990 questions, tiny, bm25 over geo-v1" in result.stdout
    told = rows(result, names=2)
    assert [row[:2] for row in told] == [["1", "0"], ["1", "1"], ["2", "0"], ["2", "1"]]
    for row in told:
        record = records[int(row[0]), int(row[1])]
        assert row[2:5] == [f"{100 * record['scores'][name]['mean']:.1f}" for name in ("em", "f1", "acc")]
        assert row[5] == "1.00"
        assert row[6] == f"{record['cost']['prompt_tokens']:.0f}"
        assert row[7] == f"{record['cost']['completion_tokens']:.1f}"
    assert int(told[0][6]) < int(told[2][6])  # one passage less to read
    assert result.stderr.count(": done (") == 4
    assert "vanilla_rag on geo_pop, config.k=2, seed=1: done" in result.stderr

    times = {file: file.stat().st_mtime_ns for file in files}
    again = sweep(*words)
    assert again.exit_code == 0
    assert again.stdout == result.stdout
    assert again.stderr.count(": already done (") == 4
    assert {file: file.stat().st_mtime_ns for file in files} == times
    assert sorted(here.glob("results/passages/geo_pop/*/run.json")) == files


def test_the_front_is_told_and_a_failed_run_does_not_hide_the_others(
    here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = runner.execute
    made_up = {  # retrievals, prompt tokens, F1
        1: (1.0, 200.0, 0.4),
        2: (1.0, 300.0, 0.5),
        3: (0.5, 350.0, 0.3),
        4: (1.5, 250.0, 0.45),
        5: (2.0, 400.0, 0.45),
    }

    def instead(plan: Any, *rest: Any) -> RunRecord:
        k = plan.method.config.k
        if k not in made_up:
            raise RunFailure("the model broke")
        calls, tokens, f1 = made_up[k]
        record = execute(plan, *rest)
        return replace(
            record,
            scores={**record.scores, "f1": Estimate(f1, f1 - 0.1, f1 + 0.1)},
            cost={**record.cost, "retrieval_calls": calls, "prompt_tokens": tokens},
        )

    monkeypatch.setattr(runner, "execute", instead)
    result = hotpot("vanilla_rag", model, "--limit", 1, "--over", "config.k=1,9,2,3,4,5")
    assert result.exit_code == 1, result.output
    told = {row[0]: row[1:] for row in rows(result, names=1)}
    assert list(told) == ["1", "9", "2", "3", "4", "5"]
    assert told["9"] == ["failed", "–", "–", "–", "–", "–", "–"]
    assert told["1"][1:5] == ["40.0", "0.0", "1.00", "200"]
    assert "40.0 [30.0, 50.0]" in result.stdout
    fronts = {k: row[-1] for k, row in told.items()}
    assert fronts == {"1": "tokens", "9": "–", "2": "both", "3": "retrievals", "4": "tokens", "5": "–"}
    assert (
        "Error: vanilla_rag on hotpotqa, config.k=9: RunFailure: the model broke"
        in result.stderr.splitlines()
    )


def test_a_value_that_only_evaluation_sees_trains_once(
    here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []
    monkeypatch.setattr(FineTunedReader, "train", lambda method, run: trained.append(method.config.k))
    words = ("--limit", 2, "--over", "config.max_new_tokens=3,4")
    result = hotpot("sft", model, *words)
    assert result.exit_code == 0, result.output
    assert trained == [2]
    files = list(here.glob("results/sweep/hotpotqa/*/run.json"))
    records = [json.loads(file.read_text()) for file in files]
    assert sorted(record["config"]["max_new_tokens"] for record in records) == [3, 4]
    assert len({record["training"]["train_id"] for record in records}) == 1

    [checkpoint] = here.glob("runs/train/hotpotqa/*")
    given = ("--checkpoint", checkpoint, "--data-dir", "data", "--model", model, "--name", "given")
    evaluated = sweep("sft", "hotpotqa", *given, *words, "--over", "config.k=1,2")
    assert evaluated.exit_code == 0, evaluated.output
    assert len(list(here.glob("results/given/hotpotqa/*/run.json"))) == 4
    assert trained == [2]

    assert hotpot("sft", model, "--limit", 2, "--over", "config.k=1,2").exit_code == 0
    assert trained == [2, 1]  # a setting of training makes a training of its own; that of k=2 was there


def test_an_untrained_model_folder_is_evaluated(
    here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FineTunedReader, "train", lambda method, run: pytest.fail("it was trained"))
    words = (
        "sft",
        "hotpotqa",
        "--data-dir",
        "data",
        "--profile",
        "smoke",
        "--limit",
        1,
        "--checkpoint",
        model,
    )
    assert sweep(*words, "--over", "config.k=1,2").exit_code == 0
    assert not (here / "runs" / "train").exists()
    assert sweep(*words, "--over", f"model={model}").stderr.startswith("Error: --over model: it is varied")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "say what to vary"),
        (("--over", "config.kk=1"), "did you mean 'k'?"),
        (("--over", "config.k=1,x"), "--over config.k=x: option -o k must be a whole number"),
        (("--over", "retriever=bm25,bm52"), "did you mean 'bm25'"),
        (("--over", "seed=1,2", "--seed", "0"), "--over seed: it is varied, so leave --seed out"),
        (("--over", "config.k=1,2", "-o", "k=3"), "--over config.k: it is varied, so leave -o k out"),
        (("--over", "config.k=1,2", "-o", "shts=3"), "'shts' is no option of this method"),
        (("--over", "config.k=1,2", "--name", "../there"), "--name '../there': write a plain folder name"),
        (("--over", "config.k=1,2", "--checkpoint", "gone"), "--checkpoint gone: no such folder"),
    ],
)
def test_a_wrong_request_is_one_line_and_nothing_runs(
    here: Path, model: Path, words: tuple[str, ...], told: str
) -> None:
    name = () if "--checkpoint" in words else ("--model", model)
    result = sweep("vanilla_rag", "hotpotqa", "--data-dir", "data", "--profile", "smoke", *name, *words)
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert told in line
    assert not result.stdout
    assert not (here / "results").exists()
    assert not (here / "runs").exists()


def test_help_lists_the_command() -> None:
    assert "  sweep " in CliRunner().invoke(main, ["--help"]).stdout
