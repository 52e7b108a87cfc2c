"""Computes what adapters cannot change once per sequence: a decoder cut below its lowest trained layer.

PPO reads a sequence many times: for the old log-probabilities, the reference, the values, and in every
epoch of updates. With adapters on the last layers alone (`lora.last_layers`) all layers below them give
policy, reference and critic the same hidden states, and go on giving them. So they are kept:

    trunk = Trunk(model, cut_depth(model, names) if can_cut(model) else 0)
    kept = unpad(trunk.below(input_ids, mask), mask)     # once
    states, mask = pad([kept[i] for i in batch])         # every time
    hidden = trunk.above(states, mask)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

_CHECKED = frozenset({"llama", "mistral", "qwen2", "qwen3"})
"""Model types whose decoder is: embeddings as they are, layers that are told the same, a last norm."""

_STATIC_ROPE = frozenset({"default", "linear", "llama3", "yarn"})
"""Rotary embeddings in which a token's angle does not depend on the longest sequence of its batch."""


class Trunk:
    """A causal LM's decoder cut at a layer: what lies below is frozen and computed once.

    What `below` returns and `above` takes are *states*. At depth 0 nothing is computed below: the states
    are the token ids themselves, so that this works for every model and trained embeddings get gradients.

    Attributes:
        depth: Number of layers below the cut, from 0 to all of them.
    """

    def __init__(self, model: Any, depth: int) -> None:
        """Cut a model; the model itself stays as it is between calls.

        Args:
            model: A transformers causal LM, with or without LoRA layers in it.
            depth: Number of layers below the cut.

        Raises:
            ValueError: There are not so many layers, or the model cannot be cut above layer 0.
        """
        if depth != 0 and not can_cut(model):
            raise ValueError(
                f"a decoder of type {model.config.model_type} as configured cannot be cut: use depth 0"
            )
        self.depth = depth
        self._decoder = model.get_decoder()
        if depth != 0 and not 0 < depth <= len(self._decoder.layers):
            raise ValueError(f"depth {depth} is not among 0 to {len(self._decoder.layers)} layers")

    def below(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The states that enter layer `depth`, without gradients.

        Args:
            input_ids: (B, T), padded on the right.
            attention_mask: (B, T), 1 for tokens and 0 for padding.

        Returns:
            (B, T, H) hidden states; at depth 0 `input_ids` (B, T).
        """
        if self.depth == 0:
            return input_ids
        with torch.no_grad(), self._only(slice(None, self.depth), nn.Identity()):
            return self._run(attention_mask, input_ids=input_ids)

    def above(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """The decoder's last hidden states, behind the final norm, with gradients where they are enabled.

        Args:
            states: What `below` returned, (B, T, H), or (B, T) at depth 0; whole, or other rows of it in
                another padding.
            attention_mask: (B, T), 1 for tokens and 0 for padding on the right.

        Returns:
            (B, T, H). Positions of padding hold no meaning.
        """
        if self.depth == 0:
            return self._run(attention_mask, input_ids=states)
        with self._only(slice(self.depth, None), self._decoder.norm):
            return self._run(attention_mask, inputs_embeds=states)

    def _run(self, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        positions = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        output = self._decoder(
            **inputs, attention_mask=attention_mask, position_ids=positions, use_cache=False
        )
        hidden: Tensor = output.last_hidden_state
        return hidden

    @contextmanager
    def _only(self, layers: slice, norm: nn.Module) -> Iterator[None]:
        """The decoder with some of its layers, and with `norm` behind them."""
        decoder = self._decoder
        all_layers, last_norm = decoder.layers, decoder.norm
        decoder.layers, decoder.norm = all_layers[layers], norm
        try:
            yield
        finally:
            decoder.layers, decoder.norm = all_layers, last_norm


def can_cut(model: Any) -> bool:
    """Whether this model's hidden states can be computed in two parts, exactly.

    Only for model types that were checked, and with settings under which a token's states are the same in
    every batch and every pass: full attention in all layers (a layer's kind could hang on its index in
    the list that is cut), static rotary embeddings, and no dropout inside the frozen layers.

    Args:
        model: A transformers causal LM.
    """
    config = model.config
    return (
        config.model_type in _CHECKED
        and getattr(config, "sliding_window", None) is None
        and set(getattr(config, "layer_types", None) or ()) <= {"full_attention"}
        and config.rope_parameters["rope_type"] in _STATIC_ROPE
        and not config.attention_dropout
    )


def cut_depth(model: Any, trained: Iterable[str]) -> int:
    """How many layers lie below all trained parameters, thus may lie below a cut.

    Args:
        model: A transformers causal LM with `decoder.layers`.
        trained: Names out of `model.named_parameters()`. Where adapters are exchanged or switched off,
            give those of all adapters, trained or not: what differs between readings must lie above.

    Returns:
        The index of the lowest layer that holds one of them; 0 if one lies outside the layers
        (embeddings, the head that may be tied to them); the number of layers if there are none.

    Raises:
        ValueError: The model has no parameter of such a name.
    """
    layers = model.get_decoder().layers
    (prefix,) = (f"{name}." for name, module in model.named_modules() if module is layers)
    known = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    depth = len(layers)
    for name in trained:
        if name not in known:
            raise ValueError(f"the model has no parameter {name}")
        inside = name.startswith(prefix)
        depth = min(depth, int(name.removeprefix(prefix).partition(".")[0]) if inside else 0)
    return depth


def unpad(states: Tensor, attention_mask: Tensor) -> list[Tensor]:
    """The states of each sequence alone, as copies, so that keeping one does not keep its whole batch.

    Args:
        states: (B, T, H), or token ids (B, T).
        attention_mask: (B, T), 1 for tokens and 0 for padding.

    Returns:
        B tensors (T_i, H), or (T_i,).
    """
    return [row[mask.bool()] for row, mask in zip(states, attention_mask, strict=True)]


def pad(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Put sequences together again, with zeros on the right.

    Args:
        rows: B tensors (T_i, H), or (T_i,), at least one.

    Returns:
        The states (B, T, H), or (B, T), and their attention mask (B, T) of 0 and 1, T the longest T_i.
    """
    masks = [torch.ones(len(row), dtype=torch.long, device=row.device) for row in rows]
    return pad_sequence(list(rows), batch_first=True), pad_sequence(masks, batch_first=True)
