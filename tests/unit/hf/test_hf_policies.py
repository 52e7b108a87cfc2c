"""Trained weights by role: adapters on one base model, and full models beside it."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny import build_tiny_model
from tiny_engine import QUESTIONS, load, requests, run

from ragtrials.errors import UserError
from ragtrials.llm.build import describe_model
from ragtrials.llm.hf import HFEngine
from ragtrials.llm.policy import RoleEngine
from ragtrials.program import Generate, Score, user

torch = pytest.importorskip("torch")
peft = pytest.importorskip("peft")


def save_adapter(base, folder, *, seed=None, **options):
    """A LoRA adapter as peft writes it: zero in effect, or with a random B where a seed is given."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed or 0)
        settings = {"r": 4, "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.5} | options
        model = peft.get_peft_model(
            AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
            peft.LoraConfig(task_type="CAUSAL_LM", **settings),
        )
        if seed is not None:
            for name, weight in model.named_parameters():
                if "lora_B" in name:
                    torch.nn.init.normal_(weight, std=0.5)
        model.save_pretrained(folder)
    return folder


def save_merged(base, adapter, folder):
    """The full model folder that adds up to the same as base and adapter."""
    from transformers import AutoModelForCausalLM

    shutil.copytree(base, folder)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    peft.PeftModel.from_pretrained(model, adapter).merge_and_unload().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(folder, tmp_path_factory):
    return save_adapter(folder, tmp_path_factory.mktemp("adapter") / "one", seed=1)


@pytest.fixture(scope="module")
def other(folder, tmp_path_factory):
    """Of another rank, in layers of which only some are the first one's."""
    options = {"r": 2, "target_modules": ["v_proj", "down_proj"], "use_rslora": True}
    return save_adapter(folder, tmp_path_factory.mktemp("adapter") / "two", seed=2, **options)


@pytest.fixture(scope="module")
def merged(folder, adapter, tmp_path_factory):
    return save_merged(folder, adapter, tmp_path_factory.mktemp("full") / "merged")


def asked(role, **options):
    return requests(role=role, logprobs=True, **options)


def scored(role):
    return [Score((user(question),), " the Seine", role=role) for question in QUESTIONS]


def same(found, expected):
    for one, two in zip(found, expected, strict=True):
        assert one.token_ids == two.token_ids
        assert one.text == two.text
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-4)


def differ(found, expected):
    """Every prompt has other probabilities; tokens may happen to agree."""
    for one, two in zip(found, expected, strict=True):
        assert one.logprobs != pytest.approx(two.logprobs, abs=1e-2)


def test_a_fresh_adapter_answers_as_the_base_model(folder, engine, tmp_path):
    fresh = save_adapter(folder, tmp_path / "fresh")
    trained = load(folder, policies={"generator": fresh})
    assert run(trained, asked("generator")) == run(engine, asked("generator"))
    assert trained.score(scored("generator")) == engine.score(scored("generator"))


def test_an_adapter_changes_its_own_role_exactly_as_merged_weights_would(folder, engine, adapter, merged):
    trained, expected = load(folder, policies={"rewriter": adapter}), load(merged)
    before = run(trained, asked("generator"))
    assert before == run(engine, asked("generator"))
    found = run(trained, asked("rewriter"))
    same(found, run(expected, asked("rewriter")))
    differ(found, before)
    same(trained.score(scored("rewriter")), expected.score(scored("rewriter")))
    # The base model is itself again afterwards, to the last bit.
    assert run(trained, asked("generator")) == before
    assert trained.score(scored("generator")) == engine.score(scored("generator"))


def test_an_adapter_gives_the_logits_of_merged_weights(folder, adapter, merged):
    trained = load(folder, policies={"rewriter": adapter})
    run(trained, [Generate((user("Where?"),), role="rewriter")])  # leaves the role's weights in force
    ids = torch.arange(5, 45).unsqueeze(0)
    with torch.inference_mode():
        found, expected = trained.model(ids).logits, load(merged).model(ids).logits
    assert torch.allclose(found, expected, atol=1e-4)


def test_two_roles_have_two_adapters_on_one_model(folder, adapter, other, tmp_path, engine):
    both = load(folder, policies={"rewriter": adapter, "a.b lora_": other})  # role names are free text
    assert isinstance(both, HFEngine)  # one engine, one base model
    mixed = [r for trio in zip(asked("a.b lora_"), asked("c"), asked("rewriter"), strict=True) for r in trio]
    found = run(both, mixed)
    second = load(save_merged(folder, other, tmp_path / "second"))
    first = load(folder, policies={"rewriter": adapter})
    same(found[0::3], run(second, asked("")))
    same(found[1::3], run(engine, asked("")))
    same(found[2::3], run(first, asked("rewriter")))
    differ(found[0::3], found[2::3])
    scores = both.score([*scored("a.b lora_"), *scored("rewriter"), *scored("c")])
    same(scores, second.score(scored("")) + first.score(scored("rewriter")) + engine.score(scored("")))


