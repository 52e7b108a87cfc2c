"""The retrievers that say what retrieval is worth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.program import Hit, Retriever
from ragtrials.retrieval.diagnostic import EmptyRetriever, OracleRetriever, RandomRetriever
from ragtrials.retrieval.store import PassageStore

SIGNED = {"name": "test"}
PASSAGES = [Passage(f"p{n}", f"Title {n}", f"Text {n}") for n in range(10)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> PassageStore:
    folder: Path = tmp_path_factory.mktemp("store")
    PassageStore.write(folder, PASSAGES)
    return PassageStore.open(folder)


@pytest.fixture(scope="module")
def oracle(store: PassageStore) -> OracleRetriever:
    gold = {"q1": ("p3", "p1"), "q2": ("gone", "p9", "p9"), "q3": (), "q4": ("gone",)}
    return OracleRetriever(store, gold, signature=SIGNED)


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


@pytest.mark.parametrize(
    ("example", "k", "found"),
    [
        ("q1", 5, ["p3", "p1"]),
        ("q1", 1, ["p3"]),
        ("q2", 5, ["p9"]),
        ("q2", 1, ["p9"]),
        ("q3", 5, []),
        ("q4", 5, []),
    ],
)
def test_oracle_returns_the_gold_passages(
    oracle: OracleRetriever, example: str, k: int, found: list[str]
) -> None:
    assert ids(oracle.search(["whatever is asked"], k, [example])[0]) == found


def test_oracle_goes_by_the_question_not_the_query(oracle: OracleRetriever) -> None:
    hits = oracle.search(["same", "same", ""], 9, ["q1", "q2", "q1"])
    assert [ids(found) for found in hits] == [["p3", "p1"], ["p9"], ["p3", "p1"]]
    assert hits[0][0].passage == PASSAGES[3]
    assert hits[0][0].score > 0


def test_oracle_needs_a_task_question(oracle: OracleRetriever) -> None:
    with pytest.raises(UserError, match=r"answers only a task's question.*use bm25 for a free question"):
        oracle.search(["who?"], 5)
    with pytest.raises(UserError, match="does not know the question 'q99'"):
        oracle.search(["who?"], 5, ["q99"])


def drawn(store: PassageStore, example: str, query: str, k: int = 3, seed: int = 0) -> list[str]:
    return ids(RandomRetriever(store, seed, signature=SIGNED).search([query], k, [example])[0])


def test_random_draws_the_same_on_every_machine(store: PassageStore) -> None:
    assert drawn(store, "q1", "who?") == ["p7", "p0", "p8"]


@settings(deadline=None, max_examples=50)
@given(
    k=st.integers(1, 20),
    example=st.text(st.characters(exclude_categories=()), max_size=5),
    seed=st.integers(0, 9),
)
def test_random_draws_different_passages(store: PassageStore, k: int, example: str, seed: int) -> None:
    found = drawn(store, example, "who?", k, seed)
    assert len(set(found)) == len(found) == min(k, len(PASSAGES))


def test_random_does_not_depend_on_the_batch(store: PassageStore) -> None:
    retriever = RandomRetriever(store, 0, signature=SIGNED)
    batch = retriever.search(["a", "b", "a"], 4, ["1", "2", "3"])
    alone = [retriever.search([q], 4, [e])[0] for q, e in (("a", "1"), ("b", "2"), ("a", "3"))]
    assert batch == alone


def test_seed_question_and_query_each_change_the_draw(store: PassageStore) -> None:
    draws = [
        drawn(store, *asked) for asked in (("q1", "who?"), ("q2", "who?"), ("q1", "what?"), ("q", "1who?"))
    ]
    draws.append(drawn(store, "q1", "who?", seed=1))
    assert len({tuple(draw) for draw in draws}) == 5


def test_fewer_passages_are_the_first_of_more(store: PassageStore) -> None:
    assert drawn(store, "q1", "who?", k=9)[:4] == drawn(store, "q1", "who?", k=4)


def test_random_prefers_no_passage(store: PassageStore) -> None:
    retriever = RandomRetriever(store, 0, signature=SIGNED)
    examples = [str(n) for n in range(3000)]
    found = retriever.search(["who?"] * 3000, 3, examples)
    for place in range(3):
        counts = Counter(hits[place].passage.id for hits in found)
        assert len(counts) == 10
        assert all(abs(count - 300) < 100 for count in counts.values())  # 6 standard deviations


def test_random_answers_a_free_question_too(store: PassageStore) -> None:
    retriever = RandomRetriever(store, 0, signature=SIGNED)
    assert len(retriever.search(["who?"], 2)[0]) == 2


def test_empty_finds_nothing() -> None:
    assert EmptyRetriever(signature=SIGNED).search(["a", "b"], 5, ["1", "2"]) == [[], []]


def test_all_sign_and_refuse_k_0(store: PassageStore, oracle: OracleRetriever) -> None:
    retrievers: list[Retriever] = [
        oracle,
        RandomRetriever(store, 0, signature=SIGNED),
        EmptyRetriever(signature=SIGNED),
    ]
    for retriever in retrievers:
        assert retriever.signature == SIGNED
        with pytest.raises(UserError, match="k is 0"):
            retriever.search(["who?"], 0, ["q1"])
