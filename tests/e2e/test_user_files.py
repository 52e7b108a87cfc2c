"""A user's own questions and passages from the command line, with a tiny model."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtrials.cli import main

QUESTIONS = [
    {
        "id": 1,
        "question": "Who wrote The Raven?",
        "answers": ["Edgar Allan Poe", "Poe"],
        "supporting": ["p1"],
    },
    {"id": "b", "question": "Where is the Louvre?", "answers": "Paris", "supporting": [2]},
]
PASSAGES = (
    'id\ttext\ttitle\np1\t"The ""Raven"" is a poem by Poe."\t"""The Raven"""\n'
    "2\tThe Louvre stands in Paris.\tLouvre\n3\tNobody asks about rivers.\t\n"
)


@pytest.fixture
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with questions and passages; no data folder."""
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS))
    (tmp_path / "mine" / "passages.tsv.gz").write_bytes(gzip.compress(PASSAGES.encode()))
    return tmp_path


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


TASK = ("-t", "jsonl:mine/questions.jsonl", "-o", "shots=0")
CORPUS = ("--corpus", "mine/passages.tsv.gz")


def test_a_run_on_ones_own_files(here: Path, model: Path) -> None:
    words = ("run", "-m", "vanilla_rag", "-m", "no_retrieval", *TASK, *CORPUS)
    result = call(*words, "--profile", "smoke", "--model", model)
    assert result.exit_code == 0, result.output
    assert "jsonl-questions (test, all 2 questions), tiny, bm25 over passages" in result.stdout
    records = [json.loads(path.read_text()) for path in here.glob("results/adhoc/jsonl-questions/*/run.json")]
    assert sorted((record["method"], record["corpus"]) for record in records) == [
        ("no_retrieval", "none"),
        ("vanilla_rag", "passages"),
    ]
    assert {record["retrieval"].get("gold_recall") for record in records} == {None, 1.0}
    for record in records:
        assert str(here) not in json.dumps(record)
        assert "mine/" not in record["command"]
    assert call("leaderboard").exit_code == 0
    assert "## jsonl-questions · tiny · bm25" in (here / "leaderboard.md").read_text()
    assert call(*words, "--profile", "smoke", "--model", model).stderr.count("already done") == 2


def test_the_corpus_is_searched_by_ask_and_index(here: Path, model: Path) -> None:
    asked = call("ask", "Where is the Louvre?", "-m", "vanilla_rag", *TASK, *CORPUS, "--model", model)
    assert asked.exit_code == 0, asked.output
    assert "Louvre: The Louvre stands in Paris." in asked.stdout
    assert call("index", "build", *CORPUS).stdout.startswith("passages: 3 passages, ")
    found = call("index", "search", "raven", *CORPUS).stdout
    assert '"The Raven": The "Raven" is a poem by Poe.  (p1)' in found


def test_another_corpus_than_the_tasks_own(here: Path, model: Path) -> None:
    words = (
        "run",
        "-m",
        "vanilla_rag",
        "-t",
        "geo_pop",
        "--limit",
        2,
        "--profile",
        "smoke",
        "--model",
        model,
    )
    assert call(*words, *CORPUS).exit_code == 0
    (path,) = here.glob("results/adhoc/geo_pop/*/run.json")
    record = json.loads(path.read_text())
    assert record["corpus"] == "passages"
    assert "gold_recall" not in record["retrieval"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "-m", "vanilla_rag", *TASK), "name one with --corpus"),
        (("run", "-m", "vanilla_rag", *TASK[:2], *CORPUS), "set -o shots=0"),
        (("run", "-m", "vanilla_rag", "-t", "jsonl", *CORPUS), "write jsonl:FILE"),
        (("run", "-m", "vanilla_rag", *TASK, "--corpus", "wiki18-100w"), "psgs_w100.tsv in a data folder"),
        (("index", "build"), "say what to search"),
        (("index", "build", "-t", "jsonl:mine/questions.jsonl"), "name one with --corpus"),
    ],
)
def test_what_is_missing_is_one_line_and_exit_code_2(
    here: Path, words: tuple[str, ...], expected: str
) -> None:
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert expected in result.stderr


def test_the_task_is_listed_and_shown(here: Path) -> None:
    assert "jsonl            questions of your own" in call("list", "tasks").stdout
    assert "-t jsonl:FILE" in call("show", "task", "jsonl").stdout
    shown = call("show", "task", "jsonl:mine/questions.jsonl")
    assert "jsonl-questions: the questions of questions.jsonl" in shown.stdout
    assert "2 examples here" in shown.stdout
