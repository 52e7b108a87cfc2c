from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragtrials.tasks.webquestions import WebQuestions

pytestmark = pytest.mark.data


def test_published_ids_repeat_between_train_and_test(data_dir: Path) -> None:
    task = WebQuestions(data_dir)
    trained = [*task.examples("train"), *task.examples("validation")]
    published = {e.meta["published_id"] for e in trained} & {
        e.meta["published_id"] for e in task.examples("test")
    }
    assert len(published) == 128
    assert not {e.id for e in trained} & {e.id for e in task.examples("test")}


def test_questions_and_answers_are_those_of_the_other_layout(data_dir: Path) -> None:
    other = json.loads((data_dir / "webquestions" / "formats" / "brmson_test.json").read_text())
    theirs = {int(record["qId"].removeprefix("wqs")): record for record in other}
    for example in WebQuestions(data_dir).examples("test"):
        record = theirs[int(example.meta["published_id"])]
        assert (example.question, list(example.answers[0])) == (record["qText"], record["answers"])
