"""Loads tokenizer and weights of a checked model folder with transformers, quietly and completely."""

from __future__ import annotations

from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.quiet import quiet_transformers

# What transformers and its helpers raise for a folder that is not what it says; never a fault of ours.
_UNLOADABLE = (OSError, ValueError, KeyError, ImportError, SafetensorError)


def load_tokenizer(model: ResolvedModel) -> Any:
    """The model's tokenizer.

    Raises:
        UserError: transformers cannot read it.
    """
    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(model.folder, local_files_only=True)
    except _UNLOADABLE as error:
        raise _unloadable(model, "tokenizer", error) from error


def load_model(model: ResolvedModel, dtype: str, device: str) -> Any:
    """The model in evaluation mode on its device.

    Raises:
        UserError: transformers cannot read it as a causal language model, or weights are missing in it
            (transformers itself would go on with random ones).
        RunFailure: It does not fit into memory.
    """
    try:
        with quiet_transformers():
            loaded, info = AutoModelForCausalLM.from_pretrained(
                model.folder, dtype=getattr(torch, dtype), local_files_only=True, output_loading_info=True
            )
    except _UNLOADABLE as error:
        raise _unloadable(model, "model", error) from error
    problems = sorted(info["missing_keys"]) + sorted(str(key[0]) for key in info["mismatched_keys"])
    if problems:
        raise UserError(
            f"model {model.name}: {len(problems)} weights are missing or of another shape, the first is "
            f"{problems[0]}; pass a folder whose config.json belongs to its weights"
        )
    try:
        return loaded.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise RunFailure(f"model {model.name} does not fit into the memory of {device}") from error


def _unloadable(model: ResolvedModel, what: str, error: BaseException) -> UserError:
    reason = " ".join(str(error).split())
    short = reason if len(reason) <= 200 else reason[:200] + "…"
    return UserError(f"model {model.name}: transformers cannot load its {what} ({short}); pass another model")
