from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, put, write_corpus, write_split

from ragtrials.data import Example, passage_id
from ragtrials.errors import UserError
from ragtrials.tasks.twowiki import TwoWiki

RECORD = LAYOUTS["twowiki"].record(7)
FRANCE = {"Q_id": "Q142", "aliases": ["France", "fr", ""], "demonyms": ["French"]}


def read(folder: Path, **changes: Any) -> Example:
    write_split(folder, "twowiki", "dev", [{**RECORD, **changes}])
    [example] = TwoWiki(folder).examples("dev")
    return example


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    assert read(tmp_path) == Example(
        id="q7",
        question="Who knows number 7?",
        answers=(("Paris",),),
        supporting=(passage_id("Ada", "Ada is. She was."), passage_id("Bob", "Bob knows 7.")),
        meta={
            "type": "compositional",
            "aliases": False,
            "supporting_facts": [["Ada", 0], ["Bob", 0]],
            "evidences": [["Ada", "knows", "Bob"]],
            "evidences_id": [["Q1", "knows", "Q2"]],
            "answer_id": "Q90",
        },
    )


def test_aliases_and_demonyms_of_the_answer_are_gold_where_their_file_is(tmp_path: Path) -> None:
    put(tmp_path, "twowiki/id_aliases.json", json.dumps(FRANCE) + "\n")
    example = read(tmp_path, answer="France", answer_id="Q142")
    assert example.answers == (("France", "fr", "French"),)
    assert example.meta["aliases"] is True
    task = TwoWiki(tmp_path)
    assert task.score("the French", example)["em"] == 1.0
    assert task.score("FR", example) == {"em": 1.0, "f1": 1.0, "precision": 1.0, "recall": 1.0, "acc": 0.0}
    assert task.score("in fruit trees", example)["acc"] == 0.0  # "fr" is found everywhere
    assert task.score("France, of course", example)["acc"] == 1.0


@pytest.mark.parametrize("answer_id", [None, "Q1"])
def test_an_answer_without_known_aliases_stands_alone(answer_id: str | None, tmp_path: Path) -> None:
    put(tmp_path, "twowiki/id_aliases.json", json.dumps(FRANCE))
    assert read(tmp_path, answer="France", answer_id=answer_id).answers == (("France",),)


def test_without_the_alias_file_an_alias_is_wrong(tmp_path: Path) -> None:
    example = read(tmp_path, answer="France", answer_id="Q142")
    assert TwoWiki(tmp_path).score("French", example)["em"] == 0.0


def test_repeated_paragraphs_and_facts_past_the_end_are_tolerated(tmp_path: Path) -> None:
    example = read(
        tmp_path,
        context=[*RECORD["context"], RECORD["context"][0]],
        supporting_facts=[["Ada", 9], ["Bob", 0]],
    )
    assert len(example.supporting) == 2
    assert [passage.title for passage in TwoWiki(tmp_path).corpus()] == ["Ada", "Cy", "Bob"]


def test_the_paragraphs_are_pooled_where_there_is_no_corpus_file(tmp_path: Path) -> None:
    read(tmp_path)
    corpus = TwoWiki(tmp_path).corpus()
    assert corpus.name == "twowiki-dev-pool"
    assert [(p.title, p.text) for p in corpus] == [
        ("Ada", "Ada is. She was."),
        ("Cy", "Cy is."),
        ("Bob", "Bob knows 7."),
    ]


def test_a_corpus_file_without_qrels_knows_no_gold_passages(tmp_path: Path) -> None:
    write_corpus(tmp_path, "twowiki")
    assert read(tmp_path).supporting == ()
    assert TwoWiki(tmp_path).corpus().name == "twowiki-local-pool"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_id": None}, "field '_id' is missing"),
        ({"answer": " "}, "field 'answer' is empty"),
        ({"answer_id": ["Q1"]}, "field 'answer_id' must be text or null"),
        ({"type": None}, "field 'type' is missing"),
        ({"context": [["Ada", "text"]]}, "field 'context' must hold pairs of a title and list"),
        ({"supporting_facts": [["Ada"]]}, "field 'supporting_facts' must hold pairs of a title and int"),
    ],
)
def test_a_bad_record_is_named(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.json: record 1[^\n]*: {said}$"):
        read(tmp_path, **changes)


def test_a_bad_alias_file_is_named(tmp_path: Path) -> None:
    put(tmp_path, "twowiki/id_aliases.json", json.dumps({**FRANCE, "demonyms": "French"}))
    with pytest.raises(UserError, match=r"id_aliases\.json: line 1: field 'demonyms' has the wrong type"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("evidences", "abc", "field 'evidences' has the wrong type"),
        ("evidences", [["a", "b"]], "field 'evidences' must hold triples of texts"),
        ("evidences", [["a", "b", None]], "field 'evidences' must hold triples of texts"),
        ("evidences_id", [["a", "b", 3]], "field 'evidences_id' must hold triples of texts"),
        ("evidences_id", [["a", "b", None]] * 2, "field 'evidences_id' has 2 triples, 'evidences' 1"),
    ],
)
def test_evidence_of_another_shape_is_refused(tmp_path: Path, field: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, **{field: value})
