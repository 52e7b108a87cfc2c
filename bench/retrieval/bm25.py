"""BM25 over a memory-mapped index: the retriever that works everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragtrials.program import Hit
from ragtrials.retrieval.bm25_index import BM25Index
from ragtrials.retrieval.checks import check_search
from ragtrials.retrieval.store import PassageStore


@dataclass(frozen=True, slots=True)
class BM25Retriever:
    """Finds the passages whose words are rare and match the query's.

    Attributes:
        index: Which positions match.
        store: The passages at these positions.
        signature: What `build.describe_retriever` says of this retriever: name, corpus, settings and library
            versions.
    """

    index: BM25Index
    store: PassageStore
    signature: Mapping[str, Any]

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """At most `k` hits for each query, best first, ties in the corpus's order.

        Only passages that share a word with the query are hits: a query without words, with stop words
        alone or with unknown words has none, and a `k` beyond the corpus returns what there is.

        Raises:
            UserError: `k` is not positive.
        """
        check_search(queries, k, example_ids)
        return [
            [Hit(self.store[position], score) for position, score in self.index.top(query, k)]
            for query in queries
        ]
