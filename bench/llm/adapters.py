"""LoRA adapters of several roles on one model in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from peft.functional import (
    get_peft_model_state_dict,
    inject_adapter_in_model,
    set_peft_model_state_dict,
)
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError
from safetensors.torch import load_file

from ragtrials.errors import UserError
from ragtrials.llm.policy import ADAPTER_CONFIG, ADAPTER_WEIGHTS

# What peft raises for a configuration that is no LoRA, or that names layers which the model does not have.
_UNUSABLE = (ValueError, TypeError, KeyError)


class Adapters:
    """Adapters inside a model's layers, of which one, or none, is in force.

    A folder that several roles name is loaded once. The weights take the model's dtype and device.

    Args:
        model: A causal language model of transformers; its layers are extended in place.
        folders: Adapter folders by role, checked by `ragtrials.llm.policy.check_policy`.
        base: What error messages call the model.

    Raises:
        UserError: An adapter's tensors are not exactly those that its configuration has on this model.
    """

    def __init__(self, model: Any, folders: Mapping[str, Path], base: str) -> None:
        distinct = dict.fromkeys(folder.resolve() for folder in folders.values())
        # Roles are free text, but peft takes no dots and no words of its own in a name.
        names = {folder: f"policy{number}" for number, folder in enumerate(distinct)}
        gradients = [(weight, weight.requires_grad) for weight in model.parameters()]
        for folder, name in names.items():
            _load(model, folder, name, base)
        # peft freezes the base model, but torch picks the order of its sums by this flag, too: without
        # adapters the base model shall answer as it always does, to the last bit.
        for weight, flag in gradients:
            weight.requires_grad_(flag)
        self._names = {role: names[folder.resolve()] for role, folder in folders.items()}
        self._layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
        model.eval()  # new layers begin in training mode, with dropout
        self.activate(None)

    def name(self, role: str) -> str | None:
        """What answers a role: the name of an adapter, or None for the base model."""
        return self._names.get(role)

    def activate(self, name: str | None) -> None:
        """Put one adapter in force, or with None the base model alone."""
        for layer in self._layers:
            layer.enable_adapters(name is not None)
            if name is not None:
                layer.set_adapter(name, inference_mode=True)


def _load(model: Any, folder: Path, name: str, base: str) -> None:
    """Add one adapter to the model's layers."""
    where = folder / ADAPTER_CONFIG
    with _quiet():
        try:
            config = LoraConfig.from_pretrained(str(folder))
            config.inference_mode = True
            config.init_lora_weights = True  # whatever it was: every weight is replaced below
            # Layers without memory yet: no random numbers are drawn, and none can be left over.
            inject_adapter_in_model(config, model, name, low_cpu_mem_usage=True)
        except _UNUSABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"{where}: peft cannot put it on model {base} ({reason}); pass an adapter of that model"
            ) from error
        try:
            weights = load_file(folder / ADAPTER_WEIGHTS)
        except SafetensorError as error:
            raise UserError(
                f"{folder / ADAPTER_WEIGHTS}: is damaged ({error}); copy the file again"
            ) from error
        expected = get_peft_model_state_dict(model, adapter_name=name, save_embedding_layers=False)
        _hold_equal(folder / ADAPTER_WEIGHTS, _shapes(weights), _shapes(expected), base)
        cast = {key: tensor.to(model.device, model.dtype) for key, tensor in weights.items()}
        set_peft_model_state_dict(model, cast, adapter_name=name, low_cpu_mem_usage=True)


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    """Shapes by name; a file's names begin with where peft's own wrapper holds the model."""
    return {key.removeprefix("base_model.model."): tuple(tensor.shape) for key, tensor in tensors.items()}


def _hold_equal(
    file: Path, found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]], base: str
) -> None:
    """Names and shapes must agree: peft would skip what is too much, and leave out what is missing."""
    hint = f"pass an adapter of model {base}, with the {ADAPTER_CONFIG} that was saved with it"
    if missing := sorted(expected.keys() - found.keys()):
        raise UserError(f"{file}: {len(missing)} tensors are missing, the first is {missing[0]}; {hint}")
    if unknown := sorted(found.keys() - expected.keys()):
        raise UserError(f"{file}: {len(unknown)} tensors have no layer, the first is {unknown[0]}; {hint}")
    if other := sorted(key for key in expected if found[key] != expected[key]):
        raise UserError(
            f"{file}: {len(other)} tensors have another shape, the first is {other[0]} with "
            f"{list(found[other[0]])} instead of {list(expected[other[0]])}; {hint}"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without peft's warnings: what they warn of is checked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
