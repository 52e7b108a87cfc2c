"""How the next token is chosen and when a row ends: small hooks for transformers' `generate`.

Every choice depends on its own row alone, never on the rows that happen to be in the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ragtrials.errors import UserError
from ragtrials.program import Generate


@dataclass(frozen=True, slots=True)
class Decoding:
    """The settings that the rows of one batch share."""

    max_new_tokens: int
    temperature: float
    top_p: float
    stop: tuple[str, ...]
    logprobs: bool
    restricted: bool
    watch: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    @classmethod
    def of(cls, request: Generate) -> Decoding:
        """The settings of a request.

        Raises:
            UserError: One of them is out of range.
        """
        if request.max_new_tokens < 1:
            raise UserError(f"max_new_tokens is {request.max_new_tokens}: give 1 or more")
        if not request.temperature >= 0:
            raise UserError(f"temperature is {request.temperature}: give 0 (greedy) or more")
        if not 0 < request.top_p <= 1:
            raise UserError(f"top_p is {request.top_p}: give more than 0 and at most 1")
        return cls(
            request.max_new_tokens,
            request.temperature,
            request.top_p if request.temperature else 1.0,
            tuple(text for text in request.stop if text),
            request.logprobs,
            bool(request.allowed),
            request.watch,
            request.ends,
        )

    @property
    def plain(self) -> bool:
        """Whether the highest logit is simply taken, without a record."""
        return not (self.temperature or self.logprobs or self.restricted or self.watch)


class TokenChooser:
    """A logits processor whose output has its maximum at the token to take.

    At temperature 0 that is the likeliest token. Above, it is a sample by the Gumbel-max trick: the
    maximum of `logits / temperature + noise` is distributed like softmax(logits / temperature). Each
    row draws its noise from a generator of its own, so a sample depends on its row's seed alone.

    Args:
        settings: What the batch shares.
        seeds: (batch,) The seed of each row; unused at temperature 0.
        allowed: (batch,) The ids that each row is limited to, if `settings.restricted`.
        watched: The ids that are watched.

    Attributes:
        logprobs: For each step a (batch,) tensor: log softmax(logits / temperature) of the chosen token
            (temperature 1 for greedy decoding), over the whole vocabulary: neither `allowed` nor
            `top_p` enters, so that they are what a later scoring of the same tokens gives.
        seen: For each step a (batch, watched) tensor: the same of the watched tokens.
    """

    def __init__(
        self,
        settings: Decoding,
        seeds: Sequence[int],
        allowed: Sequence[Sequence[int]] | None = None,
        watched: Sequence[int] = (),
    ) -> None:
        self._settings = settings
        self._watched = list(watched)
        self.seen: list[torch.Tensor] = []
        self._seeds = seeds
        self._allowed = allowed
        self._generators: list[torch.Generator] = []
        self.logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """From (batch, length) ids and (batch, vocabulary) float32 logits to scores of that shape."""
        settings = self._settings
        scaled = scores / settings.temperature if settings.temperature else scores
        choice = scaled
        if self._allowed is not None:
            choice = torch.full_like(scaled, -torch.inf)
            for row, ids in enumerate(self._allowed):
                choice[row, ids] = scaled[row, ids]
        if settings.temperature:
            choice = nucleus(choice, settings.top_p) + self._gumbel(scaled)
        if self._watched:
            self.seen.append(scaled[:, self._watched] - scaled.logsumexp(dim=-1, keepdim=True))
        if settings.logprobs:
            taken = choice.argmax(dim=-1, keepdim=True)
            chosen = scaled.gather(-1, taken) - scaled.logsumexp(dim=-1, keepdim=True)
            self.logprobs.append(chosen.squeeze(-1))
        return choice

    def _gumbel(self, like: torch.Tensor) -> torch.Tensor:
        """(batch, vocabulary) of Gumbel noise; row i goes on with the stream of seed i."""
        if not self._generators:
            self._generators = [
                torch.Generator(like.device).manual_seed(seed % 2**63) for seed in self._seeds
            ]
        noise = torch.empty_like(like)
        for row, generator in zip(noise, self._generators, strict=True):
            row.exponential_(generator=generator)
        return noise.log_().neg_()


def nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Logits with all but the smallest set of likeliest tokens whose mass reaches `top_p` at -inf.

    Args:
        logits: (batch, vocabulary); -inf entries have no mass.
        top_p: 0 < top_p <= 1; at 1 the logits come back as they are.
    """
    if top_p >= 1:
        return logits
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # the mass of the likelier tokens
    excluded = before >= top_p  # in sorted order; scattered back to the vocabulary's
    return logits.masked_fill(torch.empty_like(excluded).scatter(-1, order, excluded), -torch.inf)


class StopStrings:
    """A stopping criterion that ends a row as soon as its new text holds one of the stop strings.

    Args:
        stop: The strings, none empty.
        decode: From ids to text.
        skip: Ids that are no text (special tokens).
        batch: Number of rows.

    Attributes:
        lengths: For each row how many tokens it had when it ended; None while it goes on.
    """

    def __init__(
        self, stop: Sequence[str], decode: Callable[[list[int]], str], skip: frozenset[int], batch: int
    ) -> None:
        self._stop = stop
        self._decode = decode
        self._skip = skip
        # A token holds a byte or more, so this many last tokens cover a stop string that has just
        # been completed; the rest is room for a character that the window's start cuts in two.
        self._window = max(len(text.encode()) for text in stop) + 4
        self._texts: list[list[int]] = [[] for _ in range(batch)]
        self._steps = 0
        self.lengths: list[int | None] = [None] * batch

    def __call__(self, input_ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
        """From (batch, length) ids, the newest last, to (batch,) bool: which rows have ended."""
        self._steps += 1
        for row, token in enumerate(input_ids[:, -1].tolist()):
            if self.lengths[row] is not None or token in self._skip:
                continue
            self._texts[row].append(token)
            text = self._decode(self._texts[row][-self._window :])
            if any(stop in text for stop in self._stop):
                self.lengths[row] = self._steps
        return torch.tensor([length is not None for length in self.lengths], device=input_ids.device)


def cut_before(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string in it."""
    return text[: min((at for at in map(text.find, stop) if at >= 0), default=len(text))]
