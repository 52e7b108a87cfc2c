"""Retrievers that say what retrieval is worth: perfect, blind and none at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragtrials.errors import UserError
from ragtrials.program import Hit
from ragtrials.retrieval.checks import check_search
from ragtrials.retrieval.store import PassageStore

SAME_SCORE = 1.0
"""The score of every hit here: none of these retrievers ranks."""


@dataclass(frozen=True, slots=True)
class OracleRetriever:
    """Returns the gold passages of the question that asks, whatever the query says.

    Attributes:
        store: The corpus.
        gold: Passage ids by example id, in the order they are returned. Ids that the corpus lacks are
            skipped.
        signature: What `build.describe_retriever` says of this retriever: name and corpus.
    """

    store: PassageStore
    gold: Mapping[str, Sequence[str]]
    signature: Mapping[str, Any]

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """The first `k` gold passages for each query; fewer where there are fewer.

        Raises:
            UserError: `k` is not positive, or a question is not one of the task's.
        """
        check_search(queries, k, example_ids)
        if example_ids is None:
            raise UserError(
                "the oracle retriever answers only a task's question, whose gold passages are known: "
                "use bm25 for a free question"
            )
        return [
            [Hit(self.store[position], SAME_SCORE) for position in self._found(i)][:k] for i in example_ids
        ]

    def _found(self, example_id: str) -> Iterator[int]:
        if example_id not in self.gold:
            raise UserError(
                f"the oracle retriever does not know the question {example_id!r}: it answers only a task's "
                f"question, whose gold passages are known"
            )
        for passage_id in dict.fromkeys(self.gold[example_id]):
            position = self.store.position(passage_id)
            if position is not None:
                yield position


@dataclass(frozen=True, slots=True)
class RandomRetriever:
    """Returns passages drawn at random, the same ones whenever the same question asks the same.

    Attributes:
        store: The corpus.
        seed: Another seed draws other passages.
        signature: What `build.describe_retriever` says of this retriever: name, corpus and seed.
    """

    store: PassageStore
    seed: int
    signature: Mapping[str, Any]

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """`k` different passages for each query; all in random order where there are fewer.

        Raises:
            UserError: `k` is not positive.
        """
        check_search(queries, k, example_ids)
        asking = example_ids if example_ids is not None else [""] * len(queries)
        return [
            [Hit(self.store[position], SAME_SCORE) for position in self._draw(example_id, query, k)]
            for example_id, query in zip(asking, queries, strict=True)
        ]

    def _draw(self, example_id: str, query: str, k: int) -> Iterator[int]:
        """Distinct positions: the head of a Fisher-Yates shuffle that keeps only the moved positions.

        Python's and numpy's generators may draw differently in another version; SHA-256 does not.
        """
        state = hashlib.sha256()
        for part in (str(self.seed), example_id, query):
            encoded = part.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "little") + encoded)
        size = len(self.store)
        moved: dict[int, int] = {}
        for place in range(min(k, size)):
            draw = state.copy()
            draw.update(place.to_bytes(8, "little"))
            other = place + int.from_bytes(draw.digest()[:16], "little") % (size - place)
            yield moved.get(other, other)
            moved[other] = moved.get(place, place)


@dataclass(frozen=True, slots=True)
class EmptyRetriever:
    """Finds nothing, ever; each search still counts as a call.

    Attributes:
        signature: What `build.describe_retriever` says of this retriever: name and corpus.
    """

    signature: Mapping[str, Any]

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """No hits for each query.

        Raises:
            UserError: `k` is not positive.
        """
        check_search(queries, k, example_ids)
        return [[] for _ in queries]
