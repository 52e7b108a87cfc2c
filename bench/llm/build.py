"""From command-line options to an engine, or to its signature alone. Imports nothing heavy by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from ragtrials.errors import UserError
from ragtrials.llm.models import resolve_model
from ragtrials.llm.policy import RoleEngine, check_policy, is_adapter
from ragtrials.llm.signature import DEFAULT_BATCH_SIZE, DEFAULT_MAX_PROMPT_TOKENS, EngineSettings
from ragtrials.llm.vllm_settings import VLLMSettings
from ragtrials.program import Engine

ENGINES = ("hf", "vllm")
"""What `--engine` takes."""


Settings: TypeAlias = EngineSettings | VLLMSettings


def describe_model(
    model: str,
    *,
    engine: str = "hf",
    dtype: str = "auto",
    device: str = "auto",
    batch_size: int = DEFAULT_BATCH_SIZE,
    max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
    tokens: tuple[str, ...] = (),
) -> Mapping[str, Any]:
    """The signature that `load_engine` with the same arguments would have, without loading weights.

    A run's id can so be known, and a finished run be recognised, in a moment. torch is imported only
    where a GPU might be there.

    Raises:
        UserError: The model or a setting is wrong.
    """
    settings = _settings(engine)(dtype, device, batch_size, max_prompt_tokens)
    return settings.signature(resolve_model(model, tokens))


def _settings(engine: str) -> Callable[[str, str, int, int], Settings]:
    if engine not in ENGINES:
        raise UserError(f"--engine {engine!r} is unknown: use one of {', '.join(ENGINES)}")
    return EngineSettings.resolve if engine == "hf" else VLLMSettings.resolve


def load_engine(
    model: str,
    *,
    engine: str = "hf",
    dtype: str = "auto",
    device: str = "auto",
    batch_size: int = DEFAULT_BATCH_SIZE,
    max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
    policies: Mapping[str, Path] = MappingProxyType({}),
    tokens: tuple[str, ...] = (),
) -> Engine:
    """The engine for what `--model` names.

    Adapters share one base model in memory. A full folder is a model of its own, one for all roles that name
    it; the base model is then loaded only when a role without trained weights speaks. vLLM holds one model
    alone: see `ragtrials.llm.vllm_policies`.

    Args:
        model: "quickstart", a model folder, or a hub id with an optional "@revision".
        engine: One of `ENGINES`.
        dtype: "auto", "bfloat16", "float16" or "float32".
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        batch_size: Rows at once; several samples of one prompt are as many rows.
        max_prompt_tokens: Longer prompts have their evidence shortened.
        policies: Folders with trained weights by role: a peft LoRA adapter over `model`, or a full model
            with its tokenizer. The other roles are answered by `model` as it is. The engine's signature is
            that of `model` all the same: who trained the weights names them.
        tokens: Control tokens that the model has to have; missing ones are added to it.

    Raises:
        UserError: The model, a setting or a folder of trained weights is wrong.
    """
    # Everything that can be checked is, before half a minute of loading.
    settings = _settings(engine)(dtype, device, batch_size, max_prompt_tokens)
    resolved = resolve_model(model, tokens)
    for role, folder in policies.items():
        check_policy(role, folder, resolved)
    if isinstance(settings, VLLMSettings):
        from ragtrials.llm.vllm_policies import load_vllm

        return load_vllm(resolved, settings, policies)
    from ragtrials.llm.hf import HFEngine

    load = partial(
        HFEngine, dtype=dtype, device=device, batch_size=batch_size, max_prompt_tokens=max_prompt_tokens
    )
    adapters = {role: folder for role, folder in policies.items() if is_adapter(folder)}
    full = {role: folder.resolve() for role, folder in policies.items() if role not in adapters}
    base = cache(partial(load, resolved, adapters=adapters))
    if not full:
        return base()
    if adapters:
        base()
    models = {folder: load(resolve_model(str(folder), tokens)) for folder in dict.fromkeys(full.values())}
    own = {role: models[folder] for role, folder in full.items()}
    return RoleEngine(settings.signature(resolved), base, own)
