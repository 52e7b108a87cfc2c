"""Lends a model that is being trained to an engine, and gives it back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig

if TYPE_CHECKING:
    from ragtrials.llm.adapters import Adapters


@contextmanager
def lent(model: Any, adapters: Adapters | None) -> Iterator[None]:
    """Inside, the model is as an engine needs it; afterwards as it was, whatever happened.

    An engine needs evaluation mode (no dropout, and no gradient checkpointing, which would switch off the
    cache of keys and values) and no generation settings of the model's own. Gradients are off, but tensors
    are plain ones: autograd would refuse inference tensors that a model keeps for its next forward pass.

    Args:
        model: A causal language model of transformers.
        adapters: Those in its layers, if any; the one that is in force now will be again.
    """
    was_training = model.training
    modes = [(module, module.training) for module in model.modules()]
    settings = model.generation_config
    state = adapters.state() if adapters else None
    model.generation_config = GenerationConfig()
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        model.generation_config = settings
        model.train(was_training)  # some modules do more than to set a flag here
        for module, training in modes:  # but not all need have been in the same mode
            module.training = training
        if adapters and state is not None:
            adapters.restore(state)
