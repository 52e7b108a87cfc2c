"""Embeddings of added tokens: trained by the plain loss, and by it alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny import build_tiny_model
from torch.nn.functional import cross_entropy
from toy_training import toy_run

from ragtrials.llm.build import load_engine
from ragtrials.llm.loading import added_ids, load_model
from ragtrials.program import Evidence, Generate, Token, user
from ragtrials.training import _trl, weights
from ragtrials.training.rows import Demonstration
from ragtrials.training.run import TrainRun
from ragtrials.training.scalars import read_log
from ragtrials.training.settings import Lora, Optimisation
from ragtrials.training.stages import sft

TOKENS = ("[Yes]", "[No]", "<paragraph>", "</paragraph>")
SETTINGS = Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=6, micro_batch=2, save_steps=9)


def row(word: str, token: str) -> Demonstration:
    passage = (Token("<paragraph>"), Evidence(f"{word} " * (1 + len(word))), Token("</paragraph>"))
    return Demonstration((user(f"Is it {word}?"),), (*passage, word, Token(token)))


ROWS = [row(word, TOKENS[n % 2]) for n, word in enumerate(("a", "Berlin", "yes", "no", "Paris", "1,234"))]


def gemma(folder: Path) -> Path:
    """A model that squeezes its logits, and ties its embeddings."""
    from transformers import AutoTokenizer, Gemma2Config, Gemma2ForCausalLM

    build_tiny_model(folder, hidden=32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = Gemma2Config(
            vocab_size=len(AutoTokenizer.from_pretrained(folder)),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=16,
            initializer_range=0.3,
            final_logit_softcapping=2.0,
        )
        Gemma2ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["untied", "tied", "gemma"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / str(request.param)
    if request.param == "gemma":
        return gemma(folder)
    return build_tiny_model(folder, hidden=32, tied=request.param == "tied")


def new_run(folder: Path, model: Path) -> TrainRun:
    return toy_run(folder, model, [], tokens=TOKENS)


def plain_loss(model: Any, rows: list[dict[str, list[int]]]) -> torch.Tensor:
    """The mean cross-entropy of all labelled tokens, row by row."""
    total, count = torch.zeros(()), 0
    for one in rows:
        ids, labels = torch.tensor([one["input_ids"]]), torch.tensor([one["labels"]])
        total = total + cross_entropy(model(ids).logits[0, :-1], labels[0, 1:], reduction="sum")
        count += int((labels[:, 1:] != -100).sum())
    return total / count


def test_loss_and_gradients_are_those_of_the_plain_loss(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, torch.Tensor] = {}
    kind = _trl._OutputEmbeddingsSFTTrainer
    step = kind.training_step
    starts: list[dict[str, torch.Tensor]] = []

    def recording(self: Any, model: Any, *rest: Any, **named: Any) -> Any:
        if not starts:
            starts.append({n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad})
        loss = step(self, model, *rest, **named)
        found.update({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
        return loss

    monkeypatch.setattr(kind, "training_step", recording)
    run = new_run(tmp_path, model)
    sft(run, "s", "generator", ROWS, SETTINGS)

    again = weights.load_trainable(run.base, None, SETTINGS, "float32", "cpu", 0)
    named = dict(again.named_parameters())
    with torch.no_grad():
        for name, start in starts[0].items():
            named[name].copy_(start)
    loss = plain_loss(again, [run.encoder.sft(one) for one in ROWS])
    loss.backward()
    log = read_log(tmp_path)["s", 1]
    assert log["loss"] == pytest.approx(loss.item(), rel=1e-4)
    expected = {name: p.grad for name, p in named.items() if p.grad is not None}
    assert found.keys() == expected.keys() == starts[0].keys()
    for name, gradient in expected.items():
        assert torch.allclose(found[name], gradient, rtol=1e-3, atol=1e-6), name
    tokens = [name for name in expected if "token_adapter" in name or "trainable_tokens" in name]
    tied = again.config.tie_word_embeddings
    assert len(tokens) == (1 if tied else 2)
    assert all(expected[name].abs().sum() > 1e-3 for name in tokens)
    norm = torch.stack([gradient.norm() for gradient in expected.values()]).norm()
    assert log["grad_norm"] == pytest.approx(norm.item(), rel=1e-3)
    assert 0 <= log["mean_token_accuracy"] <= 1


def test_the_loss_of_held_out_rows_is_the_plain_loss(tmp_path: Path, model: Path) -> None:
    run = new_run(tmp_path, model)
    still = replace(SETTINGS, learning_rate=1e-12)
    sft(run, "s", "generator", ROWS, still, held_out=ROWS[:1])
    plain = plain_loss(load_model(run.base, "float32", "cpu"), [run.encoder.sft(ROWS[0])])
    evaluated = [s["eval_loss"] for s in read_log(tmp_path).values() if "eval_loss" in s]
    assert evaluated == [pytest.approx(plain.item(), rel=1e-4)]


def test_micro_batches_and_checkpointing_change_nothing(tmp_path: Path, model: Path) -> None:
    """All weights after one step, within rounding."""

    def trained(name: str, **changes: Any) -> dict[str, torch.Tensor]:
        run = new_run(tmp_path / name, model)
        sft(run, "s", "generator", ROWS, replace(SETTINGS, learning_rate=1e-4, **changes))
        return load_file(run.policies["generator"] / "adapter_model.safetensors")

    one = trained("one", micro_batch=1)
    for other in (trained("six", micro_batch=6), trained("saving", gradient_checkpointing=True)):
        assert one.keys() == other.keys()
        for name, tensor in one.items():
            assert torch.allclose(tensor, other[name], rtol=0, atol=1e-5), name


def test_the_tokens_are_learnt_and_saved_with_the_adapter(tmp_path: Path, model: Path) -> None:
    """An engine that reads the folder finds the shown tokens likelier, and no other ids were saved."""
    rows = [replace(one, completion=one.completion[-1:]) for one in ROWS]
    run = new_run(tmp_path, model)
    asked = [Generate(one.messages, max_new_tokens=1, watch=(one.completion[0].name,)) for one in rows]

    def likelihoods() -> list[float]:
        engine = load_engine(
            str(model), dtype="float32", device="cpu", batch_size=8, policies=run.policies, tokens=TOKENS
        )
        return [reply.watched[0][0] for reply in engine.generate(asked, [0] * 6)]

    before = likelihoods()
    sft(run, "s", "generator", rows, replace(SETTINGS, micro_batch=6, epochs=20, learning_rate=1e-2))
    assert all(after > first + 1 for first, after in zip(before, likelihoods(), strict=True))
    config = json.loads((run.policies["generator"] / "adapter_config.json").read_text())
    assert all(ids == list(added_ids(run.base)) for ids in config["trainable_token_indices"].values())
