"""A decoder cut in two gives what the whole gives: hidden states, gradients, in every padding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny import build_tiny_model
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from ragtrials.training.trunk import Trunk, can_cut, cut_depth, pad, unpad

LAYERS = 4
SIZES = {
    "vocab_size": 90,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LENGTHS = (9, 4, 13)
CONFIGS = {
    "mistral": MistralConfig(**SIZES, sliding_window=None),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=8),
}
TYPES = ("llama", *CONFIGS)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only loses by more
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", layers=LAYERS)


def from_config(config: PreTrainedConfig) -> Any:
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config).eval()
    for name, weights in model.named_parameters():
        if name.endswith("bias") or "norm" in name:  # zeros and ones at first: they would not be seen
            torch.nn.init.normal_(weights, mean=1.0, std=0.3)
    return model


def build(kind: str, llama: Path) -> Any:
    """A random model in evaluation mode, nothing of it trained."""
    if kind == "llama":
        model = AutoModelForCausalLM.from_pretrained(llama).eval()
    else:
        model = from_config(CONFIGS[kind])
    return model.requires_grad_(False)


def adapted(model: Any, last: int) -> Any:
    """A peft model with a LoRA that does something in the last layers."""
    config = LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules=["q_proj", "v_proj", "down_proj"],
        layers_to_transform=list(range(LAYERS - last, LAYERS)),
    )
    wrapped = get_peft_model(model, config)
    torch.manual_seed(5)
    for name, weights in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weights, std=0.2)
    return wrapped.eval()


def lora_names(model: Any) -> list[str]:
    return [name for name, weights in model.named_parameters() if weights.requires_grad]


def batch(seed: int = 1) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return pad([torch.randint(3, 90, (length,), generator=draw) for length in LENGTHS])


def whole(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """The last hidden state that the model itself reports (behind its final norm)."""
    output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, use_cache=False)
    hidden: Tensor = output.hidden_states[-1]
    return hidden


def assert_close(found: Tensor, wanted: Tensor, mask: Tensor | None = None) -> None:
    if mask is not None:
        found, wanted = found[mask.bool()], wanted[mask.bool()]
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= 1e-6 * wanted.abs().max()


@pytest.mark.parametrize("kind", TYPES)
def test_the_two_parts_give_what_the_whole_gives(kind: str, llama: Path) -> None:
    model = build(kind, llama)
    ids, mask = batch()
    wanted = whole(model, ids, mask)
    assert can_cut(model)
    for depth in range(LAYERS + 1):
        trunk = Trunk(model, depth)
        assert_close(trunk.above(trunk.below(ids, mask), mask), wanted, mask)
    assert_close(whole(model, ids, mask), wanted)


def test_below_are_the_hidden_states_that_enter_the_layer(llama: Path) -> None:
    model = build("llama", llama)
    ids, mask = batch()
    entering = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    for depth in range(1, LAYERS):
        assert_close(Trunk(model, depth).below(ids, mask), entering[depth], mask)


@pytest.mark.parametrize("kind", TYPES)
def test_adapters_above_the_cut_are_read_and_can_be_switched_off(kind: str, llama: Path) -> None:
    plain = build(kind, llama)
    ids, mask = batch()
    reference = whole(plain, ids, mask)
    wrapped = adapted(plain, last=2)
    policy = whole(wrapped, ids, mask)
    assert (policy - reference).abs().max() > 0.1
    for depth in range(3):
        for model in (plain, wrapped):  # the LoRA layers are in the plain model, too
            trunk = Trunk(model, depth)
            kept = trunk.below(ids, mask)
            assert_close(trunk.above(kept, mask), policy, mask)
            with wrapped.disable_adapter():
                assert_close(trunk.above(kept, mask), reference, mask)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_gradients_are_those_of_the_whole_model(kind: str, checkpointing: bool, llama: Path) -> None:
    wrapped = adapted(build(kind, llama), last=2).train()
    model = wrapped.get_base_model()
    ids, mask = batch()
    weights = torch.randn(1, 1, model.config.hidden_size, generator=torch.Generator().manual_seed(2))

    def gradients(hidden: Tensor) -> dict[str, Tensor]:
        wrapped.zero_grad()
        ((hidden * weights).tanh().sum(-1) * mask).sum().backward()
        return {name: w.grad for name, w in model.named_parameters() if w.grad is not None}

    wanted = gradients(whole(model, ids, mask))
    assert set(wanted) == set(lora_names(model))
    trunk = Trunk(model, 2)
    kept = trunk.below(ids, mask)
    assert not kept.requires_grad
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    found = gradients(trunk.above(kept, mask))
    assert set(found) == set(wanted)
    for name, gradient in wanted.items():
        assert gradient.abs().max() > 0
        assert_close(found[name], gradient)


def test_gradient_checkpointing_reads_the_upper_layers_alone_twice(llama: Path) -> None:
    model = adapted(build("llama", llama), last=2).get_base_model().train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    ids, mask = batch()
    trunk = Trunk(model, 2)
    kept = trunk.below(ids, mask)
    read: list[int] = []
    for index, layer in enumerate(model.get_decoder().layers):
        layer.self_attn.register_forward_pre_hook(lambda *_, index=index: read.append(index))
    trunk.above(kept, mask).sum().backward()
    assert read == [2, 3, 3, 2]


def test_trained_embeddings_get_gradients_at_depth_0(llama: Path) -> None:
    model = build("llama", llama)
    model.get_input_embeddings().requires_grad_(True)
    trunk = Trunk(model, cut_depth(model, ["model.embed_tokens.weight"]))
    ids, mask = batch()
    trunk.above(trunk.below(ids, mask), mask).square().sum().backward()
    assert model.get_input_embeddings().weight.grad.abs().max() > 0


@pytest.mark.parametrize("depth", [0, 2])
def test_kept_sequences_read_in_other_company_stay_the_same(depth: int, llama: Path) -> None:
    trunk = Trunk(build("llama", llama), depth)
    ids, mask = batch()
    kept = unpad(trunk.below(ids, mask), mask)
    assert [len(row) for row in kept] == list(LENGTHS)
    assert all(row.untyped_storage().nbytes() == row.numel() * row.element_size() for row in kept)
    together = unpad(trunk.above(*pad(kept)), mask)
    for row, length, wanted in zip(ids, LENGTHS, together, strict=True):
        alone = row[None, :length], torch.ones(1, length, dtype=torch.long)
        assert_close(trunk.above(trunk.below(*alone), alone[1])[0], wanted)
    states, short = pad([kept[1], kept[0]])
    assert states.shape[:2] == short.shape == (2, 9)
    for found, wanted in zip(unpad(trunk.above(states, short), short), together[1::-1], strict=True):
        assert_close(found, wanted)


@pytest.mark.parametrize("part", ["below", "above"])
def test_the_decoder_is_whole_again_after_an_exception(part: str, llama: Path) -> None:
    model = build("llama", llama)
    decoder = model.get_decoder()
    layers, norm, names = decoder.layers, decoder.norm, [name for name, _ in model.named_parameters()]
    ids, mask = batch()
    trunk = Trunk(model, 2)
    kept = trunk.below(ids, mask)

    def fail(*_: Any) -> None:
        raise InterruptedError("stopped")

    for layer in (layers[1], layers[3]):
        layer.register_forward_pre_hook(fail)
    with pytest.raises(InterruptedError):
        trunk.below(ids, mask) if part == "below" else trunk.above(kept, mask)
    assert decoder.layers is layers
    assert decoder.norm is norm
    assert [name for name, _ in model.named_parameters()] == names


def test_the_cut_lies_below_the_lowest_trained_layer(llama: Path) -> None:
    plain = build("llama", llama)
    layer_1, layer_3 = (f"model.layers.{i}.mlp.up_proj.weight" for i in (1, 3))
    assert cut_depth(plain, [layer_3]) == 3
    assert cut_depth(plain, [layer_3, layer_1]) == 1
    assert cut_depth(plain, ["model.layers.0.mlp.up_proj.weight", layer_3]) == 0
    for outside in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        assert cut_depth(plain, [layer_3, outside]) == 0
    assert cut_depth(plain, []) == LAYERS
    wrapped = adapted(plain, last=1)
    assert cut_depth(wrapped, lora_names(wrapped)) == 3
    assert cut_depth(plain, lora_names(plain)) == 3
    with pytest.raises(ValueError, match="no parameter base_model"):
        cut_depth(plain, lora_names(wrapped))


def test_layers_are_counted_beyond_nine() -> None:
    model = from_config(LlamaConfig(**SIZES | {"num_hidden_layers": 12}))
    assert cut_depth(model, [f"model.layers.{i}.mlp.up_proj.weight" for i in (11, 10)]) == 10


DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}


@pytest.mark.parametrize(
    "config",
    [
        MistralConfig(**SIZES, sliding_window=5),
        Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=5, max_window_layers=2),
        Gemma2Config(**SIZES, head_dim=8, sliding_window=5),
        LlamaConfig(**SIZES | {"max_position_embeddings": 8}, rope_parameters=DYNAMIC),
        LlamaConfig(**SIZES, attention_dropout=0.1),
    ],
    ids=["sliding", "mixed", "scaled", "dynamic", "dropout"],
)
def test_other_decoders_are_read_whole(config: PreTrainedConfig) -> None:
    model = from_config(config)
    assert not can_cut(model)
    with pytest.raises(ValueError, match="cannot be cut"):
        Trunk(model, 1)
    ids, mask = batch()
    trunk = Trunk(model, 0)
    kept = trunk.below(ids, mask)
    assert kept is ids
    assert_close(trunk.above(kept, mask), whole(model, ids, mask), mask)


def test_depth_is_within_the_layers(llama: Path) -> None:
    model = build("llama", llama)
    for depth in (-1, LAYERS + 1):
        with pytest.raises(ValueError, match="0 to 4 layers"):
            Trunk(model, depth)
