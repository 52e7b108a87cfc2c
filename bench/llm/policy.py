"""Trained weights of a method's roles: what their folders must hold, and which engine answers whom.

A policy is a folder: either a peft LoRA adapter over the base model, or a full Hugging Face model.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ragtrials.errors import UserError
from ragtrials.llm.folders import check_folder, check_safetensors, read_json
from ragtrials.llm.models import ResolvedModel
from ragtrials.program import Completion, Engine, Generate, Score

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

# A full model's weights may have been trained, its architecture may not have been exchanged. The size of the
# vocabulary is not among these: training may add a token.
_ARCHITECTURE = ("model_type", "hidden_size", "num_hidden_layers")
# Settings of an adapter that reach beyond its own LoRA layers: they replace, copy or re-initialise weights of
# the base model, which other roles share, or need more than a forward pass.
_BEYOND_LORA = (
    "modules_to_save",
    "target_parameters",
    "layer_replication",
    "alora_invocation_tokens",
    "arrow_config",
    "kasa_config",
    "monteclora_config",
    "use_bdlora",
)
_PLAIN_INITS = (
    True,
    False,
    None,
    "gaussian",
    "orthogonal",
    "eva",
)  # all others change the base model's weights

_Request = TypeVar("_Request", Generate, Score)


def is_adapter(folder: Path) -> bool:
    """Whether a folder of trained weights is a peft adapter rather than a full model."""
    return (folder / ADAPTER_CONFIG).is_file()


def check_policy(role: str, folder: Path, base: ResolvedModel) -> None:
    """Hold that a folder has whole trained weights for the base model, as far as its files tell.

    Whether an adapter's tensors fit the base model's layers is seen when it is loaded.

    Args:
        role: Whose weights they are, for the error message.
        folder: A LoRA adapter folder, or a Hugging Face model folder with a tokenizer.
        base: The model the training started from.

    Raises:
        UserError: Names what is missing, damaged, or belongs to another model.
    """
    where = f"trained weights of role {role!r}: {folder}"
    if not folder.is_dir():
        raise UserError(f"{where} is no folder; pass one that a training run has written")
    if is_adapter(folder):
        _check_adapter(where, folder, base)
    elif (folder / "config.json").is_file():
        check_folder(folder)
        _check_architecture(where, folder, base)
    else:
        raise UserError(
            f"{where} holds neither an adapter ({ADAPTER_CONFIG}) nor a model (config.json); "
            "pass a folder that a training run has written"
        )


def _check_adapter(where: str, folder: Path, base: ResolvedModel) -> None:
    config = read_json(folder / ADAPTER_CONFIG)
    kind = config.get("peft_type") if isinstance(config, dict) else None
    if kind != "LORA":
        raise UserError(f"{where}/{ADAPTER_CONFIG}: peft_type is {kind!r}, not 'LORA'; pass a LoRA adapter")
    beyond = [name for name in _BEYOND_LORA if config.get(name)]
    if config.get("bias", "none") != "none":
        beyond.append("bias")
    if config.get("init_lora_weights") not in _PLAIN_INITS:
        beyond.append("init_lora_weights")
    if beyond:
        raise UserError(
            f"{where}/{ADAPTER_CONFIG}: {beyond[0]} is {config[beyond[0]]!r}, which reaches beyond the "
            "adapter's own layers; train with that setting at its default, or save the merged model in full"
        )
    if indices := config.get("trainable_token_indices"):
        _check_tokens(where, indices, base)
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise UserError(f"{where}: {ADAPTER_WEIGHTS} is missing; save the adapter again with save_pretrained")
    check_safetensors(folder / ADAPTER_WEIGHTS)
    if importlib.util.find_spec("peft") is None:
        raise UserError(f"{where} is a LoRA adapter, which needs peft: install it with `pip install peft`")


def _check_tokens(where: str, indices: Any, base: ResolvedModel) -> None:
    """Hold that an adapter trains embeddings of the very control tokens that were added to the base model."""
    added: tuple[int, ...] = ()
    if base.tokens:
        from ragtrials.llm.loading import added_ids  # imports torch

        added = added_ids(base)
    tables = list(indices.values()) if isinstance(indices, dict) else [indices]
    if not added or any(sorted(table) != list(added) for table in tables):
        raise UserError(
            f"{where}/{ADAPTER_CONFIG}: trainable_token_indices are of other tokens than the {len(added)} "
            f"that are added to model {base.name}; pass an adapter of this method and model"
        )


def _check_architecture(where: str, folder: Path, base: ResolvedModel) -> None:
    own, expected = read_json(folder / "config.json"), read_json(base.folder / "config.json")
    for key in _ARCHITECTURE:
        if own.get(key) != expected.get(key):
            raise UserError(
                f"{where}/config.json: {key} is {own.get(key)!r}, but {expected.get(key)!r} in model "
                f"{base.name}; pass the model that the training started from"
            )


class RoleEngine:
    """Sends each request to its role's engine; fulfils `ragtrials.program.Engine`.

    Args:
        signature: That of the base model; trained weights are named by who trained them.
        base: Gives the engine of all roles that have none of their own. Called when the first such request
            comes, so that a base model that nobody asks takes no memory; must return the same one each time.
        own: Engines by role.
    """

    def __init__(
        self, signature: Mapping[str, Any], base: Callable[[], Engine], own: Mapping[str, Engine]
    ) -> None:
        self._signature = dict(signature)
        self._base = base
        self._own = dict(own)

    @property
    def signature(self) -> Mapping[str, Any]:
        """The base model's signature."""
        return dict(self._signature)

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """One completion per request, in order.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or memory ran out.
            UserError: A setting of a request is out of range.
        """
        if len(requests) != len(seeds):
            raise ValueError(f"{len(seeds)} seeds for {len(requests)} requests")
        return self._routed(
            requests,
            lambda engine, at: engine.generate([requests[i] for i in at], [seeds[i] for i in at]),
        )

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """For each request, in order, the log-probabilities of its continuation's tokens.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or memory ran out.
        """
        return self._routed(requests, lambda engine, at: engine.score([requests[i] for i in at]))

    def _routed(
        self, requests: Sequence[_Request], ask: Callable[[Engine, list[int]], list[Completion]]
    ) -> list[Completion]:
        """Ask every engine once, for the places of all its requests; roles can share an engine."""
        places: dict[int, list[int]] = {}
        engines: dict[int, Engine] = {}
        for place, request in enumerate(requests):
            engine = self._own.get(request.role) or self._base()
            engines[id(engine)] = engine
            places.setdefault(id(engine), []).append(place)
        results: dict[int, Completion] = {}
        for key, at in places.items():
            results.update(zip(at, ask(engines[key], at), strict=True))
        return [results[place] for place in range(len(requests))]
