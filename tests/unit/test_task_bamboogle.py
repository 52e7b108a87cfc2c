from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.tasks.bamboogle import Bamboogle

HEADER = "Question\t\t\t\tAnswer\tAnswer 2\tcanary: none\n"


def read(folder: Path, text: str) -> list[Example]:
    put(folder, "bamboogle/test.tsv", text)
    return list(Bamboogle(folder).examples("test"))


@pytest.mark.parametrize(
    ("row", "question", "answers"),
    [
        ("Who won?\t\t\t\tAda\t\t", "Who won?", ("Ada",)),
        ("Who won?\t\t\t\tAda\tBob\t", "Who won?", ("Ada", "Bob")),
        ('Who said "go." once?\t\t\t\tAda\t \t', 'Who said "go." once?', ("Ada",)),
    ],
)
def test_answers_stand_in_two_columns(
    row: str, question: str, answers: tuple[str, ...], tmp_path: Path
) -> None:
    [example] = read(tmp_path, HEADER + row + "\n")
    assert (example.question, example.answers, example.meta) == (question, (answers,), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"test\.tsv is empty"),
        (HEADER, r"line 1: there are no rows below the header"),
        ("Who won?\t\t\t\tAda\t\t\n", r"line 1: the header must have Question, Answer and Answer 2, not "),
        (HEADER + "Who won?\tAda\n", r"line 2: 2 columns instead of 7"),
        (HEADER + "Who won?\t\t\t\t \t\t\n", r"line 2: field 'answer' is empty"),
    ],
)
def test_another_table_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*{said}[^\n]*$"):
        read(tmp_path, text)


def test_there_is_nothing_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="task bamboogle has no split 'train': use one of test"):
        Bamboogle(tmp_path).examples("train")
