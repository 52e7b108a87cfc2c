"""`ragtrials show` for several things, and with the figures of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from dataset_files import made_up_folder, put
from fakes import hotpot_folder

from ragtrials.cli import main
from ragtrials.registry import TASKS


@pytest.fixture(autouse=True)
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with made-up data of two tasks, one of them without a training file."""
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    hotpot_folder(tmp_path / "data")
    made_up_folder(tmp_path / "data", "fever")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def show(*words: object) -> Result:
    return CliRunner().invoke(main, ["show", *map(str, words), "--data-dir", "data"])


def errors(result: Result) -> list[str]:
    lines: list[str] = result.stderr.strip().splitlines()
    assert all(line.startswith("Error: ") for line in lines)
    return lines


def test_several_names_are_shown_one_after_the_other() -> None:
    result = show("task", "fever", "triviaqa", "hotpot")
    assert result.exit_code == 0, result.output
    first, second, third = (
        result.stdout.index(start) for start in ("fever: FEVER", "triviaqa: ", "hotpotqa: HotpotQA")
    )
    assert first < second < third


def test_a_wrong_name_does_not_hide_the_others() -> None:
    result = show("method", "vanila_rag", "no_retrieval", "nonsense")
    assert result.exit_code == 2
    assert "no_retrieval: " in result.stdout
    assert len(errors(result)) == 2
    assert "did you mean 'vanilla_rag'" in result.stderr


def test_the_card_says_what_the_files_lost(here: Path) -> None:
    claim = {"id": 0, "label": "SUPPORTS", "claim": "Ada won race 0.", "evidence": []}
    with (here / "data" / "fever" / "train.jsonl").open("a") as file:
        file.write(json.dumps({**claim, "id": 999}) + "\n")
    result = show("task", "fever")
    assert "(18 examples here; 1 records of its file left out)" in result.stdout
    assert "(4 examples here)" in result.stdout


def test_the_figures_of_tasks_are_a_table() -> None:
    result = show("task", "hotpotqa", "fever", "--stats")
    assert result.exit_code == 0, result.output
    header, hotpotqa, fever = (line.split() for line in result.stdout.splitlines()[:3])
    assert header[:6] == ["task", "split", "records", "odd", "train", "passages"]
    assert hotpotqa[:9] == ["hotpotqa", "dev", "6", "0", "18", "18", "6", "of", "6"]
    assert hotpotqa[-1] == "100.0"
    assert fever == ["fever", "dev", "4", "0", "18", "–", "–", "–", "–", "–", "–"]
    assert "hotpotqa: 0 of 6 records odd; corpus hotpotqa-dev-pool\n  types: bridge 6\n" in result.stdout


def test_odd_records_are_listed(here: Path) -> None:
    claim = {"id": 77, "label": "SUPPORTS", "claim": "Ada won race 0.", "evidence": []}
    with (here / "data" / "fever" / "dev.jsonl").open("a") as file:
        file.write(json.dumps(claim) + "\n")
    result = show("task", "fever", "--stats")
    assert "fever: 2 of 5 records odd\n      2  the same question under another id\n" in result.stdout


def test_the_figures_are_there_for_machines() -> None:
    result = show("task", "fever", "hotpotqa", "--stats", "--json")
    fever, hotpotqa = json.loads(result.stdout)
    assert fever["corpus"] is None
    assert hotpotqa["corpus"]["gold_recall"]["20"] == 1.0
    assert (hotpotqa["corpus"]["found"], hotpotqa["corpus"]["searched"]) == (6, 6)


def test_without_a_name_all_tasks_whose_data_are_here_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TASKS, "names", lambda: ("fever", "hotpotqa", "jsonl", "nq"))  # geo tasks take long
    result = show("task", "--stats", "--json")
    assert result.exit_code == 0, result.output
    assert [stats["task"] for stats in json.loads(result.stdout)] == ["fever", "hotpotqa"]
    assert result.stderr == "nq: left out: its data are not on this machine\n"


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_task_that_fails_is_one_line_and_the_others_go_on(as_json: tuple[str, ...]) -> None:
    result = show("task", "triviaqa", "fever", "jsonl", "--stats", *as_json)
    assert result.exit_code == 2
    missing, jsonl = errors(result)
    assert "triviaqa/test.tsv" in missing
    assert "jsonl:FILE" in jsonl
    if as_json:
        assert [stats["task"] for stats in json.loads(result.stdout)] == ["fever"]
    else:
        assert result.stdout.splitlines()[1].startswith("fever ")


def test_questions_and_passages_of_your_own_are_counted(here: Path) -> None:
    question = {"id": 1, "question": "Who won?", "answers": ["Ada"], "supporting": ["p", "q"]}
    put(here, "mine.jsonl", json.dumps(question))
    put(here, "passages.jsonl", json.dumps({"id": "p", "title": "Race", "text": "Ada won."}))
    result = show("task", "jsonl:mine.jsonl", "--stats", "--corpus", "passages.jsonl", "--json")
    assert result.exit_code == 0, result.output
    [stats] = json.loads(result.stdout)
    assert stats["odd_kinds"] == {"a gold passage is not in the corpus": 1}
    assert stats["corpus"]["answer_recall"] == {"5": 1.0, "20": 1.0}
    assert stats["corpus"]["gold_recall"] == {"5": 0.5, "20": 0.5}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("method", "vanilla_rag", "--stats"), "--stats counts the data of tasks, not of a method"),
        (("run", "--stats"), "--stats counts the data of tasks, not of a run"),
        (("task", "fever", "--json"), "--json goes with --stats"),
        (("task", "fever", "--corpus", "x.jsonl"), "--corpus goes with --stats"),
        (("task",), "say which task to show"),
        (("task", "triviaqa", "--stats"), "triviaqa/test.tsv"),
        (("task", "jsonl", "--stats"), "jsonl:FILE"),
        (("task", "hotpotqa", "--stats", "--corpus", "gone.jsonl"), "gone.jsonl"),
    ],
)
def test_wrong_requests_end_in_one_line(words: tuple[str, ...], expected: str) -> None:
    result = show(*words)
    assert result.exit_code == 2, result.output
    [line] = errors(result)
    assert expected in line
