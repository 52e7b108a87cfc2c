"""RAG-DDR's refinement without the model: verdicts, the batches of its loop, the generator's documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, TypeVar

from ragtrials.errors import UserError

T = TypeVar("T")
Item = TypeVar("Item", bound=Hashable)

Fill = Literal["none", "official", "unique"]
"""What makes up for too few kept documents, see `select_documents`."""


def judged_relevant(text: str) -> bool:
    """Whether a verdict keeps its document: YES, yes or Yes anywhere in it (official code, spec §1.3).

    So "YESTERDAY" and "No. Yes" keep it, "yEs" and an empty verdict do not.
    """
    return any(word in text for word in ("YES", "yes", "Yes"))


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, `size` at a time, the last batch perhaps smaller (size: at least 1).

    The refinement loop judges the batches one after the other and ends after a whole one (spec §1.3).
    """
    return (items[start : start + size] for start in range(0, len(items), size))


def enough(kept: int, need: int) -> bool:
    """Whether the refinement loop ends; asked after each whole batch, so more may be kept (spec §1.3)."""
    return kept >= need


def all_or_kept(kept: Sequence[T], retrieved: Sequence[T]) -> tuple[T, ...]:
    """The kept documents, or all retrieved ones if none was judged relevant (spec §1.3; §7, quirk 16).

    A refiner that always says NO is therefore the same as no refiner.
    """
    return tuple(kept or retrieved)


def select_documents(kept: Sequence[Item], retrieved: Sequence[Item], k: int, fill: Fill) -> tuple[Item, ...]:
    """The at most `k` documents that the generator reads (spec §1.5).

    Args:
        kept: The refined documents, in order of retrieval.
        retrieved: All documents, in order of retrieval.
        k: How many at most; at least 1.
        fill: "none": the kept ones alone, the paper's evaluation. "official": made up with the first
            retrieved ones, a kept one perhaps a second time, the official rollouts and training.
            "unique": made up with the first retrieved ones that are not there yet.

    Raises:
        UserError: `fill` is none of these.
    """
    chosen = tuple(kept[:k])
    match fill:
        case "none":
            return chosen
        case "official":
            return chosen + tuple(retrieved[: k - len(chosen)])
        case "unique":
            return tuple(dict.fromkeys((*chosen, *retrieved)))[:k]
    raise UserError(f"fill must be none, official or unique, not {fill!r}")
