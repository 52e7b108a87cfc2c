"""Loads weights to be trained, and saves them as a peft adapter folder or a Hugging Face folder."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from transformers import set_seed
from transformers.pytorch_utils import Conv1D

from ragtrials.errors import UserError
from ragtrials.llm.loading import added_ids, load_model
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.policy import ADAPTER_CONFIG, ADAPTER_WEIGHTS, is_adapter
from ragtrials.llm.quiet import quiet_transformers
from ragtrials.training.settings import Lora, Optimisation


def load_trainable(
    base: ResolvedModel, start: Path | None, settings: Optimisation, dtype: str, device: str, seed: int
) -> Any:
    """The model to train: what an earlier stage left in `start`, else the base model.

    With LoRA the base stays frozen in `dtype` and the adapter is kept in float32; a full fine-tuning keeps
    all weights in float32, since AdamW's small steps would be lost in bfloat16.

    Args:
        base: The model that every method starts from.
        start: An adapter folder or a model folder of the same training, or None.
        settings: Says what is trained.
        dtype: Number format of frozen weights.
        device: Where it runs.
        seed: Decides a new adapter's A matrices.

    Raises:
        UserError: `start` and `settings.tuning` do not fit together, or LoRA finds nothing to adapt.
    """
    if settings.tuning == "full":
        if start is not None and is_adapter(start):
            raise UserError("full fine-tuning cannot start from an adapter: set tuning=lora for both stages")
        source = base if start is None else replace(base, folder=start)
        return load_model(source, "float32", device).train()
    if start is not None and not is_adapter(start):
        raise UserError("an adapter cannot be put on a fully trained model: set tuning=full for both stages")
    model = load_model(base, dtype, device)
    return add_adapter(model, "default", settings.lora, start, base.name, seed, added_ids(base)).train()


def add_adapter(
    model: Any,
    name: str,
    lora: Lora,
    start: Path | None,
    base: str,
    seed: int,
    tokens: Sequence[int] = (),
) -> PeftModel:
    """Put an adapter on a model, and peft's wrapper around it if it has none yet.

    Args:
        model: A causal language model, or a `PeftModel`, which gets one more adapter.
        name: What the adapter is called.
        lora: Its settings, if it is new.
        start: A folder with its weights; None for a new one.
        base: What error messages call the model.
        seed: Decides a new adapter's A matrices.
        tokens: Ids whose embeddings, of input and output, a new adapter trains, too: those of added tokens.

    Raises:
        UserError: LoRA finds nothing to adapt.
    """
    set_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # peft asks transformers by a name that goes away, and counts adapters
        if isinstance(model, PeftModel):
            if start is not None:
                model.load_adapter(start, name, is_trainable=True)
            else:
                model.add_adapter(name, _lora(lora, model.get_base_model(), base, tokens))
            return model
        if start is not None:
            return PeftModel.from_pretrained(model, start, name, is_trainable=True)
        return get_peft_model(model, _lora(lora, model, base, tokens), name)


def _lora(lora: Lora, model: Any, name: str, tokens: Sequence[int]) -> LoraConfig:
    layers = int(model.config.get_text_config().num_hidden_layers)
    if lora.last_layers is not None and lora.last_layers > layers:
        raise UserError(f"lora.last_layers is {lora.last_layers}, but model {name} has {layers} layers")
    linear = (torch.nn.Linear, Conv1D, BaseTunerLayer)  # the last is a map that has an adapter already
    known = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, linear)}
    head = model.get_output_embeddings()
    if any(module is head for name, module in model.named_modules() if name in lora.targets):
        raise UserError(
            "lora.targets: the output layer cannot have an adapter: trl computes with its weights alone"
        )
    if missing := [target for target in lora.targets if target not in known]:
        raise UserError(f"lora.targets: model {name} has no linear map called {', '.join(missing)}")
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
        layers_to_transform=None
        if lora.last_layers is None
        else list(range(layers - lora.last_layers, layers)),
        trainable_token_indices=_embeddings(model, tokens) or None,
    )


def _embeddings(model: Any, tokens: Sequence[int]) -> dict[str, list[int]]:
    """The names of the model's embeddings, one where those of input and output are tied, with the ids."""
    tables = [model.get_input_embeddings()]
    if not model.config.get_text_config().tie_word_embeddings:
        tables.append(model.get_output_embeddings())
    names = [name for name, module in model.named_modules() if any(module is table for table in tables)]
    return {name.rpartition(".")[2]: list(tokens) for name in names} if tokens else {}


def save_weights(model: Any, tokenizer: Any, base: ResolvedModel, folder: Path) -> None:
    """Write an adapter folder (of a LoRA model) or a whole Hugging Face folder."""
    with quiet_transformers():
        if isinstance(model, PeftModel):
            save_adapter(model, "default", base, folder)  # trl's frozen copy, too, is an adapter of it
        else:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)


def save_adapter(model: PeftModel, name: str, base: ResolvedModel, folder: Path) -> None:
    """Write one adapter of a model as an adapter folder."""
    config = model.peft_config[name]
    config.base_model_name_or_path = base.name  # never a path of this machine
    config.target_modules = sorted(config.target_modules)  # a set, in another order in every process
    folder.mkdir(parents=True, exist_ok=True)
    with quiet_transformers(), TemporaryDirectory(dir=folder.parent) as parts:
        # Embeddings are never trained; peft would ask the hub whether they have grown.
        model.save_pretrained(parts, selected_adapters=[name], save_embedding_layers=False)
        written = Path(parts) if name == "default" else Path(parts) / name  # peft's rule
        for file in (ADAPTER_CONFIG, ADAPTER_WEIGHTS):
            (written / file).rename(folder / file)


def trainable_parameters(model: Any) -> int:
    """How many numbers the optimiser changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def release(device: str) -> None:
    """Give memory that no live object holds back to the device."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