def test_two_roles_can_share_an_adapter(folder, adapter):
    shared = load(folder, policies={"a": adapter, "b": adapter.parent / "." / adapter.name})
    assert list(shared.model.peft_config) == ["policy0"]
    assert run(shared, asked("a")) == run(shared, asked("b"))


def test_dropout_is_off_and_nothing_is_drawn(folder, adapter):
    state = torch.random.get_rng_state()
    trained = load(folder, policies={"generator": adapter})
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(module.training for module in trained.model.modules())
    assert run(trained, asked("generator")) == run(trained, asked("generator"))
    assert not any(
        weight.requires_grad for name, weight in trained.model.named_parameters() if "lora" in name
    )


def test_adapter_weights_take_the_engines_dtype(folder, adapter):
    trained = load(folder, dtype="bfloat16", policies={"generator": adapter})
    types = {name.partition(".lora_")[2][:1]: w.dtype for name, w in trained.model.named_parameters()}
    assert set(types.values()) == {torch.bfloat16}
    assert {"A", "B"} <= set(types)
    assert run(trained, asked("generator"))[0].logprobs != run(trained, asked("c"))[0].logprobs


def test_dora_is_lora_too(folder, tmp_path):
    dora = save_adapter(folder, tmp_path / "dora", seed=3, use_dora=True)
    expected = load(save_merged(folder, dora, tmp_path / "merged"))
    same(run(load(folder, policies={"g": dora}), asked("g")), run(expected, asked("g")))


def test_a_full_model_for_one_role_and_an_adapter_for_another(folder, engine, merged, other):
    mixed = load(folder, policies={"full": merged, "twin": merged, "light": other})
    assert isinstance(mixed, RoleEngine)
    assert dict(mixed.signature) == dict(
        describe_model(str(folder), dtype="float32", device="cpu", batch_size=4)
    )
    light, expected = load(folder, policies={"light": other}), load(merged)
    order = [asked(role)[i] for i in range(len(QUESTIONS)) for role in ("light", "full", "base", "twin")]
    found = run(mixed, order)
    assert found[0::4] == run(light, asked("light"))
    same(found[1::4], run(expected, asked("")))
    assert found[2::4] == run(engine, asked(""))
    same(found[3::4], run(expected, asked("")))
    scores = mixed.score([*scored("full"), *scored("light"), *scored("base")])
    assert scores == expected.score(scored("")) + light.score(scored("light")) + engine.score(scored(""))
    assert mixed.generate([], []) == []
    with pytest.raises(ValueError, match="1 seeds for 7 requests"):
        mixed.generate(asked("full"), [1])


def test_models_are_loaded_once_and_an_unneeded_base_never(folder, merged, monkeypatch):
    from ragtrials.llm import hf

    loaded = []
    original = hf.load_model
    monkeypatch.setattr(hf, "load_model", lambda model, *a: loaded.append(model.name) or original(model, *a))
    mixed = load(folder, policies={"full": merged, "twin": merged})
    run(mixed, asked("full") + asked("twin"))
    assert loaded == ["merged"]
    run(mixed, asked("base"))
    run(mixed, asked("base"))
    assert loaded == ["merged", "tiny"]


def test_seeds_stay_with_their_requests(folder, merged):
    mixed = load(folder, policies={"full": merged})
    order = [Generate((user("Where?"),), role=role, temperature=1.0) for role in ("full", "base") * 3]
    seeds = [5, 6, 7, 6, 5, 6]
    found = [completion.token_ids for completion in mixed.generate(order, seeds)]
    assert found[0] == found[4] != found[2]
    assert found[1] == found[3] == found[5]


# Folders that will not do: each is told in one line.


@pytest.fixture
def broken(adapter, tmp_path):
    return shutil.copytree(adapter, tmp_path / "broken")


def edit(file, **values):
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def refusal(folder, policy):
    with pytest.raises(UserError) as error:
        load(folder, policies={"generator": policy})
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_that_is_missing_or_something_else_is_refused(folder, tmp_path):
    start = f"trained weights of role 'generator': {tmp_path}"
    assert refusal(folder, tmp_path / "no").startswith(f"{start}/no is no folder; pass")
    assert refusal(folder, tmp_path).startswith(
        f"{start} holds neither an adapter (adapter_config.json) nor a model (config.json); pass"
    )


