"""Reads token sequences with a causal language model, for what stands before each token of a response."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from ragtrials.errors import UserError
from ragtrials.training.trunk import Trunk, can_cut, cut_depth, pad, unpad


class Backbone:
    """A causal language model as decoder and output layer.

    Logits are computed where they are asked for, which is on the tokens of responses alone. What lies below
    the first trained layer is computed once per sequence, see `ragtrials.training.trunk`.

    Args:
        model: A causal language model of transformers; LoRA layers may be inside it.
        changing: Names of the parameters that are trained or exchanged.
        name: What error messages call it.

    Raises:
        UserError: Its logits are not those of its output layer on the decoder's last hidden states.
    """

    def __init__(self, model: Any, changing: Iterable[str], name: str) -> None:
        self.model = model
        self._head = model.get_output_embeddings()
        self.trunk = Trunk(model, cut_depth(model, changing) if can_cut(model) else 0)
        self._check_head(name)

    @property
    def hidden_size(self) -> int:
        """H, the size of a hidden state."""
        return int(self._head.weight.shape[1])

    def enter(
        self, sequences: Sequence[Sequence[int]], rows: int, known: Sequence[Tensor | None] | None = None
    ) -> list[Tensor]:
        """What `states` takes: the trunk's output for each sequence, or its ids where no layer is frozen.

        The last token is left out: nothing follows from it.

        Args:
            sequences: Token ids.
            rows: Sequences that are read at once.
            known: The trunk's output where somebody has computed it before.
        """
        ids = [torch.tensor(list(sequence)[:-1], device=self.model.device) for sequence in sequences]
        if self.trunk.depth == 0:
            return ids
        entered: list[Tensor] = list(ids)
        todo = []
        for place, states in enumerate(known or [None] * len(ids)):
            if states is None:
                todo.append(place)
            else:
                entered[place] = states
        order = sorted(todo, key=lambda place: (len(ids[place]), place))
        for start in range(0, len(order), rows):
            places = order[start : start + rows]
            padded, mask = pad([ids[place] for place in places])
            for place, states in zip(places, unpad(self.trunk.below(padded, mask), mask), strict=True):
                entered[place] = states
        return entered

    def states(self, entered: Sequence[Tensor], responses: Sequence[int]) -> Tensor:
        """The last hidden states from which the tokens of responses follow.

        Args:
            entered: Prompts, each with its response behind it, as `enter` gives them.
            responses: Length of each response.

        Returns:
            (N, H), one for each token of each response, row after row.
        """
        padded, mask = pad(entered)
        hidden = self.trunk.above(padded, mask)
        places = [
            row * padded.shape[1] + at
            for row, (sequence, length) in enumerate(zip(entered, responses, strict=True))
            for at in range(len(sequence) - length, len(sequence))
        ]
        return hidden.flatten(0, 1)[torch.tensor(places, device=hidden.device)]

    def logits(self, states: Tensor) -> Tensor:
        """(N, V) logits of (N, H) hidden states."""
        logits: Tensor = self._head(states)
        return logits

    def _check_head(self, name: str) -> None:
        """Some architectures scale or cap logits behind the output layer."""
        ids = torch.arange(4, device=self.model.device)
        with torch.no_grad():
            whole = self.model(input_ids=ids.unsqueeze(0), use_cache=False).logits[0, :-1].float()
            ours = self.logits(self.states(self.enter([ids.tolist()], 1), [3])).float()
        if not torch.allclose(whole, ours, rtol=1e-2, atol=1e-1):
            raise UserError(
                f"model {name} changes its logits behind the output layer, which PPO does not know: "
                "train another model"
            )
