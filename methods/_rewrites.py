"""What a query rewriter writes: one query a line, and how the retrieval budget is shared among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Rewrites:
    """A rewriter's output.

    Attributes:
        lines: The lines as the model wrote them, stripped; without blank ones unless those are kept.
        queries: What is searched, in this order; never empty.
    """

    lines: tuple[str, ...]
    queries: tuple[str, ...]


def parse_rewrites(
    text: str,
    question: str,
    blank: Literal["drop", "keep"] = "drop",
    most: int = 4,
    give_up: int | None = 8,
) -> Rewrites:
    """The queries in a rewriter's output (MMOA-RAG, released code).

    Args:
        text: The decoded output.
        question: What is searched if the output is of no use.
        blank: Whether blank lines are dropped, or kept as empty queries as the released code does.
        most: How many queries are searched at most; of more lines the first ones count. At least 1.
        give_up: With more lines than this the question is searched instead. Never if None, as in the
            released evaluation.
    """
    stripped = (line.strip() for line in text.split("\n"))
    lines = tuple(line for line in stripped if line or blank == "keep")
    useless = not lines or (give_up is not None and len(lines) > give_up)
    return Rewrites(lines, (question,) if useless else lines[:most])


def quotas(queries: int, k: int) -> tuple[int, ...]:
    """How many of its best passages each query contributes, as even as possible, the first ones more.

    They sum to k, so that what reads the passages sees as many however the question is divided: for 10 these
    are (10), (5, 5), (4, 3, 3), (3, 3, 2, 2) and (2, 2, 2, 2, 2), as in MMOA-RAG's released code. With more
    queries than passages the last ones contribute none: they need not be searched.

    Args:
        queries: The number of queries, at least 1.
        k: The number of passages.

    Raises:
        ValueError: There is no query, or k is negative.
    """
    if queries < 1 or k < 0:
        raise ValueError(f"{k} passages cannot be shared among {queries} queries")
    share, rest = divmod(k, queries)
    return tuple(share + (rank < rest) for rank in range(queries))
