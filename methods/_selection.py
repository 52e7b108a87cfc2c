"""What a selector writes: the numbers of the passages it keeps, as `Document0,Document3`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """A selector's output.

    Attributes:
        ids: The chosen passages by their number from 0, in the order in which they were written, each once.
        well_formed: Whether the output names passages in the asked form, each once, and has nothing else. No
            output at all is well formed and chooses none.
    """

    ids: tuple[int, ...]
    well_formed: bool


def document(number: int) -> str:
    """The name of a passage in the selector's prompt and output."""
    return f"Document{number}"


def selection_text(ids: Iterable[int]) -> str:
    """The output that chooses these passages; "" for none."""
    return ",".join(map(document, ids))


def selection_strings(k: int) -> tuple[str, ...]:
    """Strings whose tokens the selector may write, for `Generate.allowed`.

    Every name stands there with and without a comma before it, because some tokenizers have one token for
    the comma and what follows; and all of them in one text, for those that join a digit and the comma.

    Args:
        k: The number of passages that are shown.

    Raises:
        ValueError: There is no passage: an empty `allowed` would forbid nothing, so don't ask the selector.
    """
    if k < 1:
        raise ValueError("a selector needs at least one passage to choose from")
    names = tuple(map(document, range(k)))
    return (*names, *(f",{name}" for name in names), selection_text(range(k)))


def parse_selection(text: str, k: int) -> Selection:
    """What a selector chose (MMOA-RAG, released code).

    The text is divided at commas and "Document" deleted in each part. Parts that are then exactly a number
    below k count, the first k of them, each once; whitespace is not forgiven.

    Args:
        text: The decoded output, as it is.
        k: The number of passages that were shown.
    """
    numbers = {str(number): number for number in range(k)}
    parts = [part.replace("Document", "") for part in text.split(",")]
    named = [numbers[part] for part in parts if part in numbers][:k]
    ids = tuple(dict.fromkeys(named))
    return Selection(ids, text == selection_text(ids))
