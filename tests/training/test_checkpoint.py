"""Checkpoints as a user meets them: trained once, used again, and refused when they do not fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fakes import hotpot_folder
from tiny import build_tiny_model

from ragtrials.cli import main
from ragtrials.results import read_record

SMALL = ("--profile", "smoke", "--data-dir", "data", "--model", "tiny", "--device", "cpu")
SFT = ("sft", "hotpotqa")


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(result: Result) -> str:
    """The one line of a wrong request."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert result.exit_code == 2, result.output
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and two models."""
    folder = tmp_path_factory.mktemp("world")
    hotpot_folder(folder / "data")
    build_tiny_model(folder / "tiny", hidden=32)
    build_tiny_model(folder / "other", hidden=32, seed=1)
    return folder


@pytest.fixture(autouse=True)
def here(world: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    monkeypatch.setenv("RAGTRIALS_CACHE", str(world / "cache"))
    monkeypatch.chdir(world)
    return world


@pytest.fixture(scope="module")
def checkpoint(world: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(world / "cache"))
        patch.chdir(world)
        result = call("train", *SFT, *SMALL)
        assert result.exit_code == 0, result.output
        yield world / result.stdout.strip().splitlines()[-1].removeprefix("Checkpoint ")


def evaluate(folder: Path, *words: object, method: str = "sft", model: str = "tiny") -> Result:
    return call(
        "eval", method, "hotpotqa", "--checkpoint", folder, "--data-dir", "data", "--model", model, *words
    )


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def record_in(folder: str) -> Any:
    (path,) = Path(folder).glob("**/run.json")
    return read_record(path)


# Trained once, used again


def test_a_checkpoint_is_used_again(checkpoint: Path) -> None:
    before = stamps(checkpoint)
    records = []
    for folder, words in (("r1", ("--limit", "2")), ("r2", ("--limit", "3", "-o", "max_new_tokens=3"))):
        result = call("run", "-m", "sft", "-t", "hotpotqa", *SMALL, "--results", folder, *words)
        assert result.exit_code == 0, result.output
        assert "sft on hotpotqa: trained before" in result.stderr
        records.append(record_in(folder))
    assert {**stamps(checkpoint), checkpoint / "lock": 0} == {**before, checkpoint / "lock": 0}
    assert records[0].id != records[1].id
    assert records[0].training == records[1].training
    training = records[0].training
    assert training["train_id"] == checkpoint.name.rpartition("-")[2]
    assert set(training["weights"]) == {"generator"}
    assert training["stages"][0]["kind"] == "sft"
    assert training["stages"][0]["rows"] == training["examples"] == 8
    assert training["stages"][0]["tokens"] > 8 * 50
    assert 0 < training["peak_memory_mb"] < 8_000
    assert training["device"] == "cpu"
    assert training["seconds"] > 0


def test_eval_takes_the_settings_of_training(checkpoint: Path) -> None:
    result = evaluate(checkpoint, "--limit", "2", "--results", "r3")
    assert result.exit_code == 0, result.output
    record = record_in("r3")
    assert record.config["k"] == 2  # the profile smoke, though the default is laptop
    assert record.training is not None
    assert str(checkpoint.parent) not in record.command


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("--limit", "1"), True),
        (("-o", "max_new_tokens=2"), True),
        (("-o", "k=1"), False),
        (("-o", "examples=7"), False),
        (("-o", "sft.learning_rate=2e-3"), False),
        (("--seed", "1"), False),
        (("--model", "other"), False),
        (("--max-prompt-tokens", "1000"), False),
    ],
)
def test_what_training_sees_names_it(checkpoint: Path, change: tuple[str, ...], same: bool) -> None:
    from dataclasses import replace

    from ragtrials.planning import make_plan
    from ragtrials.resources import Resources
    from ragtrials.suite import Conditions, Request

    conditions = Conditions(profile="smoke", model="tiny", device="cpu")
    options: tuple[str, ...] = ()
    if change[0] == "-o":
        options = change[1:]
    else:
        name = change[0].removeprefix("--").replace("-", "_")
        value: Any = change[1] if name == "model" else int(change[1])
        conditions = replace(conditions, **{name: value})
    plan = make_plan(Request("adhoc", "sft", "hotpotqa", conditions, options), Resources(Path("data")))
    assert plan is not None
    assert plan.training is not None
    assert (plan.training.spec.id == checkpoint.name.rpartition("-")[2]) is same


def test_training_again_gives_the_same_weights(checkpoint: Path) -> None:
    manifest = json.loads((checkpoint / "checkpoint.json").read_text())
    weights = next(checkpoint.glob("stages/*/weights/*.safetensors"))
    before, written = weights.read_bytes(), weights.stat().st_mtime_ns
    result = call("train", *SFT, *SMALL, "--overwrite")
    assert result.exit_code == 0, result.output
    assert "trained before" not in result.stderr
    assert weights.stat().st_mtime_ns > written
    assert weights.read_bytes() == before
    again = json.loads((checkpoint / "checkpoint.json").read_text())
    assert (again["train_id"], again["roles"]) == (manifest["train_id"], manifest["roles"])
    log = [json.loads(line)["step"] for line in (checkpoint / "log.jsonl").read_text().splitlines()]
    assert log == [1, 2]  # the log of the first training is gone


def test_no_place_of_this_machine_stands_in_a_checkpoint(checkpoint: Path, world: Path) -> None:
    for file in checkpoint.rglob("*"):
        if file.suffix in (".json", ".jsonl"):
            assert str(world) not in file.read_text()


# What does not fit


def damaged(checkpoint: Path, change: Callable[[Path], None]) -> Path:
    """A copy of a checkpoint, changed."""
    copy = checkpoint.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(checkpoint, copy)
    change(copy)
    return copy


def edit_manifest(**changes: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        manifest = json.loads((folder / "checkpoint.json").read_text())
        (folder / "checkpoint.json").write_text(json.dumps({**manifest, **changes}))

    return edit


def drop(pattern: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        (found,) = folder.glob(pattern)
        shutil.rmtree(found) if found.is_dir() else found.unlink()

    return remove


def change_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (found,) = folder.glob("stages/*/weights/*.safetensors")
        found.write_bytes(change(found.read_bytes()))

    return write


WEIGHTS = "the weights in stages/sft/weights are not those that training wrote; copy the folder again"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("checkpoint.json"), "checkpoint.json is missing; the training has not finished"),
        (lambda f: (f / "checkpoint.json").write_text("{"), "checkpoint.json: damaged manifest"),
        (lambda f: (f / "checkpoint.json").write_bytes(b"\xff"), "checkpoint.json: damaged manifest"),
        (lambda f: (f / "checkpoint.json").write_text("[]"), "checkpoint.json: expected a table of keys"),
        (edit_manifest(format=9), "checkpoint of format 9; this version reads 1"),
        (edit_manifest(surprise=1), "surprise"),
        (edit_manifest(config={"k": "many"}), "config"),
        (drop("stages/sft/weights"), "the weights of generator, stages/sft/weights, are missing"),
        (drop("stages/sft/weights/adapter_config.json"), WEIGHTS),
        (change_bytes(lambda old: old[:-1]), WEIGHTS),
        (change_bytes(lambda old: old[:-1] + bytes([old[-1] ^ 1])), WEIGHTS),
    ],
)
def test_a_damaged_checkpoint_is_one_line(
    checkpoint: Path, change: Callable[[Path], None], message: str
) -> None:
    line = refused(evaluate(damaged(checkpoint, change)))
    assert message in line
    assert "copy" in line  # the folder's name


def test_a_question_is_answered_by_a_checkpoint(checkpoint: Path) -> None:
    """The trained model is shown and said what it is in evaluation: the settings come with the checkpoint."""
    words = ("ask", "Who?", "-m", "sft", "-t", "hotpotqa", "--data-dir", "data", "--model", "tiny")
    trained = call(*words, "--checkpoint", checkpoint)
    assert trained.exit_code == 0, trained.output
    assert "retrieve k=2" in trained.stdout
    untrained = call(*words, "--profile", "smoke")
    assert "retrieve k=2" in untrained.stdout
    refused(call(*words, "--checkpoint", checkpoint / "stages"))
    assert "was trained for method sft" in refused(
        call("ask", "Who?", "-m", "ra_dit", *words[4:], "--checkpoint", checkpoint)
    )


def test_a_checkpoint_of_another_method(checkpoint: Path) -> None:
    assert "was trained for method sft, not ra_dit" in refused(evaluate(checkpoint, method="ra_dit"))
    assert "was trained for method sft, not vanilla_rag" in refused(
        evaluate(checkpoint, method="vanilla_rag")
    )


def test_a_checkpoint_of_another_model(checkpoint: Path) -> None:
    line = refused(evaluate(checkpoint, model="other"))
    assert "was trained from model tiny (digest" in line
    assert "not from other (" in line
    assert "--model" in line


def test_no_checkpoint_at_all() -> None:
    assert "--checkpoint nowhere: no such folder" in refused(evaluate(Path("nowhere")))


def test_a_checkpoint_has_its_own_profile(checkpoint: Path) -> None:
    line = refused(evaluate(checkpoint, "--profile", "smoke"))
    assert "a checkpoint has its settings with it" in line


# What cannot be trained


def test_a_method_that_is_not_trained() -> None:
    line = refused(call("train", "vanilla_rag", "hotpotqa", *SMALL))
    assert "method vanilla_rag is not trained: `ragtrials run -m vanilla_rag -t hotpotqa`" in line


def test_an_empty_training_part(tmp_path: Path) -> None:
    data = hotpot_folder(tmp_path / "data", train=0)
    line = refused(call("train", *SFT, "--profile", "smoke", "--data-dir", data, "--model", "tiny"))
    assert "hotpotqa" in line
    assert "train" in line


def test_a_task_without_a_training_part(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"id": "1", "question": "Where?", "answers": ["Here"]}) + "\n")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "p", "title": "Here", "text": "It is here."}) + "\n")
    line = refused(
        call("train", "sft", f"jsonl:{file}", "--profile", "smoke", "--model", "tiny", "--corpus", corpus)
    )
    assert "has no training part: train sft on another task" in line


def test_a_model_without_a_chat_template(tmp_path: Path) -> None:
    bare = build_tiny_model(tmp_path / "bare", hidden=32, chat_template=None)
    line = refused(call("train", *SFT, "--profile", "smoke", "--data-dir", "data", "--model", bare))
    assert "model bare has no chat template" in line


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sft.lora.targets=w_proj", "model tiny has no linear map called w_proj"),
        ("sft.lora.last_layers=9", "lora.last_layers is 9, but model tiny has 2 layers"),
        ("sft.micro_batch=3", "micro_batch (3) must divide batch_size (4)"),
    ],
)
def test_settings_that_do_not_fit(option: str, message: str) -> None:
    assert message in refused(call("train", *SFT, *SMALL, "-o", option))


def test_nothing_to_prefer(tmp_path: Path) -> None:
    """A random model never says a town, so every answer is worth nothing."""
    result = call("train", "ddr_gen", "hotpotqa", *SMALL, "-o", "examples=2")
    assert "all 2 questions of stage round1-generator are tied" in refused(result)


@pytest.mark.parametrize("command", [("run", "-m", "sft", "-t", "hotpotqa"), ("train", *SFT)])
def test_a_loss_that_is_no_number_is_a_failed_run(command: tuple[str, ...]) -> None:
    result = call(*command, *SMALL, "-o", "sft.tuning=full", "-o", "sft.learning_rate=1e30")
    assert result.exit_code == 1, result.output
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert "is not a number at step" in line
    assert "lower learning_rate" in line


def test_records_of_before_still_load() -> None:
    stored = sorted((Path(__file__).parents[2] / "results").rglob("run.json"))
    assert stored
    records = [read_record(path) for path in stored]
    assert [record for record in records if record.training is None]