def test_an_adapter_config_that_is_damaged_or_no_lora_is_refused(folder, broken):
    config = broken / "adapter_config.json"
    edit(config, peft_type="IA3")
    assert "adapter_config.json: peft_type is 'IA3', not 'LORA'" in refusal(folder, broken)
    config.write_text("[]")
    assert "adapter_config.json: peft_type is None, not 'LORA'" in refusal(folder, broken)
    config.write_text('{"peft_type": ')
    assert "adapter_config.json:1: is not JSON" in refusal(folder, broken)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("modules_to_save", ["lm_head"]),
        ("bias", "all"),
        ("init_lora_weights", "pissa_niter_4"),
        ("layer_replication", [[0, 1]]),
    ],
)
def test_settings_that_would_change_the_base_model_are_refused(folder, broken, name, value):
    edit(broken / "adapter_config.json", **{name: value})
    message = refusal(folder, broken)
    assert f"adapter_config.json: {name} is {value!r}, which reaches beyond" in message


def test_weights_that_are_missing_or_damaged_are_refused(folder, broken):
    weights = broken / "adapter_model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    assert f"adapter_model.safetensors: is truncated ({len(whole) - 8} of" in refusal(folder, broken)
    weights.write_bytes(whole.replace(b'"F32"', b'"F99"', 1))
    assert "adapter_model.safetensors: is damaged (" in refusal(folder, broken)
    weights.unlink()
    assert "adapter_model.safetensors is missing; save the adapter again" in refusal(folder, broken)


def test_an_adapter_that_is_none_of_this_model_is_refused(folder, broken, tmp_path):
    wide = build_tiny_model(tmp_path / "wide", hidden=32)
    message = refusal(folder, save_adapter(wide, tmp_path / "narrow", seed=1))
    assert (
        "8 tensors have another shape, the first is model.layers.0.self_attn.q_proj.lora_A.weight" in message
    )
    assert "with [4, 32] instead of [4, 64]; pass an adapter of model tiny" in message

    deep = build_tiny_model(tmp_path / "deep", layers=3)
    message = refusal(folder, save_adapter(deep, tmp_path / "deeper", seed=1))
    assert "4 tensors have no layer, the first is model.layers.2.self_attn.q_proj.lora_A.weight" in message

    shallow = build_tiny_model(tmp_path / "shallow", layers=1)
    message = refusal(folder, save_adapter(shallow, tmp_path / "thin", seed=1))
    assert "4 tensors are missing, the first is model.layers.1.self_attn.q_proj.lora_A.weight" in message


def test_an_adapter_config_of_other_weights_is_refused(folder, broken):
    config = broken / "adapter_config.json"
    edit(config, r=8)
    assert "8 tensors have another shape" in refusal(folder, broken)
    edit(config, r=4, target_modules=["q_proj"])
    assert "4 tensors have no layer, the first is model.layers.0.self_attn.v_proj" in refusal(folder, broken)
    edit(config, target_modules=["c_attn"])
    assert "adapter_config.json: peft cannot put it on model tiny (" in refusal(folder, broken)
    edit(config, target_modules=["q_proj", "v_proj"], r=0)
    assert "adapter_config.json: peft cannot put it on model tiny (" in refusal(folder, broken)


def test_a_full_model_of_another_kind_or_not_whole_is_refused(folder, merged, tmp_path):
    message = refusal(folder, build_tiny_model(tmp_path / "deep", layers=3))
    assert "deep/config.json: num_hidden_layers is 3, but 2 in model tiny; pass" in message
    copy = shutil.copytree(merged, tmp_path / "copy")
    (copy / "tokenizer.json").unlink()
    assert "there is no tokenizer (tokenizer.json)" in refusal(folder, copy)
    (copy / "model.safetensors").write_bytes(b"")
    shutil.copy(folder / "tokenizer.json", copy)
    assert "model.safetensors: is truncated" in refusal(folder, copy)


def test_peft_is_asked_for_only_where_an_adapter_is(folder, adapter, merged, monkeypatch):
    from ragtrials.llm import policy

    monkeypatch.setattr(policy.importlib.util, "find_spec", lambda name: None)
    assert "is a LoRA adapter, which needs peft: install it with `pip install peft`" in refusal(
        folder, adapter
    )
    load(folder, policies={"generator": merged})
