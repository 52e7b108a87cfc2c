"""`ragtrials show` for several things, and with the figures of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from dataset_files import made_up_folder, put
from fakes import hotpot_folder

from ragtrials.cli import main
from ragtrials.config import override
from ragtrials.registry import METHODS, TASKS
from ragtrials.training.checkpoint import FORMAT, Manifest, RoleWeights, weights_digest, write_manifest
from ragtrials.training.report import RolloutReport, StageReport, TrainingReport


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


def profile_line(output: str, profile: str) -> list[str]:
    """The settings of a profile, as `show method` prints them."""
    [line] = [line for line in output.splitlines() if line.startswith(f"profile {profile}: ")]
    return line.removeprefix(f"profile {profile}: ").split(", ")


@pytest.mark.parametrize("name", ["vanilla_rag", "sft", "ret_robust", "rag_ddr"])
def test_settings_are_printed_as_they_are_set(name: str) -> None:
    kind = METHODS.load(name)
    result = show("method", name)
    assert result.exit_code == 0, result.output
    for profile, config in kind.PROFILES.items():
        for setting in profile_line(result.stdout, profile):
            assert override(config, [setting]) == config


def test_groups_of_settings_are_flat_and_what_is_not_set_is_left_out() -> None:
    settings = profile_line(show("method", "sft").stdout, "laptop")
    assert "sft.learning_rate=0.0005" in settings
    assert "sft.lora.targets=q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj" in settings
    assert "sft.gradient_checkpointing=false" in settings
    full = profile_line(show("method", "sft").stdout, "paper")
    assert not [setting for setting in full if setting.startswith(("examples=", "passage_words="))]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("no_retrieval", "roles: generator; never retrieves; is not trained"),
        ("sft", "roles: generator; retrieves; is trained: generator"),
        ("rag_ddr", "roles: refiner, generator; retrieves; is trained: refiner, generator"),
        ("ddr_gen", "roles: refiner, generator; retrieves; is trained: generator"),
        ("ddr_kr", "roles: refiner, generator; retrieves; is trained: refiner"),
    ],
)
def test_a_method_says_which_roles_are_trained(name: str, line: str) -> None:
    assert line in show("method", name).stdout.splitlines()


def training(folder: Path, method: str, identity: str) -> Path:
    """A finished training of a method with two stages."""
    stages = tuple(
        StageReport(f"round1-{role}", role, "dpo", 9, 0, 900, 3, 64, 1.5, 0.6)
        for role in ("generator", "refiner")
    )
    path = folder / "train" / "geo_pop" / f"{method}-s7-{identity}"
    weights = path / "stages" / "one" / "weights"
    weights.mkdir(parents=True)
    (weights / "adapter_config.json").write_text("{}")
    report = TrainingReport(24, stages, RolloutReport(), 61.6, "cpu", 700)
    roles = {"generator": RoleWeights("stages/one/weights", weights_digest(weights))}
    manifest = Manifest(
        FORMAT, identity, method, "geo_pop", 7, "smoke", {}, "tiny", "0" * 64, roles, report, {}, {}
    )
    write_manifest(path, manifest)
    return path


def test_checkpoints_are_listed_and_unfinished_ones_are_told(here: Path) -> None:
    training(here / "elsewhere", "rag_ddr", "0123456789")
    (here / "elsewhere" / "train" / "geo_hop" / "sft-s-1-abcdef0123").mkdir(parents=True)
    result = CliRunner().invoke(main, ["list", "checkpoints", "--runs", "elsewhere"])
    assert result.exit_code == 0, result.output
    unfinished, finished = result.stdout.splitlines()
    assert unfinished.split() == ["abcdef0123", "sft", "geo_hop", "seed=-1", "not", "finished"]
    assert finished.split() == [
        *("0123456789", "rag_ddr", "geo_pop", "seed=7", "smoke", "tiny"),
        *("examples=24", "steps=6", "seconds=62"),
    ]
    nothing = CliRunner().invoke(main, ["list", "checkpoints"])
    assert (nothing.exit_code, nothing.output) == (0, "")


def test_a_damaged_checkpoint_does_not_hide_the_others(here: Path) -> None:
    damaged = training(here / "runs", "sft", "1111111111")
    training(here / "runs", "sft", "2222222222")
    (damaged / "checkpoint.json").write_text("{")
    result = CliRunner().invoke(main, ["list", "checkpoints"])
    assert result.exit_code == 2
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["2222222222"]
    [line] = errors(result)
    assert "sft-s7-1111111111/checkpoint.json: damaged manifest" in line


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
