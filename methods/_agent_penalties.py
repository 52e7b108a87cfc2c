"""The penalties of MMOA-RAG's three agents (§3), which are added to the reward that they share."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from ragtrials.errors import UserError
from ragtrials.methods._rewrites import Rewrites
from ragtrials.methods._selection import Selection


def unmarked(answer: str) -> str:
    """A generator's answer without the asterisks around it."""
    return answer.replace("*", "")


@dataclass(frozen=True, slots=True)
class Penalties:
    """What an agent loses for an output that it should not write; the defaults are the paper's meaning.

    The paper leaves the length of an answer open; 30 words are the released code's.

    Attributes:
        rewriter: Added once if the rewriter wrote too much; 0 or less, as the others.
        most_queries: The most lines that a rewriter may write; any number if None.
        most_query_characters: The most characters that the searched queries may have in all; any number if
            None.
        selector: Added once if the selection is not well formed.
        generator: Added if the answer is too long.
        most_answer_words: The most words that an answer may have, divided by whitespace, without asterisks.

    Raises:
        UserError: A penalty is above 0 or not finite, or a limit below 1.
    """

    rewriter: float = -0.5
    most_queries: int | None = 4
    most_query_characters: int | None = None
    selector: float = -1.0
    generator: float = -0.5
    most_answer_words: int = 30

    def __post_init__(self) -> None:
        for name in ("rewriter", "selector", "generator"):
            value = getattr(self, name)
            if not (isfinite(value) and value <= 0):
                raise UserError(f"penalties.{name} is {value}: use a number that is 0 or less")
        for name in ("most_queries", "most_query_characters", "most_answer_words"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise UserError(f"penalties.{name} is {limit}: use a number that is at least 1")

    def of_rewriter(self, rewrites: Rewrites) -> float:
        """The rewriter's penalty."""
        many = self.most_queries is not None and len(rewrites.lines) > self.most_queries
        length = sum(map(len, rewrites.queries))
        long = self.most_query_characters is not None and length > self.most_query_characters
        return self.rewriter if many or long else 0.0

    def of_selector(self, selection: Selection) -> float:
        """The selector's penalty."""
        return 0.0 if selection.well_formed else self.selector

    def of_generator(self, answer: str) -> float:
        """The generator's penalty.

        Args:
            answer: The output as it is or cleaned: asterisks are not counted.
        """
        return self.generator if len(unmarked(answer).split()) > self.most_answer_words else 0.0


PAPER = Penalties()
"""The paper's meaning."""

OFFICIAL = Penalties(most_queries=None, most_query_characters=300, generator=-1.0)
"""The released code's effect.

It has the rule about the number of queries too, but cuts the list to four, or gives it up, before it counts,
so only the length of what is searched can cost something.
"""
