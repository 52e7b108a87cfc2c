from __future__ import annotations

from pathlib import Path

import pytest

from ragtrials.tasks.squad import SQuAD

pytestmark = pytest.mark.data


def test_unanswerable_questions_are_left_out_and_told(data_dir: Path) -> None:
    task = SQuAD(data_dir)
    assert len(task.examples("dev")) == 293
    assert len(task.left_out("dev")) == 333


def test_the_gold_paragraph_holds_an_answer(data_dir: Path) -> None:
    task = SQuAD(data_dir)
    pool = {passage.id: passage.text for passage in task.corpus()}
    for example in task.examples("dev"):
        [gold] = example.supporting
        assert all(alias in pool[gold] for alias in example.aliases)
