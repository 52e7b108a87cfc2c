"""What every search is held to."""

from __future__ import annotations

import pytest

from ragtrials.errors import UserError
from ragtrials.retrieval.checks import check_search


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(k: int) -> None:
    with pytest.raises(UserError, match=f"k is {k}: ask the retriever for at least 1 passage"):
        check_search(["a"], k, None)


def test_one_string_is_not_a_list_of_queries() -> None:
    with pytest.raises(ValueError, match="not one string"):
        check_search("who?", 1, None)


def test_each_query_has_its_example() -> None:
    with pytest.raises(ValueError, match="2 queries came with 1 example ids"):
        check_search(["a", "b"], 1, ["x"])


@pytest.mark.parametrize("example_ids", [None, ["x", "x"]])
def test_a_sound_search_passes(example_ids: list[str] | None) -> None:
    check_search(["a", "b"], 10**9, example_ids)
    check_search([], 1, [] if example_ids else None)
