"""geo_ambig: all readings of a name, and scores for predictions that list several answers."""

from __future__ import annotations

from collections import Counter

import pytest

from ragtrials.data import Example, Passage
from ragtrials.tasks._geo_draw import SPLITS
from ragtrials.tasks._geo_passages import corpus
from ragtrials.tasks.geo_ambig import GeoAmbig

TWO = Example("x", "In which country is Dieppe?", (("France", "French Republic"), ("Canada",)))
ONE = Example("y", "In which country is Zürich?", (("Switzerland",),))


def scores(prediction: str, example: Example) -> tuple[float, float, float]:
    found = GeoAmbig(None).score(prediction, example)
    assert set(found) == {"f1", "em", "acc"}
    return found["f1"], found["em"], found["acc"]


@pytest.mark.parametrize(
    ("prediction", "f1", "em", "acc"),
    [
        ("France; Canada", 1.0, 1.0, 1.0),
        ("canada ;the French Republic;", 1.0, 1.0, 1.0),
        ("Canada\nFrance\n", 1.0, 1.0, 1.0),
        ("France", 2 / 3, 0.0, 0.5),
        ("France; Spain", 0.5, 0.0, 0.5),
        ("France; Canada; Spain", 0.8, 0.0, 1.0),
        ("It is in France and in Canada", 0.0, 0.0, 1.0),
        ("Spain", 0.0, 0.0, 0.0),
        ("", 0.0, 0.0, 0.0),
        (" ; \n;", 0.0, 0.0, 0.0),
    ],
)
def test_a_prediction_lists_its_answers(prediction: str, f1: float, em: float, acc: float) -> None:
    assert scores(prediction, TWO) == pytest.approx((f1, em, acc))


def test_a_single_answer_is_one_slot() -> None:
    assert scores("Switzerland", ONE) == (1.0, 1.0, 1.0)
    assert scores("Switzerland; Germany", ONE) == pytest.approx((2 / 3, 0.0, 1.0))


def test_the_target_scores_full_marks_on_every_question() -> None:
    task = GeoAmbig(None)
    for split in SPLITS:
        for example in task.examples(split):
            assert task.score(example.target, example) == {"f1": 1.0, "em": 1.0, "acc": 1.0}, example


def test_a_quarter_of_the_questions_have_one_answer() -> None:
    for split in SPLITS:
        kinds = Counter(len(example.answers) > 1 for example in GeoAmbig(None).examples(split))
        assert 0.2 <= kinds[False] / kinds.total() <= 0.3


def test_enough_questions_to_tell_methods_apart() -> None:
    assert len(GeoAmbig(None).examples("test")) >= 300


def test_all_readings_are_gold_and_each_answer_is_one_of_theirs() -> None:
    passages = {passage.id: passage for passage in corpus()}
    bearers: Counter[str] = Counter(passage.title for passage in passages.values())
    for example in GeoAmbig(None).examples("test"):
        gold: list[Passage] = [passages[gold] for gold in example.supporting]
        name = gold[0].title
        assert {passage.title for passage in gold} == {name}
        assert name in example.question
        for slot in example.answers:
            assert any(slot[0] in passage.text for passage in gold)
        for passage in gold:
            assert any(slot[0] in passage.text for slot in example.answers)
        if example.meta["relation"] == "country":
            assert bearers[name] == len(gold) == example.meta["readings"]
