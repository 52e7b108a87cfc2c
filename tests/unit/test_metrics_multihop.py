from __future__ import annotations

from typing import Any

import pytest

from ragtrials.metrics import score
from ragtrials.metrics.multihop import (
    fact_overlap,
    hotpotqa_file,
    musique_file,
    paragraph_overlap,
    twowiki_file,
    twowiki_golds,
    uncased_fact_overlap,
)

CHIEF = {
    "_id": "1",
    "answer": "Chief of Protocol",
    "supporting_facts": [["Shirley", 0], ["Shirley", 1], ["Kiss", 0]],
}
YES = {"_id": "2", "answer": "yes", "supporting_facts": [["Ed Wood", 0], ["Scott", 0]]}
GOLD_FACTS = {"1": CHIEF["supporting_facts"], "2": YES["supporting_facts"]}


def rounded(values: dict[str, float], *names: str) -> dict[str, float]:
    return {name: round(values[name], 4) for name in names}


def test_hotpotqa_right_answers_and_one_missing_fact() -> None:
    values = hotpotqa_file(
        {
            "answer": {"1": "Chief of Protocol", "2": "yes"},
            "sp": {"1": GOLD_FACTS["1"][:2], "2": GOLD_FACTS["2"]},
        },
        [CHIEF, YES],
    )
    assert rounded(
        values, "em", "f1", "sp_em", "sp_f1", "sp_precision", "sp_recall", "joint_em", "joint_f1"
    ) == {
        "em": 1,
        "f1": 1,
        "sp_em": 0.5,
        "sp_f1": 0.9,
        "sp_precision": 1,
        "sp_recall": 0.8333,
        "joint_em": 0.5,
        "joint_f1": 0.9,
    }


def test_hotpotqa_a_missing_answer_counts_as_wrong() -> None:
    values = hotpotqa_file(
        {"answer": {"1": "Chief"}, "sp": {"1": GOLD_FACTS["1"][:1], "2": GOLD_FACTS["2"][:1]}}, [CHIEF, YES]
    )
    expected = {"em": 0, "f1": 0.25, "precision": 0.5, "recall": 0.1667, "sp_f1": 0.5833}
    expected |= {"joint_f1": 0.1, "joint_precision": 0.5, "joint_recall": 0.0556}
    assert rounded(values, *expected) == expected


def test_hotpotqa_titles_are_case_sensitive_and_repeated_facts_count_once() -> None:
    facts = [["shirley", 0], ["Shirley", 1], ["Shirley", 1]]
    values = hotpotqa_file(
        {"answer": {"1": "chief of protocol", "2": "Yes, both"}, "sp": {"1": facts, "2": []}}, [CHIEF, YES]
    )
    assert rounded(values, "em", "f1", "sp_f1", "joint_f1") == {
        "em": 0.5,
        "f1": 0.5,
        "sp_f1": 0.2,
        "joint_f1": 0.2,
    }


def test_two_empty_fact_sets() -> None:
    assert fact_overlap([], []) == {"em": 1.0, "f1": 0.0, "precision": 0.0, "recall": 0.0}
    assert paragraph_overlap([], []) == dict.fromkeys(("em", "f1", "precision", "recall"), 1.0)


def test_an_answer_file_without_facts_gets_its_answer_scores() -> None:
    values = hotpotqa_file({"answer": {"1": "Chief of Protocol", "2": "yes"}}, [CHIEF, YES])
    assert rounded(values, "em", "sp_em", "joint_em") == {"em": 1, "sp_em": 0, "joint_em": 0}


ALIASES = {"Q30": ("USA", "United States of America", "American"), "Q1": ("Robert", "Bob")}
UNITED_STATES: dict[str, Any] = {
    "_id": "w",
    "answer": "United States",
    "answer_id": "Q30",
    "supporting_facts": [["Film", 0]],
    "evidences": [["Film", "director", "Rob"], ["Rob", "country", "the United States"]],
    "evidences_id": [["Q2", "director", "Q1"], ["Q1", "country", "Q30"]],
}


def twowiki(answer: str, facts: list[Any], evidence: list[Any], **changes: Any) -> dict[str, float]:
    predictions = {"answer": {"w": answer}, "sp": {"w": facts}, "evidence": {"w": evidence}}
    values = twowiki_file(predictions, [{**UNITED_STATES, **changes}], ALIASES)
    return {name: round(100 * value, 2) for name, value in values.items()}


def test_twowiki_accepts_every_alias_everywhere() -> None:
    evidence = [["FILM", "director", "robert"], ["Bob", "country", "USA"]]
    values = twowiki("U.S.A.", [["film", 0]], evidence)
    assert len(values) == 16
    assert set(values.values()) == {100.0}


