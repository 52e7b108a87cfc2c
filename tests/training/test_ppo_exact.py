"""PPO's step against a naive one in float64, against the plain policy gradient, and against itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
import torch
from naive_ppo import NaivePpo
from toy_agents import FREE, build_toy_model, lora, made_up_turns, models_of, numbers, step_of, stirred

from ragtrials.training.actor_critic import ActorCritic
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo import PPO
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.settings import Lora
from ragtrials.training.turns import Turn

CUT = Lora(r=4, alpha=8, targets=("q_proj", "v_proj", "o_proj", "down_proj"), last_layers=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toy_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def plain_model(model: Path) -> Any:
    """The base model in float64, in which nothing was ever put."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model, dtype=torch.float64).eval()


def naive_of(models: ActorCritic, model: Path, settings: Ppo, seed: int) -> NaivePpo:
    plain = plain_model(model)
    base = {name: p.detach() for name, p in plain.named_parameters()}
    trained = {name: p.detach().double().requires_grad_() for name, p in models.parameters().items()}
    scale = settings.update.lora.alpha / settings.update.lora.r
    return NaivePpo(plain, base, trained, {}, settings, seed, scale, settings.kl.init)


BUSY = Ppo(
    steps=3,
    temperature=0.7,
    gamma=0.98,
    lam=0.9,
    clip=0.02,
    value_clip=0.02,
    value_weight=0.5,
    entropy_weight=0.02,
    kl=KlControl(init=0.3),
    update=lora(lora=CUT, epochs=2, batch_size=4, micro_batch=2, weight_decay=0.1),
)
"""Everything is on, and no number is one that hides another."""
VARIANTS = {
    "lora, cut": BUSY,
    "lora": replace(BUSY, update=replace(BUSY.update, lora=replace(CUT, last_layers=None))),
    "full": replace(BUSY, update=replace(BUSY.update, tuning="full")),
    "episodes": replace(BUSY, credit="episode", kl_at="end", whiten="role", constrained=False),
    "bare": replace(BUSY, whiten="none", clip=None, value_clip=None, entropy_weight=0.0),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_step_is_that_of_the_naive_algorithm(model: Path, name: str) -> None:
    """Two epochs of three minibatches, the last one smaller, in micro-batches of two."""
    settings = VARIANTS[name]
    turns = made_up_turns(episodes=3)[:-1] + made_up_turns(episodes=4, seed=9)[-2:]
    models = stirred(models_of(model, settings))
    naive = naive_of(models, model, settings, seed=3)
    start = numbers(models)
    ppo, scalars = step_of(models, turns, seed=3)
    naive.step(turns)
    assert naive.updates == 6
    assert scalars["kl"] != 0
    assert settings.clip is None or 0 < scalars["clip_fraction"] < 1
    now = numbers(models)
    assert max(float((now[n] - start[n]).abs().max()) for n in now) > 1e-3
    for n, expected in naive.trained.items():
        torch.testing.assert_close(now[n].double(), expected.detach(), rtol=0, atol=1e-5, msg=n)
    # AdamW hides the size of gradients, but its first moment is a mean of them.
    order = sorted(naive.trained, key=lambda n: naive.trained[n].dim() <= 1)
    kept = ppo.state()["optimizer"]["state"]
    for number, n in enumerate(order):
        first = kept[number]["exp_avg"].double()
        torch.testing.assert_close(first, naive.moments[n][0], rtol=1e-4, atol=1e-6, msg=n)


# The plain policy gradient


@pytest.mark.parametrize("tuning", ["lora", "full"])
def test_bare_ppo_is_the_plain_policy_gradient(model: Path, tuning: Any) -> None:
    """No clip, one epoch, one minibatch, no KL, lambda and gamma 1, nothing whitened: -(R - V) d log pi."""
    update = lora(tuning=tuning, lora=CUT, clip=1e9, batch_size=63, micro_batch=3)
    settings = Ppo(
        steps=1, lam=1.0, gamma=1.0, whiten="none", clip=None, value_weight=0.0, kl=FREE, update=update
    )
    turns = made_up_turns()
    models = stirred(models_of(model, settings))
    with torch.no_grad():
        models.head.weight.zero_()
        models.head.bias.fill_(0.375)
    naive = naive_of(models, model, settings, seed=3)
    ppo, _ = step_of(models, turns)
    said = [naive.read(turn, naive.trained) for turn in turns]
    tokens = sum(len(logprobs) for logprobs, _, _ in said)
    loss = sum(
        -(turn.reward - float(value.detach())) * logprob
        for turn, (logprobs, _, values) in zip(turns, said, strict=True)
        for logprob, value in zip(logprobs, values, strict=True)
    )
    names = sorted((n for n in naive.trained if "value" not in n), key=lambda n: naive.trained[n].dim() <= 1)
    gradients = torch.autograd.grad(loss / tokens, [naive.trained[n] for n in names])
    kept = ppo.state()["optimizer"]["state"]
    assert max(float(gradient.abs().max()) for gradient in gradients) > 1e-3
    for number, (n, gradient) in enumerate(zip(names, gradients, strict=True)):
        taken = kept[number]["exp_avg"].double() / 0.1
        torch.testing.assert_close(taken, gradient, rtol=1e-4, atol=1e-6, msg=n)


# What must not matter


def after_a_step(model: Path, settings: Ppo, turns: Sequence[Turn]) -> dict[str, torch.Tensor]:
    models = stirred(models_of(model, settings))
    step_of(models, turns)
    return numbers(models)


@pytest.mark.parametrize("tuning", ["lora", "full"])
def test_one_by_eight_is_eight_by_one(model: Path, tuning: Any) -> None:
    """In all turns at once, and in steps of eight of which the last one has fewer."""
    turns = made_up_turns(episodes=5)
    update = replace(BUSY.update, tuning=tuning, batch_size=8, lora=replace(CUT, last_layers=None))
    wide, narrow, three = (
        after_a_step(model, replace(BUSY, update=replace(update, micro_batch=size)), turns)
        for size in (8, 1, 2)
    )
    for n, weight in wide.items():
        torch.testing.assert_close(weight, narrow[n], rtol=0, atol=1e-5, msg=n)
        torch.testing.assert_close(weight, three[n], rtol=0, atol=1e-5, msg=n)


def test_the_cut_does_not_matter(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = after_a_step(model, BUSY, made_up_turns())
    monkeypatch.setattr("ragtrials.training.backbone.can_cut", lambda _: False)
    assert models_of(model, BUSY)._actor.trunk.depth == 0
    whole = after_a_step(model, BUSY, made_up_turns())
    for n, weight in cut.items():
        torch.testing.assert_close(weight, whole[n], rtol=0, atol=1e-6, msg=n)


def test_rows_are_read_by_length_but_stand_where_they_stood(model: Path) -> None:
    """Other micro-batches of the same rows: what is said of each turn stays the same."""
    models = stirred(models_of(model, BUSY))
    turns = made_up_turns()
    ppo = PPO(models, BUSY, 0)
    with torch.no_grad():
        buffer = ppo._look(turns)
        back = ppo._look(turns[::-1])
    for one, other in ((buffer.old, back.old), (buffer.values, back.values), (buffer.mask, back.mask)):
        torch.testing.assert_close(one, other.flip(0), rtol=0, atol=1e-6)
    batches = list(models.micro_batches(buffer.rows))
    assert sorted(row.place for batch in batches for row in batch) == list(range(len(turns)))
    lengths = [len(batch[0].seen) for batch in batches]
    assert lengths == sorted(lengths, reverse=True)


# Little to learn from


@pytest.mark.parametrize("whiten", ["all", "role", "none"])
@pytest.mark.parametrize(
    "turns",
    [
        pytest.param([Turn("second", n, (5, 6), (3,), 0.5, (3, 7)) for n in range(6)], id="all empty"),
        pytest.param([Turn("second", n, (5, n + 4), (3,), 0.5, (3,)) for n in range(4)], id="no choice"),
        pytest.param([Turn("first", 0, (5,), (9,), 1.0)], id="one token"),
        pytest.param(
            [Turn(r, n, (5,), (9, 8, 3), 1.0) for n in range(3) for r in ("first", "third")], id="equal"
        ),
    ],
)
def test_nothing_becomes_nan(model: Path, whiten: Any, turns: list[Turn]) -> None:
    """Empty selections are one token each, the end of the turn."""
    settings = replace(BUSY, whiten=whiten, credit="episode")
    models = stirred(models_of(model, settings))
    ppo = PPO(models, settings, 0)
    for _ in range(2):
        scalars = ppo.step(turns)
        assert all(map(isfinite, scalars.values())), scalars
    assert all(bool(weight.isfinite().all()) for weight in numbers(models).values())
