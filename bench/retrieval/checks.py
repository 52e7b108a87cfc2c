"""What every retriever asks of a search before it looks at a passage."""

from __future__ import annotations

from collections.abc import Sequence

from ragtrials.errors import UserError


def check_search(queries: Sequence[str], k: int, example_ids: Sequence[str] | None) -> None:
    """Hold that a search makes sense.

    Raises:
        UserError: `k` is not positive.
        ValueError: There is not one example id per query, or one string is given for the list of queries.
    """
    if k < 1:
        raise UserError(f"k is {k}: ask the retriever for at least 1 passage")
    if isinstance(queries, str):
        raise ValueError("search takes a list of queries, not one string")
    if example_ids is not None and len(example_ids) != len(queries):
        raise ValueError(f"{len(queries)} queries came with {len(example_ids)} example ids")
