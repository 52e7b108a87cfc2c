"""An engine on a model that is being trained: it follows the weights and leaves no trace."""

from __future__ import annotations

import functools
import itertools

import pytest
from tiny_engine import QUESTIONS, load, requests, run

from ragtrials.llm.hf import HFEngine
from ragtrials.llm.models import resolve_model
from ragtrials.program import Generate, Score, user

torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")

ROLES = {"rewriter": "first", "selector": "second"}


def plain(folder, dtype=torch.float32):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)


def with_adapters(folder, dtype=torch.float32):
    """A peft model with two adapters whose effect is not zero, in training mode, with dropout."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        settings = {"task_type": "CAUSAL_LM", "lora_dropout": 0.5}
        first = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], **settings)
        model = peft.get_peft_model(plain(folder, dtype), first, adapter_name="first")
        model.add_adapter("second", peft.LoraConfig(r=2, target_modules=["v_proj", "down_proj"], **settings))
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, std=0.5)
    return model.train()


def over(model, folder, engine, adapters=None, dtype="float32"):
    return HFEngine.over(
        model, resolve_model(str(folder)), engine.tokenizer, adapters, dtype=dtype, device="cpu", batch_size=4
    )


def with_roles(model, folder, engine, **options):
    from ragtrials.llm.adapters import Adapters

    base = model.get_base_model()
    return over(base, folder, engine, Adapters.live(base, ROLES), **options)


def asked(role="generator", **options):
    return requests(role=role, logprobs=True, **options)


def scored(role="generator"):
    return [Score((user(question),), " the Seine", role=role) for question in QUESTIONS]


def same(found, expected):
    for one, two in zip(found, expected, strict=True):
        assert one.token_ids == two.token_ids
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-4)


def differ(found, expected):
    for one, two in zip(found, expected, strict=True):
        assert one.logprobs != pytest.approx(two.logprobs, abs=1e-2)


def train_a_step(model, rate=0.1):
    """One step of plain gradient descent on arbitrary ids."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(trained, lr=rate)
    ids = torch.arange(5, 45).unsqueeze(0)
    model(input_ids=ids, labels=ids).loss.backward()
    optimiser.step()
    optimiser.zero_grad()


def gradients(model):
    return {name: weight.requires_grad for name, weight in model.named_parameters()}


