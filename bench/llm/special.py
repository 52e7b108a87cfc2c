"""The token ids of a model that are no text: ends of a turn, padding, special tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragtrials.llm.prompts import special_tokens


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Ids with a meaning of their own.

    Attributes:
        ends: Those that end a turn, sorted.
        special: All that are no text, the ends included.
        pad: What fills rows up.
    """

    ends: tuple[int, ...]
    special: frozenset[int]
    pad: int

    @classmethod
    def of(cls, generation: Any, tokenizer: Any) -> SpecialIds:
        """The ids that a model's generation settings and its tokenizer name.

        Args:
            generation: A `GenerationConfig` of transformers.
            tokenizer: The model's.
        """
        found: set[int] = set()
        # A model's folder may name several ends, its tokenizer one more.
        for source in (generation.eos_token_id, tokenizer.eos_token_id):
            found.update([source] if isinstance(source, int) else source or ())
        ends, pad = tuple(sorted(found)), tokenizer.pad_token_id
        return cls(
            ends,
            frozenset(special_tokens(tokenizer)).union(ends),
            pad if pad is not None else min(ends, default=0),
        )
