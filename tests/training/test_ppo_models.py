"""The models of PPO: what a critic sees and changes, what the reference is, and whose adapter is whose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy_agents import (
    FREE,
    TEAM,
    build_toy_model,
    lora,
    made_up_turns,
    models_of,
    numbers,
    step_of,
    stirred,
)

from ragtrials.errors import UserError
from ragtrials.llm.hf import HFEngine
from ragtrials.llm.loading import load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.program import Generate, user
from ragtrials.training import ppo
from ragtrials.training.actor_critic import ActorCritic
from ragtrials.training.ppo import PPO
from ragtrials.training.ppo_settings import Critic, Ppo
from ragtrials.training.settings import Lora
from ragtrials.training.turns import Turn

LORA = Ppo(steps=2, kl=FREE, value_weight=1.0, update=lora())
FULL = replace(LORA, update=lora(tuning="full"))
CRITICS = [
    pytest.param(replace(base, critic=Critic(weights, observation)), id=f"{name} {weights} {observation}")
    for name, base in (("lora", LORA), ("full", FULL))
    for weights in ("shared", "adapter", "model")
    for observation in ("local", "central")
    if (name, weights) != ("full", "adapter")
]
TURNS = made_up_turns()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toy_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    return {name for name in before if not torch.equal(before[name], after[name])}


def said(models: ActorCritic, turns: list[Turn]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probabilities, those of the reference, and values of a buffer."""
    with torch.no_grad():
        buffer = PPO(models, models.settings, 0)._look(turns)
    return buffer.old, buffer.reference, buffer.values


# Critics


@pytest.mark.parametrize("settings", CRITICS)
def test_a_critic_learns_and_sees_what_it_should(model: Path, settings: Ppo) -> None:
    models = stirred(models_of(model, settings))
    blind = [replace(turn, before=turn.before[::-1]) for turn in TURNS]
    logprobs, _, values = said(models, TURNS)
    same, _, other = said(models, blind)
    assert torch.equal(logprobs, same)  # the actor never sees `before`
    later = [place for place, turn in enumerate(TURNS) if turn.before]
    if settings.critic.observation == "local":
        assert torch.equal(values, other)
    else:
        assert all(not torch.equal(values[place], other[place]) for place in later)
    start = numbers(models)
    _, scalars = step_of(models, TURNS)
    assert scalars["value_loss"] > 0
    now = numbers(models)
    unread = {name for name in now if "embed_tokens" in name or "lm_head" in name}
    assert {*now} - unread <= moved(start, now)
    _, _, learnt = said(models, TURNS)
    assert not torch.equal(values, learnt)


