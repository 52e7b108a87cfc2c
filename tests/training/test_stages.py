"""Stages: gradients add up, kills change nothing, and the reference of DPO is the role's own start."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import build_tiny_model
from toy_training import letter_examples, toy_run

from ragtrials.errors import RunFailure, UserError
from ragtrials.program import Completion, Evidence, Token, user
from ragtrials.training import stages
from ragtrials.training.rows import Demonstration, Preference
from ragtrials.training.run import TrainRun
from ragtrials.training.scalars import read_log
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation
from ragtrials.training.stages import dpo, sft

LORA = Optimisation(
    lora=Lora(r=4, alpha=8, dropout=0.1),
    learning_rate=1e-3,
    epochs=2,
    batch_size=4,
    micro_batch=2,
    save_steps=1,
)
FULL = replace(LORA, tuning="full")
WORDS = ("yes", "no, never", "Berlin", "in the capital of France", "1,234", "a b c", "x", "Paris")
ROWS = [Demonstration((user(f"Where was {word} born?" * (1 + n % 3)),), word) for n, word in enumerate(WORDS)]
PAIRS = [Preference(row.messages, row.completion, WORDS[n - 1]) for n, row in enumerate(ROWS)]
STEPS = 4  # eight rows, four a step, twice

Train = Callable[[TrainRun], None]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are then made in one order, and a forked process needs no threads that were not forked."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def new_run(folder: Path, model: Path) -> TrainRun:
    return toy_run(folder, model, letter_examples())


def weights_of(run: TrainRun, role: str = "generator") -> dict[str, torch.Tensor]:
    (file,) = run.policies[role].glob("*.safetensors")
    return load_file(file)


def bytes_of(run: TrainRun) -> list[tuple[str, bytes]]:
    """The names and contents of all weights of a training."""
    files = sorted(run.folder.glob("stages/*/weights/*.safetensors"))
    return [(str(file.relative_to(run.folder)), file.read_bytes()) for file in files]


# Gradient accumulation


@pytest.mark.parametrize("tuning", ["full", "lora"])
@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_one_by_eight_is_eight_by_one(tmp_path: Path, model: Path, kind: str, tuning: Any) -> None:
    """After two steps, the second one of fewer rows, of unequal lengths."""
    trained = []
    for micro in (8, 1):
        run = new_run(tmp_path / str(micro), model)
        settings = Optimisation(
            tuning=tuning, lora=Lora(r=4), learning_rate=1e-4, batch_size=8, micro_batch=micro, save_steps=9
        )
        if kind == "sft":
            sft(run, "s", "generator", [*ROWS, *ROWS[:5]], settings)
        else:
            dpo(run, "s", "generator", [*PAIRS, *PAIRS[:5]], settings, beta=0.1)
        trained.append(weights_of(run))
        assert run.report().stages[0].steps == 2
    start = load_file(model / "model.safetensors")
    at_once, added_up = trained
    assert at_once.keys() == added_up.keys()
    for name, weights in at_once.items():
        assert torch.allclose(weights, added_up[name], rtol=0, atol=1e-5), name
    if tuning == "full":
        assert max((at_once[name] - start[name]).abs().max() for name in at_once) > 1e-4
    else:
        assert max(w.abs().max() for name, w in at_once.items() if "lora_B" in name) > 1e-4


# Kills


def two_rounds(run: TrainRun) -> None:
    """DPO of a trained adapter, which trl compares with a frozen copy of it."""
    sft(run, "first", "generator", ROWS, LORA)
    dpo(run, "second", "generator", PAIRS, LORA, beta=0.1)


TOKENS = ("[Retrieval]", "<paragraph>", "</paragraph>", "[Utility:5]")
PASSAGE = (Token("[Retrieval]"), Token("<paragraph>"), Evidence("Ann was here."), Token("</paragraph>"))
SPOKEN = [
    replace(row, completion=(*PASSAGE, word, Token("[Utility:5]")))
    for row, word in zip(ROWS, WORDS, strict=True)
]


def tokened(run: TrainRun) -> TrainRun:
    """The training, of a model that gets control tokens."""
    run._around = replace(run._around, base=replace(run.base, tokens=TOKENS))
    return run


TRAININGS: dict[str, tuple[Train, str]] = {
    "sft full": (lambda run: sft(run, "s", "generator", ROWS, FULL), "s"),
    "sft lora": (lambda run: sft(run, "s", "generator", ROWS, LORA), "s"),
    "dpo lora": (two_rounds, "second"),
    "dpo full": (lambda run: dpo(run, "s", "generator", PAIRS, FULL, beta=0.1), "s"),
    "tokens": (lambda run: sft(tokened(run), "s", "generator", SPOKEN, LORA), "s"),
    "tokens full": (lambda run: sft(tokened(run), "s", "generator", SPOKEN, FULL), "s"),
    "tokens picked": (
        lambda run: sft(tokened(run), "s", "generator", SPOKEN, LORA, held_out=SPOKEN[:3]),
        "s",
    ),
    "picked": (lambda run: sft(run, "s", "generator", ROWS, LORA, held_out=ROWS[:3]), "s"),
}


class PowerCut(BaseException):
    """Ends a training where it stands."""


def cut_power(*_: Any) -> None:
    raise PowerCut


def dying(run: TrainRun, stage: str, step: int, die: Callable[[], None]) -> TrainRun:
    """The training, which dies when that step is logged: just before it is saved."""
    log_step = run.log_step

    def log_or_die(now: str, scalars: Mapping[str, float], at: int) -> None:
        log_step(now, scalars, at)
        if (now, at) == (stage, step):
            die()

    run.log_step = log_or_die  # type: ignore[method-assign]
    return run


def kill_at(folder: Path, model: Path, train: Train, stage: str, step: int) -> None:
    """Train in a process of its own that SIGKILL ends in the middle."""
    child = os.fork()
    if child == 0:
        try:
            train(dying(new_run(folder, model), stage, step, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, model: Path
) -> Callable[[str], list[tuple[str, bytes]]]:
    """The weights of an undisturbed training, made once."""
    known: dict[str, list[tuple[str, bytes]]] = {}

    def weights(name: str) -> list[tuple[str, bytes]]:
        if name not in known:
            run = new_run(tmp_path_factory.mktemp("whole"), model)
            TRAININGS[name][0](run)
            known[name] = bytes_of(run)
        return known[name]

    return weights


@pytest.mark.parametrize("name", TRAININGS)
def test_a_killed_training_ends_with_the_same_weights(
    tmp_path: Path, model: Path, undisturbed: Callable[[str], list[tuple[str, bytes]]], name: str
) -> None:
    train, stage = TRAININGS[name]
    kill_at(tmp_path, model, train, stage, step=3)
    saved = tmp_path / "stages" / stage / "steps"
    assert (saved / "checkpoint-2" / "complete.json").is_file()
    assert not (tmp_path / "stages" / stage / "stage.json").exists()
    run = new_run(tmp_path, model)
    train(run)
    assert bytes_of(run) == undisturbed(name)
    assert run.report().stages[-1].steps == STEPS
    assert not saved.exists()
    again = [step for (name, step) in _logged(tmp_path) if name == stage]
    assert again.count(1) == again.count(2) == 1  # what was saved was not done again
    assert again.count(3) == 2


def _logged(folder: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [(line["stage"], line["step"]) for line in lines if "loss" in line]


def test_a_step_that_was_being_saved_is_not_gone_on_from(
    tmp_path: Path, model: Path, undisturbed: Callable[[str], list[tuple[str, bytes]]]
) -> None:
    train, stage = TRAININGS["dpo lora"]
    with pytest.raises(PowerCut):
        train(dying(new_run(tmp_path, model), stage, 4, cut_power))
    newest = tmp_path / "stages" / stage / "steps" / "checkpoint-3"
    (newest / "complete.json").unlink()  # it is written last
    file = newest / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:100])
    run = new_run(tmp_path, model)
    train(run)
    assert bytes_of(run) == undisturbed("dpo lora")
    assert [step for (name, step) in _logged(tmp_path) if name == stage] == [1, 2, 3, 4, 3, 4]


def test_a_kill_after_the_last_step_costs_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: Callable[[str], Any]
) -> None:
    from ragtrials.training import weights

    train, stage = TRAININGS["sft lora"]
    with monkeypatch.context() as patch:
        patch.setattr(weights, "save_weights", cut_power)
        with pytest.raises(PowerCut):
            train(new_run(tmp_path, model))
    run = new_run(tmp_path, model)
    train(run)
    assert bytes_of(run) == undisturbed("sft lora")
    (report,) = run.report().stages
    assert report.steps == STEPS
    assert report.last.keys() >= {"loss", "grad_norm", "mean_token_accuracy"}
    assert report.loss == pytest.approx(
        sum(read_log(tmp_path)[stage, step]["loss"] for step in range(1, STEPS + 1)) / STEPS, rel=1e-5
    )


def test_a_finished_stage_is_not_done_again(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = new_run(tmp_path, model)
    sft(first, "s", "generator", ROWS, LORA)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "stages").rglob("*")}
    monkeypatch.setattr(stages, "_optimise", lambda *_: pytest.fail("trained again"))
    run = new_run(tmp_path, model)
    sft(run, "s", "generator", ROWS, LORA)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "stages").rglob("*")} == before
    assert run.policies == first.policies
    assert run.report().stages == first.report().stages


# DPO's reference


def first_losses(run: TrainRun) -> dict[str, tuple[float, float]]:
    """Loss and margin of each DPO stage at its first step."""
    return {
        stage: (scalars["loss"], scalars["rewards/margins"])
        for (stage, step), scalars in read_log(run.folder).items()
        if step == 1 and "rewards/margins" in scalars
    }


def test_the_policy_starts_as_its_own_reference(tmp_path: Path, model: Path) -> None:
    """So the loss of the first step is ln 2, with any adapter to begin with and in every round."""
    run = new_run(tmp_path, model)
    settings = replace(LORA, learning_rate=1e-2)
    dpo(run, "one", "generator", PAIRS, settings, beta=0.1)
    dpo(run, "two", "generator", PAIRS, settings, beta=0.1)
    dpo(run, "whole", "other", PAIRS, replace(settings, tuning="full"), beta=0.1)
    losses = first_losses(run)
    assert losses.keys() == {"one", "two", "whole"}
    for loss, margin in losses.values():
        assert loss == pytest.approx(log(2), abs=1e-5)
        assert margin == pytest.approx(0.0, abs=1e-5)
    # The second round began with what the first had learnt, not with the base model.
    report = run.report().stages
    assert report[0].last["loss"] < log(2) - 0.01
    first, second = (
        load_file(run.folder / "stages" / s / "weights/adapter_model.safetensors") for s in ("one", "two")
    )
    moved = max((second[name] - first[name]).abs().max() for name in first)
    assert moved > 0
    assert all(
        torch.nn.functional.cosine_similarity(first[n].flatten(), second[n].flatten(), dim=0) > 0.5
        for n in first
    )


def test_an_adapter_folder_holds_one_adapter_and_no_place(tmp_path: Path, model: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    run = new_run(tmp_path / "here", model)
    two_rounds(run)
    folder = run.policies["generator"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    config = (folder / "adapter_config.json").read_text()
    assert json.loads(config)["base_model_name_or_path"] == model.name
    assert str(tmp_path) not in config
    assert str(model) not in config
    loaded = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), folder)
    assert list(loaded.peft_config) == ["default"]
    assert max(w.abs().max() for n, w in loaded.named_parameters() if "lora_B" in n) > 0


@pytest.mark.parametrize(
    ("beta", "chosen", "rejected", "margin", "loss"),
    [(0.1, 2.0, -3.0, 0.5, 0.474077), (0.1, -2.0, 2.0, -0.4, 0.913015), (0.5, 2.0, -3.0, 2.5, 0.078890)],
)
def test_the_loss_of_known_log_ratios(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    beta: float,
    chosen: float,
    rejected: float,
    margin: float,
    loss: float,
) -> None:
    """The reference is moved away from the policy by as much (specification of RAG-DDR, numbers of DPO)."""
    from trl import DPOTrainer

    real = DPOTrainer.compute_ref_log_probs

    def moved(self: Any, model: Any, inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        better, worse = real(self, model, inputs)
        return better - chosen, worse - rejected

    monkeypatch.setattr(DPOTrainer, "compute_ref_log_probs", moved)
    run = new_run(tmp_path, model)
    dpo(run, "d", "generator", PAIRS[:4], replace(FULL, epochs=1), beta=beta)
    assert first_losses(run)["d"] == (pytest.approx(loss, abs=1e-4), pytest.approx(margin, abs=1e-4))


# What can go wrong


def test_roles_are_trained_apart(tmp_path: Path, model: Path) -> None:
    run = new_run(tmp_path, model)
    sft(run, "a", "generator", ROWS, LORA)
    sft(run, "b", "refiner", ROWS, LORA)
    assert run.policies == {
        "generator": tmp_path / "stages/a/weights",
        "refiner": tmp_path / "stages/b/weights",
    }
    assert [stage.role for stage in run.report().stages] == ["generator", "refiner"]


def test_no_rows_are_refused(tmp_path: Path, model: Path) -> None:
    with pytest.raises(UserError, match="training toy: stage s has nothing to train on"):
        sft(new_run(tmp_path, model), "s", "generator", [], LORA)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"lora": Lora(targets=("q_proj", "w_proj"))},
            "lora.targets: model .* has no linear map called w_proj",
        ),
        ({"lora": Lora(targets=("norm",))}, "lora.targets: model .* has no linear map called norm"),
        ({"lora": Lora(targets=("lm_head",))}, "lora.targets: the output layer cannot have an adapter"),
        ({"lora": Lora(last_layers=3)}, "lora.last_layers is 3, but model .* has 2 layers"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(
    tmp_path: Path, model: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        sft(new_run(tmp_path, model), "s", "generator", ROWS, replace(LORA, **changes))
    assert "\n" not in str(caught.value)


def test_only_the_last_layers_are_adapted(tmp_path: Path, model: Path) -> None:
    run = new_run(tmp_path, model)
    sft(run, "s", "generator", ROWS, replace(LORA, lora=Lora(r=2, targets=ALL_LINEAR, last_layers=1)))
    assert all(".layers.1." in name for name in weights_of(run))
    assert run.report().stages[0].parameters == sum(w.numel() for w in weights_of(run).values())
    config = json.loads((run.policies["generator"] / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(ALL_LINEAR)  # so that the digest is that of every process


@pytest.mark.parametrize(("first", "second"), [(LORA, FULL), (FULL, LORA)])
def test_adapters_and_whole_models_do_not_mix(
    tmp_path: Path, model: Path, first: Optimisation, second: Optimisation
) -> None:
    run = new_run(tmp_path, model)
    sft(run, "a", "generator", ROWS, first)
    with pytest.raises(UserError, match=r"set tuning=(lora|full) for both stages"):
        sft(run, "b", "generator", ROWS, second)


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path, model: Path) -> None:
    run = new_run(tmp_path, model)
    with pytest.raises(RunFailure, match=r"is not a number at step [1-4]: lower learning_rate"):
        sft(run, "s", "generator", ROWS, replace(FULL, learning_rate=1e30))
    saved = sorted((tmp_path / "stages/s/steps").glob("checkpoint-*/model.safetensors"))
    assert all(torch.isfinite(w).all() for file in saved for w in load_file(file).values())


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nSee docs"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
    ],
)
def test_memory_that_ran_out_is_said_in_one_line(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    monkeypatch.setattr(stages, "_optimise", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(RunFailure) as caught:
        sft(new_run(tmp_path, model), "s", "generator", ROWS, LORA)
    assert str(caught.value) == (
        "stage s ran out of memory with 2 rows at once: lower micro_batch, or set gradient_checkpointing=true"
    )


def test_any_other_error_is_no_lack_of_memory(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_optimise", lambda *_: (_ for _ in ()).throw(RuntimeError("shapes")))
    with pytest.raises(RuntimeError, match="shapes"):
        sft(new_run(tmp_path, model), "s", "generator", ROWS, LORA)


def test_checkpointed_gradients_are_the_gradients(tmp_path: Path, model: Path) -> None:
    plain, saving = new_run(tmp_path / "plain", model), new_run(tmp_path / "saving", model)
    settings = replace(LORA, lora=Lora(r=4), learning_rate=1e-4)
    sft(plain, "s", "generator", ROWS, settings)
    sft(saving, "s", "generator", ROWS, replace(settings, gradient_checkpointing=True))
    for name, weights in weights_of(plain).items():
        assert torch.allclose(weights, weights_of(saving)[name], atol=1e-5), name


def test_the_best_step_counts(tmp_path: Path, model: Path) -> None:
    """Trained on one answer and judged by another, the first step hurts least."""
    run = new_run(tmp_path, model)
    chat = (user("Where?"),)
    wrong = [Demonstration(chat, Completion("Paris"))] * 16
    right = [Demonstration(chat, "yes")]
    sft(run, "s", "generator", wrong, replace(FULL, learning_rate=1e-2, epochs=1), right)
    losses = {
        step: scalars["eval_loss"]
        for (_, step), scalars in read_log(tmp_path).items()
        if "eval_loss" in scalars
    }
    best = min(losses, key=lambda step: losses[step])
    assert best < max(losses) == 4
    again = new_run(tmp_path / "judge", model)
    again.policies.update(run.policies)
    sft(
        again,
        "s",
        "generator",
        right,
        replace(FULL, learning_rate=1e-9, epochs=1, batch_size=1, micro_batch=1),
    )
    assert again.report().stages[0].loss == pytest.approx(losses[best], rel=1e-3)


def test_held_out_rows_are_looked_at_in_a_training_shorter_than_save_steps(
    tmp_path: Path, model: Path
) -> None:
    run = new_run(tmp_path, model)
    sft(run, "s", "generator", ROWS, replace(LORA, save_steps=1000), held_out=ROWS[:3])
    assert "eval_loss" in run.report().stages[0].last
