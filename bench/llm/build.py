"""From command-line options to an engine, or to its signature alone. Imports nothing heavy by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragtrials.llm.models import resolve_model
from ragtrials.llm.signature import DEFAULT_BATCH_SIZE, DEFAULT_MAX_PROMPT_TOKENS, EngineSettings
from ragtrials.program import Engine


def describe_model(
    model: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    batch_size: int = DEFAULT_BATCH_SIZE,
    max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
) -> Mapping[str, Any]:
    """The signature that `load_engine` with the same arguments would have, without loading weights.

    A run's id can so be known, and a finished run be recognised, in a moment. torch is imported only
    where a GPU might be there.

    Raises:
        UserError: The model or a setting is wrong.
    """
    settings = EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)
    return settings.signature(resolve_model(model))


def load_engine(
    model: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    batch_size: int = DEFAULT_BATCH_SIZE,
    max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
) -> Engine:
    """The transformers engine for what `--model` names.

    Args:
        model: "quickstart", a model folder, or a hub id with an optional "@revision".
        dtype: "auto", "bfloat16", "float16" or "float32".
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        batch_size: Prompts at once.
        max_prompt_tokens: Longer prompts have their evidence shortened.

    Raises:
        UserError: The model or a setting is wrong.
    """
    EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)  # before half a minute of loading
    resolved = resolve_model(model)
    from ragtrials.llm.hf import HFEngine

    return HFEngine(
        resolved, dtype=dtype, device=device, batch_size=batch_size, max_prompt_tokens=max_prompt_tokens
    )