@pytest.mark.parametrize("settings", CRITICS)
def test_the_critics_loss_moves_the_actor_only_if_they_share(
    model: Path, settings: Ppo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without advantages there is nothing but the critic's loss."""
    monkeypatch.setattr(ppo, "whiten", lambda advantages, *_: torch.zeros_like(advantages))
    models = stirred(models_of(model, settings))
    start = numbers(models)
    logprobs, reference, _ = said(models, TURNS)
    _, scalars = step_of(models, TURNS)
    assert scalars["policy_loss"] == 0
    assert scalars["value_loss"] > 0
    names = moved(start, numbers(models)) - {"value.weight", "value.bias"}
    where = {"shared": "actor.", "adapter": ".ppo_critic.", "model": "critic."}
    assert names
    assert all(where[settings.critic.weights] in name for name in names)
    now, still, _ = said(models, TURNS)
    assert torch.equal(still, reference)
    assert torch.equal(now, logprobs) == (settings.critic.weights != "shared")


# The reference


def test_the_reference_is_the_base_model_for_a_new_adapter(model: Path) -> None:
    models = models_of(model, LORA)
    logprobs, reference, _ = said(models, TURNS)
    assert torch.equal(logprobs, reference)
    for _ in range(3):
        step_of(models, TURNS)
    now, still, _ = said(models, TURNS)
    assert torch.equal(still, reference)
    assert not torch.equal(now, reference)


def test_the_reference_is_a_frozen_copy_of_the_start(model: Path, tmp_path: Path) -> None:
    """Of an adapter that was saved, which is loaded twice, and of which one stays as it was."""
    earlier = stirred(models_of(model, LORA))
    learnt, base, _ = said(earlier, TURNS)
    earlier.actors.save(load_tokenizer(resolve_model(str(model))), tmp_path / "start")
    models = models_of(model, LORA, start={"shared": tmp_path / "start"})
    logprobs, reference, _ = said(models, TURNS)
    assert torch.equal(logprobs, reference)
    assert torch.equal(reference, learnt)
    assert not torch.equal(reference, base)
    for _ in range(3):
        _, scalars = step_of(models, TURNS)
    now, still, _ = said(models, TURNS)
    assert torch.equal(still, reference)
    assert not torch.equal(now, reference)
    assert scalars["kl"] != 0
    models.actors.save(None, tmp_path / "end")
    saved = load_file(tmp_path / "end" / "adapter_model.safetensors")
    assert saved.keys() == load_file(tmp_path / "start" / "adapter_model.safetensors").keys()
    assert len(saved) == len([name for name in numbers(models) if "lora" in name])
    again = models_of(model, LORA, start={"shared": tmp_path / "end"})
    assert torch.equal(said(again, TURNS)[0], now)


def test_the_reference_of_a_whole_model_is_a_copy(model: Path, tmp_path: Path) -> None:
    models = models_of(model, FULL)
    logprobs, reference, _ = said(models, TURNS)
    assert torch.equal(logprobs, reference)
    for _ in range(2):
        step_of(models, TURNS)
    now, still, _ = said(models, TURNS)
    assert torch.equal(still, reference)
    models.actors.save(load_tokenizer(resolve_model(str(model))), tmp_path)
    again, start, _ = said(models_of(model, FULL, start={"shared": tmp_path}), TURNS)
    assert torch.equal(again, now)
    assert torch.equal(start, now)


# Adapters

OWN = {"a": ("first",), "a_b": ("second", "third")}


def test_a_turn_changes_the_adapter_of_its_role_alone(model: Path) -> None:
    models = models_of(model, replace(LORA, critic=Critic("model")), OWN)
    start = numbers(models)
    step_of(models, [turn for turn in TURNS if turn.role == "first"])
    names = {name for name in moved(start, numbers(models)) if name.startswith("actor.")}
    assert names
    assert all(".a." in name.partition(".lora_")[2] for name in names)
    step_of(models, [turn for turn in TURNS if turn.role == "third"])
    assert any(".a_b." in name.partition(".lora_")[2] for name in moved(start, numbers(models)))


def test_adapters_are_saved_apart(model: Path, tmp_path: Path) -> None:
    models = stirred(models_of(model, replace(LORA, critic=Critic("adapter")), OWN))
    folders = models.actors.save(None, tmp_path)
    assert folders == {"first": tmp_path / "a", "second": tmp_path / "a_b", "third": tmp_path / "a_b"}
    first, second = (load_file(folders[role] / "adapter_model.safetensors") for role in TEAM[:2])
    assert first.keys() == second.keys()
    assert not any("ppo_critic" in name for name in first)
    again = models_of(model, LORA, OWN, start={"a": tmp_path / "a", "a_b": tmp_path / "a_b"})
    assert torch.equal(said(again, TURNS)[0], said(models, TURNS)[0])


def test_who_acts_has_a_frozen_adapter(model: Path, tmp_path: Path) -> None:
    earlier = stirred(models_of(model, LORA))
    earlier.actors.save(None, tmp_path / "earlier")
    models = models_of(
        model,
        LORA,
        {"a": ("first",)},
        acting={"second": tmp_path / "earlier", "third": tmp_path / "earlier"},
    )
    assert not any("acting" in name for name in models.parameters())
    assert models.actors.adapters is not None
    assert models.actors.adapters.name("second") == models.actors.adapters.name("third")
    resolved = resolve_model(str(model))
    engine = HFEngine.over(
        models.actors.model,
        resolved,
        load_tokenizer(resolved),
        models.actors.adapters,
        dtype="float32",
        device="cpu",
    )
    asked = [Generate((user("a?"),), role, 8) for role in (*TEAM, "nobody")]
    mine, second, third, nobody = engine.generate(asked, [0] * 4)
    plain = HFEngine(resolved, dtype="float32", device="cpu")
    trained = HFEngine(resolved, dtype="float32", device="cpu", adapters={"second": tmp_path / "earlier"})
    assert mine == nobody == plain.generate(asked[:1], [0])[0]
    assert second == third == trained.generate(asked[1:2], [0])[0]
    assert second.token_ids != mine.token_ids


def test_probabilities_are_those_that_the_engine_sampled_from(model: Path) -> None:
    """Under the temperature, over the whole vocabulary or over the allowed tokens alone."""
    settings = replace(LORA, temperature=0.7, constrained=False, update=lora(lora=Lora(r=4, last_layers=1)))
    models = stirred(models_of(model, settings))
    resolved = resolve_model(str(model))
    engine = HFEngine.over(
        models.actors.model,
        resolved,
        load_tokenizer(resolved),
        models.actors.adapters,
        dtype="float32",
        device="cpu",
    )
    engine.tap = models.tap
    options: dict[str, Any] = {"temperature": 0.7, "logprobs": True}
    asked = [Generate((user("x" * n),), TEAM[n % 3], 2 + n, **options) for n in range(1, 5)]
    asked += [Generate((user("which?"),), role, 1, allowed=("a", "b"), **options) for role in TEAM]
    found = engine.generate(asked, range(len(asked)))
    turns = [
        Turn(g.role, n, c.prompt_ids, c.token_ids, 0.0, engine.allowed_ids(g.allowed))
        for n, (g, c) in enumerate(zip(asked, found, strict=True))
    ]
    logprobs, reference, _ = said(models, turns)
    assert not torch.allclose(logprobs, reference, atol=1e-2)
    for row, completion in zip(logprobs, found, strict=True):
        assert completion.logprobs is not None
        assert row[: len(completion.logprobs)].tolist() == pytest.approx(completion.logprobs, abs=1e-4)
    # Without the tap all is computed once more, with the same result.
    torch.testing.assert_close(said(models, turns)[0], logprobs, rtol=0, atol=1e-5)
    limited = ActorCritic(models.actors, replace(settings, constrained=True))
    within = said(limited, turns)[0]
    torch.testing.assert_close(within[:4], logprobs[:4], rtol=0, atol=1e-5)
    for place in (4, 5, 6):
        mass = sum(
            float(said(models, [replace(turns[place], response_ids=(token,))])[0].exp())
            for token in turns[place].allowed
        )
        assert 0 < mass < 0.99
        assert float(within[place, 0].exp()) == pytest.approx(
            float(logprobs[place, 0].exp()) / mass, rel=1e-4
        )


def test_what_does_not_fit_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="full tuning trains one policy: let the agents share it"):
        models_of(model, FULL, OWN)
    with pytest.raises(UserError, match="an adapter cannot be put on a fully trained model"):
        models_of(model, LORA, start={"shared": model})
    for name in ("layers", "a.b", ""):
        with pytest.raises(ValueError, match="give it a name that is a word, and none of the model's"):
            models_of(model, LORA, {name: TEAM})
    stirred(models_of(model, LORA)).actors.save(None, tmp_path)
    with pytest.raises(UserError, match="full fine-tuning cannot start from an adapter"):
        models_of(model, FULL, start={"shared": tmp_path})
