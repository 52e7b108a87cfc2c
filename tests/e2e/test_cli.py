"""The command line as a user runs it: exit codes, one-line errors, a light start."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fakes import hotpot_record

from ragtrials.cli import main
from ragtrials.training.run import TrainRun


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(result: Result) -> str:
    """The one line of a wrong request."""
    lines = result.stderr.strip().splitlines()
    assert result.exit_code == 2, result.output
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    return lines[0]


RUN = ("run", "--profile", "smoke", "--data-dir", "data", "-t", "hotpotqa")


def test_help_is_light_and_names_every_command() -> None:
    code = (
        "import sys, time; start = time.perf_counter();"
        "from ragtrials.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(time.perf_counter() - start); print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *text, _, modules = done.stdout.strip().splitlines()
    for heavy in ("torch", "transformers", "polars", "numpy", "rich", "bm25s", "datasets"):
        assert f"'{heavy}'" not in modules
    for command in ("ask", "doctor", "eval", "index", "leaderboard", "list", "run", "score", "show", "train"):
        assert any(line.strip().startswith(command) for line in text)


def test_help_answers_quickly() -> None:
    code = "import time; s = time.perf_counter(); import ragtrials.cli; print(time.perf_counter() - s)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.3


def test_a_run_from_end_to_end(here: Path, model: Path) -> None:
    result = call(*RUN, "-m", "vanilla_rag", "-m", "no_retrieval", "--model", model, "--dtype", "float32")
    assert result.exit_code == 0, result.output
    assert "vanilla_rag" in result.stdout
    assert len(list(here.glob("results/adhoc/hotpotqa/*/run.json"))) == 2
    text = next(here.glob("results/adhoc/hotpotqa/*/run.json")).read_text()
    assert str(here) not in text
    assert str(model.parent) not in text
    assert call("leaderboard").exit_code == 0
    assert call("leaderboard", "--check").exit_code == 0
    board = (here / "leaderboard.md").read_text()
    assert "## hotpotqa · tiny · bm25" in board
    (here / "leaderboard.md").write_text(board + " ")
    assert "run `ragtrials leaderboard`" in refused(call("leaderboard", "--check"))
    listed = call("list", "runs").stdout.splitlines()
    assert len(listed) == 2
    shown = call("show", "run", listed[0].split()[0])
    assert json.loads(shown.stdout)["n"] == 6


def test_the_quick_start_writes_into_its_own_folder_and_trains_below_runs(
    here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A model of random weights is never right. So that there is something to prefer, length is rewarded.
    monkeypatch.setattr(TrainRun, "reward", lambda run, answer, example: float(len(answer)))
    words = ("run", "quickstart", "--profile", "smoke", "--limit", 2, "--model", model)
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert "hotpotqa: left out: its data are not on this machine" in result.stderr
    assert "Leaderboard written to runs/quickstart/leaderboard.md" in result.stdout
    board = (here / "runs" / "quickstart" / "leaderboard.md").read_text()
    for task in ("geo_hop", "geo_pop", "geo_ambig"):
        assert f"## {task} · tiny · bm25" in board
        assert f"{task} (test, 2 of " in result.stdout
    assert sorted(path.name for path in here.iterdir()) == ["cache", "data", "runs"]
    checkpoints = call("list", "checkpoints").stdout.splitlines()
    trained = [line.split()[1:3] for line in checkpoints]
    assert trained == [[name, "geo_pop"] for name in ("mmoa_rag", "rag_ddr", "self_rag", "sft", "smart_rag")]
    assert not [line for line in checkpoints if "not finished" in line]
    assert "sft" in board
    assert "rag_ddr" in board
    again = call(*words)
    assert again.exit_code == 0
    assert again.stderr.count("already done") == 11
    assert (here / "runs" / "quickstart" / "leaderboard.md").read_text() == board


def test_ask_prints_the_trace(here: Path, model: Path) -> None:
    question = "In which town was person 3 born?"
    result = call(
        "ask", question, "-m", "vanilla_rag", "-t", "hotpotqa", "--data-dir", "data", "--model", model
    )
    assert result.exit_code == 0, result.output
    assert f"retrieve k=3 '{question}'" in result.stdout
    assert "Person 3: Person 3 was born in house 3." in result.stdout
    assert "Cost: 1 retrieval call(s), 3 passages, 1 model call(s)" in result.stdout


def test_eval_takes_a_checkpoint(here: Path, model: Path) -> None:
    result = call(
        "eval", "no_retrieval", "hotpotqa", "--checkpoint", model, "--profile", "smoke", "--data-dir", "data"
    )
    assert result.exit_code == 0, result.output
    assert "no such folder" in refused(call("eval", "no_retrieval", "hotpotqa", "--checkpoint", "gone"))


def test_index_build_and_search(here: Path) -> None:
    built = call("index", "build", "-t", "hotpotqa", "--data-dir", "data")
    assert "18 passages" in built.stdout
    assert " MB, built in" in built.stdout
    assert "was there already" in call("index", "build", "-t", "hotpotqa", "--data-dir", "data").stdout
    found = call("index", "search", "house 4", "-t", "hotpotqa", "--data-dir", "data", "-k", 100)
    assert found.exit_code == 0  # more than there is: what there is
    assert "House 4 stands in Town 4." in found.stdout.splitlines()[0]
    assert "(nothing found)" in call("index", "search", "zzzz", "-t", "hotpotqa", "--data-dir", "data").stdout
    zero = call("index", "search", "x", "-t", "hotpotqa", "--data-dir", "data", "-k", 0)
    assert "at least 1" in refused(zero)


@pytest.mark.parametrize(
    "what", ["methods", "tasks", "retrievers", "models", "suites", "runs", "checkpoints"]
)
def test_list(here: Path, what: str) -> None:
    result = call("list", what)
    assert result.exit_code == 0, result.output
    expected = {
        "methods": "vanilla_rag",
        "tasks": "hotpotqa",
        "retrievers": "bm25",
        "models": "quickstart",
        "suites": "quickstart",
        "runs": "",
        "checkpoints": "",
    }
    assert expected[what] in result.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("method", "vanilla_rag"), "profile smoke: k=2, shots=1, max_new_tokens=4"),
        (("task", "hotpotqa"), "CC BY-SA 4.0"),
        (("suite", "quickstart"), "vanilla_rag on geo_hop"),
    ],
)
def test_show(here: Path, words: tuple[str, str], expected: str) -> None:
    result = call("show", *words)
    assert result.exit_code == 0, result.output
    assert expected in result.stdout


def test_doctor_reports(here: Path) -> None:
    result = call("doctor")
    assert "Python 3" in result.stdout
    assert "task hotpotqa: data not on this machine" in result.stdout


def test_damaged_records_do_not_hide_the_others(here: Path, model: Path) -> None:
    call(*RUN, "-m", "no_retrieval", "--model", model)
    bad = here / "results" / "adhoc" / "hotpotqa" / "broken" / "run.json"
    bad.parent.mkdir()
    bad.write_text("{")
    result = call("leaderboard")
    assert "broken/run.json: damaged record" in refused(result)
    assert "no_retrieval" in (here / "leaderboard.md").read_text()
    listed = call("list", "runs")
    assert "no_retrieval" in listed.stdout
    assert listed.exit_code == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "quickstrt"), "did you mean 'quickstart'"),
        (("run",), "say what to run"),
        (("run", "quickstart", "-m", "vanilla_rag"), "either a suite"),
        ((*RUN, "-m", "vanila_rag"), "did you mean 'vanilla_rag'"),
        (("run", "-m", "vanilla_rag", "-t", "hotpotq"), "unknown task 'hotpotq'; did you mean 'hotpotqa'"),
        ((*RUN, "-m", "vanilla_rag", "-o", "kk=3"), "'kk' is no option of this method; did you mean 'k'"),
        ((*RUN, "-m", "vanilla_rag", "-o", "k=many"), "k must be a whole number, not 'many'"),
        ((*RUN, "-m", "vanilla_rag", "-o", "k=0"), "k must be at least 1, not 0"),
        ((*RUN, "-m", "vanilla_rag", "-o", "k=-2"), "k must be at least 1, not -2"),
        ((*RUN, "-m", "vanilla_rag", "--limit", "0"), "limit must be at least 1, not 0"),
        ((*RUN, "-m", "vanilla_rag", "--retriever", "bm52"), "did you mean 'bm25'"),
        ((*RUN, "-m", "vanilla_rag", "--split", "tets"), "task hotpotqa has no split 'tets'"),
        ((*RUN, "-m", "vanilla_rag", "-o", "shots=99"), "shots=99 asks for more"),
        (("run", "-m", "vanilla_rag", "-t", "hotpotqa", "--profile", "lptop"), "did you mean 'laptop'"),
        (("show", "run", "abc"), "0 runs in results"),
        (("leaderboard",), "no results folder"),
        (("ask", " ", "-m", "vanilla_rag", "-t", "hotpotqa", "--data-dir", "data"), "the question is empty"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_2(
    here: Path, words: tuple[str, ...], expected: str
) -> None:
    assert expected in refused(call(*words))


def test_more_passages_than_the_corpus_has_is_fine(here: Path, model: Path) -> None:
    result = call(*RUN, "-m", "vanilla_rag", "--model", model, "-o", "k=1000", "--limit", 1)
    assert result.exit_code == 0, result.output


def without(record: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in record.items() if key != name}


GOOD = [hotpot_record(i) for i in range(3)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "dev.json"),
        (b"", "dev.json is empty"),
        (json.dumps(GOOD).encode()[:-40], "the file ends"),
        (b'[\n{"_id": "a",\n"question": oops}]', "dev.json: line 3"),
        (gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-20], "truncated gzip"),
        (
            json.dumps([GOOD[0], without(GOOD[1], "question")]).encode(),
            "record 2 (id 'q001'): field 'question'",
        ),
        (
            json.dumps([without(GOOD[0], "answer")]).encode(),
            "record 1 (id 'q000'): field 'answer' is missing",
        ),
        (json.dumps([without(GOOD[0], "_id")]).encode(), "record 1: field '_id' is missing"),
        (json.dumps([GOOD[0], GOOD[0]]).encode(), "record 2 (id 'q000'): repeats the _id of record 1"),
    ],
)
def test_a_wrong_data_file_is_named(here: Path, content: bytes | None, expected: str) -> None:
    path = here / "data" / "hotpotqa" / "dev.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert expected in refused(call(*RUN, "-m", "no_retrieval", "-o", "shots=0"))


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_an_incomplete_model_folder_is_named(here: Path, model: Path, missing: str) -> None:
    copy = here / "copy"
    shutil.copytree(model, copy)
    for path in copy.glob(f"{missing.split('.')[0]}*"):
        path.unlink()
    line = refused(call(*RUN, "-m", "no_retrieval", "--model", copy))
    assert "copy" in line


def test_an_unknown_model_says_what_to_do(here: Path) -> None:
    assert "folder" in refused(call(*RUN, "-m", "no_retrieval", "--model", "nobody/nothing"))


def test_no_network_for_a_hub_task_says_where_to_put_the_file(here: Path) -> None:
    line = refused(call("run", "-m", "no_retrieval", "-t", "hotpotqa", "--profile", "smoke"))
    assert "put hotpotqa/" in line
    assert "RAGTRIALS_DATA" in line


def test_a_cache_that_cannot_be_written_is_named(
    here: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_text("")
    monkeypatch.setenv("RAGTRIALS_CACHE", str(here / "file" / "cache"))
    line = refused(call(*RUN, "-m", "vanilla_rag", "--model", model))
    assert "cannot write the cache" in line
    assert "RAGTRIALS_CACHE" in line
