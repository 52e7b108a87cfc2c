"""geo_hop: two passages are needed, and retrieval leaves room for better methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import reduce

import pytest

from ragtrials.data import Example, Passage
from ragtrials.program import Retriever
from ragtrials.retrieval.build import load_retriever
from ragtrials.tasks import _geo_passages
from ragtrials.tasks._geo_draw import SPLITS
from ragtrials.tasks._geo_names import fold
from ragtrials.tasks._geo_world import world
from ragtrials.tasks.geo_hop import GeoHop


def of_type(split: str, kind: str) -> list[Example]:
    return [example for example in GeoHop(None).examples(split) if example.meta["type"] == kind]


@pytest.fixture(scope="module")
def passages() -> dict[str, Passage]:
    return {passage.id: passage for passage in _geo_passages.corpus()}


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield load_retriever("bm25", GeoHop(None).corpus())


def share_found(retriever: Retriever, examples: list[Example], k: int = 5) -> float:
    rows = retriever.search([example.question for example in examples], k)
    found = [
        {*e.supporting} <= {hit.passage.id for hit in row} for e, row in zip(examples, rows, strict=True)
    ]
    return sum(found) / len(found)


def test_both_types_and_all_levels_occur() -> None:
    for split in SPLITS:
        counted = Counter((e.meta["type"], e.meta["level"]) for e in GeoHop(None).examples(split))
        assert set(counted) == {
            ("bridge", "medium"),
            ("bridge", "hard"),
            ("comparison", "easy"),
            ("comparison", "medium"),
        }
        assert min(counted.values()) > 20


def test_every_question_has_two_gold_passages() -> None:
    assert all(len(e.supporting) == 2 for split in SPLITS for e in GeoHop(None).examples(split))


def test_a_bridge_question_does_not_say_the_title_of_its_second_passage(passages: dict[str, Passage]) -> None:
    for split in SPLITS:
        for example in of_type(split, "bridge"):
            second = passages[example.supporting[1]].title
            assert f" {fold(second)} " not in f" {fold(example.question)} ", example


def test_a_bridge_questions_answer_stands_in_its_second_passage_only(passages: dict[str, Passage]) -> None:
    for split in SPLITS:
        for example in of_type(split, "bridge"):
            first, second = (passages[gold] for gold in example.supporting)
            assert example.answers[0][0] in second.text
            assert f" {fold(example.answers[0][0])} " not in f" {fold(first.title)} "
            assert second.title in first.text  # the bridge


def test_a_bridge_question_names_its_place_by_a_name_that_its_passage_has(
    passages: dict[str, Passage],
) -> None:
    wordings = Counter()
    for example in of_type("test", "bridge"):
        first = passages[example.supporting[0]]
        wordings[example.meta["wording"]] += 1
        if example.meta["wording"] == "name":
            assert first.title in example.question
        else:
            assert first.title not in example.question
    assert wordings["other name"] > 30


def test_comparisons_are_right() -> None:
    everything = world()
    by_passage = {_geo_passages.passage(place, everything).id: place for place in everything}
    checked = Counter()
    for example in of_type("test", "comparison"):
        a, b = (by_passage[gold] for gold in example.supporting)
        relation, answer = example.meta["relation"], example.answers[0][0]
        if relation.startswith("same"):
            field = relation.removeprefix("same ")
            assert answer == ("yes" if getattr(a, field) == getattr(b, field) else "no")
        else:
            asked = reduce(
                lambda text, name: text.replace(name, ""), example.meta["places"], example.question
            )
            least = {"fewer", "less", "south", "southern"} & {*fold(asked).split()}
            chosen = (min if least else max)((a, b), key=lambda place: getattr(place, relation))
            assert answer in (chosen.name, *getattr(chosen, "other_names", ())), example
        checked[relation] += 1
    assert len(checked) == 6


def test_yes_and_no_are_about_as_frequent() -> None:
    answers = Counter(e.target for split in SPLITS for e in of_type(split, "comparison"))
    assert 0.7 < answers["yes"] / answers["no"] < 1.4


def test_which_place_comes_first_says_nothing() -> None:
    first = []
    for example in of_type("train", "comparison"):
        if example.target not in ("yes", "no"):
            part = example.meta["parts"][0]
            first.append(fold(example.target) in fold(part))
    assert 0.45 < sum(first) / len(first) < 0.55


def test_bm25_finds_all_gold_passages_of_some_but_not_of_all_questions(retriever: Retriever) -> None:
    assert 0.30 <= share_found(retriever, list(GeoHop(None).examples("test"))) <= 0.70
    assert 0.15 <= share_found(retriever, of_type("test", "bridge")) <= 0.50


def test_one_query_per_place_finds_more_than_the_question_as_a_whole(retriever: Retriever) -> None:
    """With the same number of passages: 3 and 2 against 5."""
    examples = of_type("test", "comparison")
    found = []
    for example in examples:
        first, second = retriever.search(example.meta["parts"], 3)
        found.append({*example.supporting} <= {hit.passage.id for hit in [*first, *second[:2]]})
    assert sum(found) / len(found) > share_found(retriever, examples) + 0.1
