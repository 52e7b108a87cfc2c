from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragtrials.tasks.bamboogle import Bamboogle

pytestmark = pytest.mark.data


def test_answers_are_in_columns_five_and_six(data_dir: Path) -> None:
    examples = Bamboogle(data_dir).examples("test")
    [second] = [example for example in examples if len(example.answers[0]) == 2]
    assert second.answers == (("Mildred Warner", "Mildred Gale"),)


def test_the_canary_is_in_no_text(data_dir: Path) -> None:
    texts = [text for e in Bamboogle(data_dir).examples("test") for text in (e.question, *e.aliases)]
    assert not [text for text in texts if "canary" in text.lower()]


def test_questions_are_those_that_flashrag_circulates(data_dir: Path) -> None:
    other = (data_dir / "bamboogle" / "formats" / "flashrag.jsonl").read_text().splitlines()
    theirs = [json.loads(line)["question"] for line in other if line]
    assert [example.question for example in Bamboogle(data_dir).examples("test")] == theirs
