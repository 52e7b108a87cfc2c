"""Reads a prompt that several rows of a batch share only once."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

# Layers that hold keys and values and nothing else, so that selecting rows of those selects all there is.
_SELECTABLE = (DynamicLayer, DynamicSlidingWindowLayer)


class SharedPrefill:
    """Samples of one prompt differ only in what follows it, so its keys and values can be computed once.

    A model whose cache cannot be expanded (a recurrent state, say) is found out at the first batch that
    would share, and reads every row by itself from then on.

    Args:
        model: A causal language model of transformers.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        parameters = inspect.signature(model.forward).parameters
        # The argument's name, and its field's in the output, changed within transformers 5.
        self._keyword = next((name for name in ("cache", "past_key_values") if name in parameters), None)
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}

    def read(
        self, prompts: Sequence[tuple[int, ...]], input_ids: torch.Tensor, mask: torch.Tensor
    ) -> dict[str, Any]:
        """What `generate` needs to go on from prompts that have been read up to their last token.

        Args:
            prompts: (batch,) The ids of each row without padding.
            input_ids: (batch, length) The same, left-padded.
            mask: (batch, length) 0 on padding.

        Returns:
            The cache, (batch, length - 1) positions, as a keyword argument; nothing if no two prompts are
            equal, or the model's cache cannot be expanded.
        """
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        if self._keyword is None or len(places) == len(prompts) or input_ids.shape[1] == 1:
            return {}
        first = torch.tensor([prompts.index(prompt) for prompt in places], device=input_ids.device)
        seen = mask[first, :-1]
        output = self._model(
            input_ids=input_ids[first, :-1],
            attention_mask=seen,
            position_ids=(seen.cumsum(dim=-1) - 1).clamp(min=0),
            use_cache=True,
            **self._options,
        )
        cache = getattr(output, self._keyword, None)
        if not isinstance(cache, DynamicCache) or any(type(x) not in _SELECTABLE for x in cache.layers):
            self._keyword = None
            return {}
        rows = torch.tensor([places[prompt] for prompt in prompts], device=input_ids.device)
        cache.batch_select_indices(rows)
        return {self._keyword: cache}
