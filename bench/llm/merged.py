"""A model with its added tokens and an adapter in one plain folder, for an engine that can add neither."""

from __future__ import annotations

import logging
from pathlib import Path

from ragtrials.cache import build_once, cache_dir
from ragtrials.llm.folders import files_digest
from ragtrials.llm.models import ResolvedModel
from ragtrials.signature import digest

_WRITER = 1
"""Raised whenever `_write` writes something else, so that folders of older writers are not used."""

log = logging.getLogger(__name__)


def merged_folder(model: ResolvedModel, adapter: Path | None, dtype: str) -> Path:
    """The folder in the cache; written the first time, which takes as long as to load the model and save it.

    The base model's weights, with rows for `model.tokens`, and the adapter's are added up in `dtype`, so the
    sums are rounded to it once.

    Args:
        model: The base model.
        adapter: An adapter folder, checked by `ragtrials.llm.policy.check_policy`; None for the tokens alone.
        dtype: The number format that is computed and saved in.

    Raises:
        UserError: The model or the adapter cannot be loaded, or the cache cannot be written.
    """
    parts = [model.digest, model.tokens, None if adapter is None else files_digest(adapter), dtype, _WRITER]
    name = f"{Path(model.name).name}-merged-{digest(parts, 16)}"
    return build_once(cache_dir() / "models" / name, lambda work: _write(work, model, adapter, dtype))


def _write(folder: Path, model: ResolvedModel, adapter: Path | None, dtype: str) -> None:
    from transformers import GenerationConfig

    from ragtrials.llm.loading import load_model, load_tokenizer
    from ragtrials.llm.quiet import quiet_transformers

    log.info("writing %s with its added weights once", model.name)
    weights = load_model(model, dtype, "cpu")
    if adapter is not None:
        from ragtrials.llm.adapters import merge_adapter

        merge_adapter(weights, adapter, model.name)
    # What the folder recommends is not for us, and transformers refuses to save some of it.
    weights.generation_config = GenerationConfig()
    with quiet_transformers():
        weights.save_pretrained(folder)
        load_tokenizer(model).save_pretrained(folder)
