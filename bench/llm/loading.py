"""Loads tokenizer and weights of a checked model folder with transformers, quietly and completely."""

from __future__ import annotations

import re
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AddedToken, AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import GENERATION_CONFIG_NAME

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.quiet import quiet_transformers

# What transformers and its helpers raise for a folder that is not what it says; never a fault of ours.
_UNLOADABLE = (OSError, ValueError, KeyError, ImportError, SafetensorError)


def load_tokenizer(model: ResolvedModel) -> Any:
    """The model's tokenizer, with the control tokens that the model is asked to have.

    Raises:
        UserError: transformers cannot read it.
    """
    tokenizer = _folder_tokenizer(model)
    tokenizer.add_tokens([AddedToken(name, special=True, normalized=False) for name in model.tokens])
    return tokenizer


def added_ids(model: ResolvedModel) -> tuple[int, ...]:
    """The ids of the control tokens that the model's folder lacks, sorted."""
    if not model.tokens:
        return ()
    own = _folder_tokenizer(model).get_vocab()
    return tuple(sorted(load_tokenizer(model).get_vocab()[name] for name in model.tokens if name not in own))


def _folder_tokenizer(model: ResolvedModel) -> Any:
    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(model.folder, local_files_only=True)
    except _UNLOADABLE as error:
        raise _unloadable(model, "tokenizer", error) from error


def load_model(model: ResolvedModel, dtype: str, device: str) -> Any:
    """The model in evaluation mode on its device, with rows for the control tokens that it is asked to have.

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
    _add_rows(loaded, model)
    try:
        return loaded.to(device).eval()
    except torch.OutOfMemoryError as error:
        raise RunFailure(f"model {model.name} does not fit into the memory of {device}") from error


def load_configs(model: ResolvedModel) -> tuple[Any, Any]:
    """The model's configuration and its generation settings, as they come with its weights.

    Raises:
        UserError: transformers cannot read them.
    """
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(model.folder, local_files_only=True)
            if (model.folder / GENERATION_CONFIG_NAME).is_file():
                return config, GenerationConfig.from_pretrained(model.folder, local_files_only=True)
            return config, GenerationConfig.from_model_config(config)
    except _UNLOADABLE as error:
        raise _unloadable(model, "configuration", error) from error


def context_of(config: Any) -> int | None:
    """The longest sequence that a model takes, by its configuration; None where nothing bounds it."""
    longest: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
    return longest


def _add_rows(loaded: Any, model: ResolvedModel) -> None:
    """Give each control token that the folder lacks the mean of the embeddings of the words in its name.

    A row at random would be as long as any word's and mean nothing; this is the same in every process, and
    tokens of one group begin near each other.
    """
    if not (ids := added_ids(model)):
        return
    tokenizer = _folder_tokenizer(model)
    extended = load_tokenizer(model)
    if len(extended) > loaded.get_input_embeddings().num_embeddings:
        with quiet_transformers():
            loaded.resize_token_embeddings(len(extended), mean_resizing=False)
    tables = {id(m.weight): m.weight for m in (loaded.get_input_embeddings(), loaded.get_output_embeddings())}
    with torch.no_grad():
        for index in ids:
            name = extended.convert_ids_to_tokens(index)
            pieces = tokenizer(" " + re.sub(r"\W+", " ", name).strip(), add_special_tokens=False).input_ids
            for table in tables.values():  # one table where input and output are tied
                table[index] = table[pieces].mean(dim=0)


def _unloadable(model: ResolvedModel, what: str, error: BaseException) -> UserError:
    reason = " ".join(str(error).split())
    short = reason if len(reason) <= 200 else reason[:200] + "…"
    return UserError(f"model {model.name}: transformers cannot load its {what} ({short}); pass another model")
