"""What the bm25 retriever finds, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.retrieval.bm25 import BM25Retriever
from ragtrials.retrieval.bm25_index import open_index, write_index
from ragtrials.retrieval.settings import BM25Settings
from ragtrials.retrieval.store import PassageStore

PASSAGES = [
    Passage("oslo", "Oslo", "The capital of Norway lies at the end of a fjord."),
    Passage("bergen", "Bergen", "A harbour city in Norway, known for its rain."),
    Passage("lima", "Lima", "The capital of Peru. Companies there acquired much land."),
    Passage("a", "Twin", "Two towns share one name."),
    Passage("b", "Twin", "Two towns share one name."),
    Passage("x", "X", "A letter. \ud83d broken"),
]
SETTINGS = BM25Settings()


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> BM25Retriever:
    folder = tmp_path_factory.mktemp("index")
    PassageStore.write(folder / "store", PASSAGES)
    store = PassageStore.open(folder / "store")
    (folder / "bm25").mkdir()
    write_index(folder / "bm25", store, "digest", SETTINGS)
    return BM25Retriever(open_index(folder / "bm25", "digest", SETTINGS), store, {"name": "bm25"})


def ids(retriever: BM25Retriever, query: str, k: int = 10) -> list[str]:
    return [hit.passage.id for hit in retriever.search([query], k)[0]]


@pytest.mark.parametrize("query", ["", " \n", "the of and", "Antananarivo", "?!…", "\ud83d", "(((", "*"])
def test_a_query_without_a_known_word_finds_nothing(retriever: BM25Retriever, query: str) -> None:
    assert retriever.search([query], 5) == [[]]


def test_the_query_is_stemmed_and_lowered_as_the_passages_are(retriever: BM25Retriever) -> None:
    assert ids(retriever, "ACQUIRED COMPANY") == ["lima"]
    assert ids(retriever, "capitals") == ["oslo", "lima"]


def test_titles_are_searched_too(retriever: BM25Retriever) -> None:
    assert ids(retriever, "bergen") == ["bergen"]
    assert ids(retriever, "x") == ["x"]


def test_only_passages_that_share_a_word_are_hits_whatever_k_is(retriever: BM25Retriever) -> None:
    hits = retriever.search(["capital of Norway"], 10**9)[0]
    assert [hit.passage.id for hit in hits] == ["oslo", "bergen", "lima"]
    assert hits[0].passage == PASSAGES[0]
    assert hits[0].score > hits[1].score >= hits[2].score > 0


def test_ties_stand_in_the_order_of_the_corpus(retriever: BM25Retriever) -> None:
    first, second = retriever.search(["towns that share a name"], 2)[0]
    assert (first.passage.id, second.passage.id) == ("a", "b")
    assert first.score == second.score
    assert ids(retriever, "towns that share a name", k=1) == ["a"]


def test_results_stand_in_the_order_of_the_queries(retriever: BM25Retriever) -> None:
    queries = ["lima", "", "oslo", "lima"]
    found = retriever.search(queries, 1, ["1", "2", "3", "4"])
    assert [[hit.passage.id for hit in hits] for hits in found] == [["lima"], [], ["oslo"], ["lima"]]


def test_no_queries_have_no_results(retriever: BM25Retriever) -> None:
    assert retriever.search([], 5) == []


def test_k_must_be_positive(retriever: BM25Retriever) -> None:
    with pytest.raises(UserError, match="k is 0"):
        retriever.search(["oslo"], 0)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=()), max_size=20)
        | st.sampled_from(["oslo rain", "two capital"]),
        max_size=4,
    )
)
def test_a_query_does_not_depend_on_its_batch(retriever: BM25Retriever, queries: list[str]) -> None:
    assert retriever.search(queries, 3) == [retriever.search([query], 3)[0] for query in queries]


def test_a_repeated_word_counts_twice(retriever: BM25Retriever) -> None:
    once, twice = (retriever.search([query], 1)[0][0].score for query in ("rain", "rain rain"))
    assert twice == pytest.approx(2 * once)


def test_the_signature_is_what_was_given(retriever: BM25Retriever) -> None:
    assert retriever.signature == {"name": "bm25"}