def test_twowiki_demonym_and_half_the_evidence() -> None:
    values = twowiki("American", [["Film", 0]], [["Film", "director", "Rob"]])
    expected = {
        "em": 100,
        "evi_precision": 100,
        "evi_recall": 50,
        "evi_f1": 66.67,
        "joint_f1": 66.67,
        "joint_em": 0,
    }
    assert rounded(values, *expected) == expected


def test_twowiki_joint_takes_precision_and_recall_of_different_aliases() -> None:  # P26
    evidence = UNITED_STATES["evidences"]
    values = twowiki("United States of", [["Film", 0]], evidence)
    expected = {"em": 0, "f1": 85.71, "precision": 100, "recall": 100, "joint_f1": 100, "joint_em": 0}
    assert rounded(values, *expected) == expected


def test_twowiki_without_facts_and_evidence() -> None:
    values = twowiki("usa", [], [])
    expected = {"em": 100, "sp_f1": 0, "evi_f1": 0, "joint_f1": 0, "joint_em": 0}
    assert rounded(values, *expected) == expected


@pytest.mark.parametrize("answer_id", [None, "Q999"])
def test_twowiki_without_known_answer_id_has_the_answer_alone(answer_id: str | None) -> None:  # P25
    assert twowiki("USA", [], [], answer_id=answer_id)["em"] == 0
    assert twowiki("united states", [], [], answer_id=answer_id)["em"] == 100
    assert twowiki_golds({"answer": "x"}, ALIASES) == ("x",)


def test_twowiki_without_evidence_ids_has_the_published_spelling_alone() -> None:
    values = twowiki("USA", [], [["film", "director", "Rob"], ["Bob", "country", "USA"]], evidences_id=[])
    assert (values["evi_precision"], values["evi_recall"]) == (50, 50)


def test_twowiki_evidence_keeps_articles() -> None:
    wrong = twowiki("USA", [], [["Rob", "country", "United States"]], evidences_id=[])
    assert wrong["evi_precision"] == 0
    assert (
        twowiki("USA", [], [["Rob", "country", "The United-States"]], evidences_id=[])["evi_precision"] == 0
    )
    assert (
        twowiki("USA", [], [["Rob", "country", "The United States."]], evidences_id=[])["evi_precision"]
        == 100
    )


def test_twowiki_facts_that_differ_in_case_alone_are_each_found() -> None:
    values = uncased_fact_overlap([("Film", 0), ("film", 0), ("Film", 0)], [("FILM", 0), ("Other", 1)])
    assert values == {"em": 0.0, "precision": 1.0, "recall": pytest.approx(2 / 3), "f1": pytest.approx(0.8)}


def test_twowiki_answer_with_aliases_is_the_named_metric() -> None:  # P24
    golds = twowiki_golds(UNITED_STATES, ALIASES)
    assert golds == ("United States", "USA", "United States of America", "American")
    assert score("twowiki_v1_1", "American", golds)["em"] == 1.0
    assert score("hotpotqa_v1", "American", ["United States"])["em"] == 0.0
    assert score("twowiki_v1_1", "yes, it was", ["yes"])["f1"] == 0.0


@pytest.mark.parametrize(
    ("predicted", "em", "f1"),
    [([1], 0, 2 / 3), ([1, 1, 2], 1, 1), ([], 0, 0), ([3], 0, 0), ([1, 2, 3], 0, 0.8)],
)
def test_musique_paragraphs(predicted: list[int], em: float, f1: float) -> None:
    values = paragraph_overlap(predicted, [1, 2])
    assert (values["em"], values["f1"]) == (em, pytest.approx(f1))


def musique_record(key: str, answerable: bool) -> dict[str, Any]:
    paragraphs = [{"idx": n, "is_supporting": n in (1, 2)} for n in range(4)]
    answer = {"answer": "August", "answer_aliases": ["Aug"]}
    return {"id": key, **answer, "answerable": answerable, "paragraphs": paragraphs}


def test_musique_counts_answerable_items_by_id_in_any_order() -> None:  # P39, P40
    golds = [musique_record("a", True), musique_record("a", False), musique_record("b", True)]
    predictions = {
        "b": {"predicted_answer": "May", "predicted_support_idxs": [1]},
        "a": {"predicted_answer": "AUG", "predicted_support_idxs": [2, 1]},
    }
    values = musique_file(predictions, golds)
    assert rounded(values, *values) == {
        "answer_em": 0.5,
        "answer_f1": 0.5,
        "support_em": 0.5,
        "support_f1": 0.8333,
    }
    assert musique_file({}, golds)["answer_f1"] == 0.0
    assert musique_file(predictions, []) == {}