def trace(model):
    """All that a trainer would notice."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    return (
        {name: module.training for name, module in model.named_modules()},
        gradients(model),
        [(list(layer.active_adapters), layer.disable_adapters) for layer in layers],
        [weight.grad is None for weight in model.parameters()],
        {name: value.clone().tolist() for name, value in model.named_buffers()},
        torch.random.get_rng_state().tolist(),
    )


def passes(model, monkeypatch):
    """Records (rows, columns) of every pass through the model."""
    seen = []
    forward = model.forward

    @functools.wraps(forward)  # generate looks at its parameters
    def spy(*args, **kwargs):
        seen.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(model, "forward", spy)
    return seen


@pytest.mark.parametrize("options", [{}, {"temperature": 0.9, "top_p": 0.8}, {"allowed": ("see", "Paris")}])
def test_a_plain_model_answers_as_the_loaded_engine_to_the_last_bit(folder, engine, options):
    live = over(plain(folder).train(), folder, engine)
    assert run(live, asked(**options)) == run(engine, asked(**options))
    assert live.score(scored()) == engine.score(scored())
    assert live.signature == engine.signature


def test_answers_follow_the_weights(folder, engine, tmp_path):
    model = plain(folder).train()
    live = over(model, folder, engine)
    before = run(live, asked())
    train_a_step(model)
    found = run(live, asked())
    differ(found, before)
    model.save_pretrained(tmp_path / "trained")
    engine.tokenizer.save_pretrained(tmp_path / "trained")
    loaded = load(tmp_path / "trained")
    same(found, run(loaded, asked()))
    same(live.score(scored()), loaded.score(scored()))


def test_roles_have_adapters_of_the_model_and_the_others_its_base(folder, engine, tmp_path):
    model = with_adapters(folder)
    model.save_pretrained(tmp_path)
    policies = {role: tmp_path / name for role, name in ROLES.items()}
    live, loaded = with_roles(model, folder, engine), load(folder, policies=policies)
    mixed = [
        r for trio in zip(asked("selector"), asked(), asked("rewriter"), strict=True) for r in trio
    ]  # dropout would show in all of them
    same(run(live, mixed), run(loaded, mixed))
    same(run(live, asked()), run(engine, asked()))
    differ(run(live, asked("rewriter")), run(live, asked("selector")))
    roles = [*scored("rewriter"), *scored(), *scored("selector")]
    same(live.score(roles), loaded.score(roles))


def test_only_the_trained_adapters_role_changes(folder, engine):
    model = with_adapters(folder)
    live = with_roles(model, folder, engine)
    before = [run(live, asked(role)) for role in ("rewriter", "selector", "generator")]
    model.set_adapter("second")
    train_a_step(model)
    after = [run(live, asked(role)) for role in ("rewriter", "selector", "generator")]
    assert (after[0], after[2]) == (before[0], before[2])
    differ(after[1], before[1])


def test_without_adapters_whatever_is_in_force_answers(folder, engine):
    model = with_adapters(folder)
    live = over(model.get_base_model(), folder, engine)
    found = run(live, asked("rewriter"))
    assert found == run(live, asked("anyone"))
    same(found, run(with_roles(model, folder, engine), asked("rewriter")))


@pytest.mark.parametrize("in_force", ["first", "second", None])
def test_a_call_leaves_no_trace(folder, engine, in_force):
    model = with_adapters(folder)
    live = with_roles(model, folder, engine)
    if in_force is None:
        model.base_model.disable_adapter_layers()
    else:
        model.set_adapter(in_force)
    for name, weight in model.named_parameters():  # not what peft's switches would choose
        weight.requires_grad_(".lora_A.first." in name or ".lora_B.second." in name)
    model.get_base_model().model.layers[1].eval()  # a trainer may keep a part out of training mode
    settings = model.get_base_model().generation_config
    before = trace(model)
    assert before[0]["base_model.model.model.layers.0"]
    run(live, asked("selector", temperature=0.7) + asked("rewriter") + asked())
    live.score(scored("selector"))
    assert trace(model) == before
    assert model.get_base_model().generation_config is settings


def test_a_call_that_fails_leaves_no_trace_either(folder, engine, monkeypatch):
    model = with_adapters(folder)
    live = with_roles(model, folder, engine)
    settings, before = model.get_base_model().generation_config, trace(model)

    def forward(**_):
        raise RuntimeError("shapes differ")

    with monkeypatch.context() as patch:
        patch.setattr(model.get_base_model(), "forward", forward)
        for call in (lambda: run(live, asked("selector")), lambda: live.score(scored("selector"))):
            with pytest.raises(RuntimeError, match="shapes differ"):
                call()
    assert trace(model) == before
    assert model.get_base_model().generation_config is settings


def test_sampling_settings_of_the_model_are_not_used(folder, engine):
    model = plain(folder)
    model.generation_config.repetition_penalty = 9.0
    assert run(over(model, folder, engine), asked()) == run(engine, asked())
    assert model.generation_config.repetition_penalty == 9.0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_gradient_checkpointing_neither_disturbs_nor_is_disturbed(folder, engine, monkeypatch, temperature):
    model = with_adapters(folder)
    expected = run(with_roles(model, folder, engine), asked("rewriter", temperature=temperature))
    base = model.get_base_model()
    base.gradient_checkpointing_enable({"use_reentrant": False})
    base.enable_input_require_grads()
    base.config.use_cache = False  # as trainers set it
    live = with_roles(model, folder, engine)
    seen = passes(base, monkeypatch)
    same(run(live, asked("rewriter", temperature=temperature)), expected)
    assert [columns for _, columns in seen].count(1) > len(seen) / 2  # the cache is used
    assert all(layer.gradient_checkpointing for layer in base.model.layers)
    train_a_step(model)
    differ(run(live, asked("rewriter", temperature=temperature)), expected)


def test_float32_adapters_over_a_bfloat16_base(folder, engine):
    model = with_adapters(folder, torch.bfloat16)
    types = {weight.dtype for name, weight in model.named_parameters() if "lora" in name}
    assert types == {torch.float32}
    live = with_roles(model, folder, engine, dtype="bfloat16")
    assert live.signature["dtype"] == "bfloat16"
    before = [run(live, asked(role, temperature=1.0)) for role in ("rewriter", "generator")]
    differ(*before)
    assert before[1] == run(load(folder, dtype="bfloat16"), asked(temperature=1.0))
    differ(live.score(scored("rewriter")), live.score(scored()))
    train_a_step(model)
    assert types == {weight.dtype for name, weight in model.named_parameters() if "lora" in name}
    differ(run(live, asked("rewriter", temperature=1.0)), before[0])
    assert run(live, asked("generator", temperature=1.0)) == before[1]


def test_a_wrapped_model_is_refused(folder, engine):
    with pytest.raises(ValueError, match="PeftModelForCausalLM wraps the model: pass the model inside"):
        over(with_adapters(folder), folder, engine)


def test_allowed_ids_are_those_that_decoding_chooses_from(engine):
    encode = lambda text: engine.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    ids = engine.allowed_ids(("Document", ",", "0"))
    assert set(ids) == {*encode("Document"), *encode(","), *encode("0"), engine.tokenizer.eos_token_id}
    assert list(ids) == sorted(ids)
    assert engine.allowed_ids(()) == ()
    request = Generate((user("q"),), max_new_tokens=30, temperature=3.0, allowed=("Document", ",", "0"))
    drawn = {t for c in engine.generate([request] * 20, range(20)) for t in c.token_ids}
    assert drawn <= set(ids)
    assert len(drawn) > 3


# Adapters by themselves.


def trainable(model):
    """The adapters that have weights with gradients."""
    return {name.split(".")[-2] for name, flag in gradients(model).items() if flag}


def logits(model):
    model.eval()
    with torch.no_grad():
        return model(torch.arange(5, 45).unsqueeze(0)).logits


def test_activating_switches_the_model_and_no_gradients(folder):
    from ragtrials.llm.adapters import Adapters

    model = with_adapters(folder)
    model.set_adapter("second")
    adapters, flags = Adapters.live(model, ROLES), gradients(model)
    assert trainable(model) == {"second"}
    found = []
    for name in ("first", None, "second", "first", None):
        adapters.activate(name)
        assert gradients(model) == flags
        found.append(logits(model))
    assert not any(torch.allclose(one, two, atol=1e-2) for one, two in itertools.pairwise(found))
    # What peft's own switches give:
    with model.disable_adapter():
        expected = {None: logits(model)}
    model.base_model.enable_adapter_layers()
    for name in ROLES.values():
        model.set_adapter(name)
        expected[name] = logits(model)
    for name, one in zip(("first", None, "second", "first", None), found, strict=True):
        assert torch.equal(one, expected[name])


def test_activating_for_training_adds_the_adapters_gradients_alone(folder):
    from ragtrials.llm.adapters import Adapters

    model = with_adapters(folder)
    adapters = Adapters.live(model, ROLES)
    for weight in model.parameters():
        weight.requires_grad_(False)
    adapters.activate("second", trainable=True)
    assert trainable(model) == {"second"}
    assert all(flag for name, flag in gradients(model).items() if ".second." in name)
    adapters.activate(None)
    adapters.activate("first", trainable=True)
    assert trainable(model) == {"first", "second"}
    assert not any(flag for name, flag in gradients(model).items() if "lora" not in name)
    adapters.activate(None, trainable=True)
    assert trainable(model) == {"first", "second"}


def test_names_of_no_layer_are_refused(folder):
    from ragtrials.llm.adapters import Adapters

    model = with_adapters(folder)
    has = r"'third' in its layers \(it has: first, second\)"
    with pytest.raises(ValueError, match=f"role 'rewriter': the model has no adapter {has}"):
        Adapters.live(model, {"selector": "first", "rewriter": "third"})
    with pytest.raises(ValueError, match=has):
        Adapters.live(model, {}).activate("third")
    with pytest.raises(ValueError, match=r"no adapter 'first' in its layers \(it has: none\)"):
        Adapters.live(plain(folder), {"rewriter": "first"})
    assert Adapters.live(model, ROLES).name("rewriter") == "first"
    assert Adapters.live(model, ROLES).name("generator") is None


def test_adapters_that_replace_modules_are_refused(folder):
    from ragtrials.llm.adapters import Adapters

    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], modules_to_save=["lm_head"])
    model = peft.get_peft_model(plain(folder), config)
    with pytest.raises(ValueError, match="an adapter has modules_to_save or trainable tokens"):
        Adapters.live(model.get_base_model(), {"generator": "default"})
