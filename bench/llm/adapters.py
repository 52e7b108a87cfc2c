"""LoRA adapters of several roles on one model in memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from peft import LoraConfig
from peft.functional import (
    get_peft_model_state_dict,
    inject_adapter_in_model,
    set_peft_model_state_dict,
)
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import AuxiliaryTrainingWrapper
from safetensors import SafetensorError
from safetensors.torch import load_file

from ragtrials.errors import UserError
from ragtrials.llm.policy import ADAPTER_CONFIG, ADAPTER_WEIGHTS

# What peft raises for a configuration that is no LoRA, or that names layers which the model does not have.
_UNUSABLE = (ValueError, TypeError, KeyError)

AdapterState: TypeAlias = tuple[tuple[tuple[str, ...], bool], ...]
"""For each layer the adapters in force, and whether they are switched off."""


class Adapters:
    """Adapters inside a model's layers, of which one, or none, is in force.

    `load` puts folders into a model, `live` takes layers that are there already.

    Args:
        layers: All layers of the model that hold adapters.
        names: The name of an adapter by role.
    """

    def __init__(self, layers: Sequence[BaseTunerLayer], names: Mapping[str, str]) -> None:
        self._layers = tuple(layers)
        self._names = dict(names)
        self._known = {name for layer in self._layers for name, _ in _weights(layer)}

    @classmethod
    def load(cls, model: Any, folders: Mapping[str, Path], base: str) -> Adapters:
        """Adapters of folders, frozen, with the base model alone in force.

        A folder that several roles name is loaded once. The weights take the model's dtype and device.

        Args:
            model: A causal language model of transformers; its layers are extended in place.
            folders: Adapter folders by role, checked by `ragtrials.llm.policy.check_policy`.
            base: What error messages call the model.

        Raises:
            UserError: An adapter's tensors are not exactly those that its configuration has on this model.
        """
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
        adapters = cls(_layers(model), {role: names[folder.resolve()] for role, folder in folders.items()})
        model.eval()  # new layers begin in training mode, with dropout
        for layer in adapters._layers:
            layer.enable_adapters(False)  # and trainable
        return adapters

    @classmethod
    def live(cls, model: Any, names: Mapping[str, str]) -> Adapters:
        """Adapters that a model which is being trained has in its layers; nothing of it is changed.

        Args:
            model: The model with all the adapters that it will have; with or without peft's wrapper.
            names: What peft calls the adapter of each role. Roles that are not named are answered by the
                base model alone.

        Raises:
            ValueError: No layer has an adapter of such a name, or an adapter replaces whole modules, which
                are not switched here.
        """
        if any(isinstance(module, AuxiliaryTrainingWrapper) for module in model.modules()):
            raise ValueError(
                "an adapter has modules_to_save or trainable tokens: only LoRA layers can switch"
            )
        adapters = cls(_layers(model), names)
        for role, name in names.items():
            if name not in adapters._known:
                raise ValueError(f"role {role!r}: {adapters._unknown(name)}")
        return adapters

    def name(self, role: str) -> str | None:
        """What answers a role: the name of an adapter, or None for the base model."""
        return self._names.get(role)

    def activate(self, name: str | None, trainable: bool = False) -> None:
        """Put one adapter in force, or with None the base model alone.

        Which weights need gradients stays as it is, except where `trainable` asks for more.

        Args:
            name: The adapter's name.
            trainable: Whether its weights, and no others', need gradients from now on if they did not yet.

        Raises:
            ValueError: No layer has an adapter of this name.
        """
        if name is not None and name not in self._known:
            raise ValueError(self._unknown(name))
        for layer in self._layers:
            with _gradients_kept(layer, but_of=name if trainable else None):
                layer.enable_adapters(name is not None)
                if name is not None:
                    layer.set_adapter(name, inference_mode=not trainable)

    def state(self) -> AdapterState:
        """What is in force in each layer now."""
        return tuple((tuple(layer.active_adapters), layer.disable_adapters) for layer in self._layers)

    def restore(self, state: AdapterState) -> None:
        """Put in force again what was when `state` was called."""
        for layer, (active, disabled) in zip(self._layers, state, strict=True):
            with _gradients_kept(layer):
                layer.set_adapter(list(active), inference_mode=True)
                layer.enable_adapters(not disabled)

    def _unknown(self, name: str) -> str:
        known = ", ".join(sorted(self._known)) or "none"
        return f"the model has no adapter {name!r} in its layers (it has: {known})"


def merge_adapter(model: Any, folder: Path, base: str) -> None:
    """Put an adapter's weights, those of trained tokens included, into a model's own for good.

    Args:
        model: A causal language model of transformers, changed in place.
        folder: The adapter, checked by `ragtrials.llm.policy.check_policy`.
        base: What error messages call the model.

    Raises:
        UserError: As `Adapters.load`.
    """
    adapters = Adapters.load(model, {"": folder}, base)
    adapters.activate(adapters.name(""))
    wrappers = (AuxiliaryTrainingWrapper, BaseTunerLayer)
    held = [(name, module) for name, module in model.named_modules() if isinstance(module, wrappers)]
    for name, module in held:
        if isinstance(module, AuxiliaryTrainingWrapper):  # around an embedding: it has its layer inside
            merged = module.unload_and_optionally_merge_module(
                merge=True, safe_merge=False, adapter_names=None
            )
        elif any(name.startswith(f"{outer}.") for outer, _ in held):
            continue
        else:
            module.merge()
            merged = module.get_base_layer()
        model.set_submodule(name, merged)


def _layers(model: Any) -> list[BaseTunerLayer]:
    return [module for module in model.modules() if isinstance(module, BaseTunerLayer)]


def _weights(layer: BaseTunerLayer) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The weights of all adapters of a layer, each with its adapter's name."""
    for attribute in layer.adapter_layer_names:
        for name, part in getattr(layer, attribute).items():
            parts = part.parameters() if isinstance(part, torch.nn.Module) else (part,)
            yield from ((name, weight) for weight in parts)


@contextmanager
def _gradients_kept(layer: BaseTunerLayer, but_of: str | None = None) -> Iterator[None]:
    """peft switches gradients whenever it switches adapters; this undoes it for all adapters but one."""
    flags = [(weight, weight.requires_grad) for name, weight in _weights(layer) if name != but_of]
    try:
        yield
    finally:
        for weight, flag in flags:
            weight.requires_grad_(flag)


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
        cast = {_inside(key): tensor.to(model.device, model.dtype) for key, tensor in weights.items()}
        set_peft_model_state_dict(model, cast, adapter_name=name, low_cpu_mem_usage=True)


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    """Shapes by name."""
    return {_inside(key): tuple(tensor.shape) for key, tensor in tensors.items()}


def _inside(key: str) -> str:
    """A tensor's name in the model; a file's names begin with where peft's own wrapper holds the model."""
    return key.removeprefix("base_model.model.")


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
