from __future__ import annotations

from pathlib import Path

import pytest

from ragtrials.tasks.popqa import PopQA

pytestmark = pytest.mark.data


def test_flags_are_whole_characters(data_dir: Path) -> None:
    task = PopQA(data_dir)
    flags = {
        alias
        for split in ("train", "validation", "test")
        for example in task.examples(split)
        for alias in example.aliases
        if "\U0001f1e6" <= alias[0] <= "\U0001f1ff"
    }
    assert flags
    assert all(len(flag) == 2 for flag in flags)


def test_one_question_may_be_about_different_subjects(data_dir: Path) -> None:
    task = PopQA(data_dir)
    trained = [*task.examples("train"), *task.examples("validation")]
    assert len({example.question for example in trained}) < len({example.id for example in trained}) == 1000


def test_what_the_record_says_is_kept(data_dir: Path) -> None:
    first = PopQA(data_dir).examples("test")[0]
    assert (first.id, first.answers[0][:2]) == ("2", ("politician", "political leader"))
    assert first.meta == {
        "subject": "Henry Feilden",
        "relation": "occupation",
        "object": "politician",
        "popularity": 58,
    }
