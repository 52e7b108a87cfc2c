"""Questions of your own: a file of JSON lines, called `jsonl:FILE` on the command line and in suites.

Each line holds `id` (text or a whole number), `question`, `answers` (a text, or a list of texts that are all
right) and, if they are known, `supporting`: ids of gold passages in the corpus that --corpus names. Other
fields are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ragtrials.corpora import file_stem
from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.files import read_jsonl
from ragtrials.records import Record, unique_ids
from ragtrials.task import Task, TaskCard
from ragtrials.tasks import _answers


class Jsonl(Task):
    """The task of a user's file. `Jsonl` itself is bound to none; `of_file` makes a class that is.

    The bound class is a task like any other: it is called `jsonl-STEM` in records, and its questions, all of
    them evaluated, are told from those of another file with that stem by their digest.
    """

    name = "jsonl"
    has_corpus = False
    reads_file = True
    card = TaskCard(
        title="questions of your own, one JSON object a line: -t jsonl:FILE",
        version="1",
        source="a file on this machine",
        revision="as it is; a run's id tells one content from another",
        licence="not stated",
        sizes={},
        metrics=("squad_v1", "containment_v1"),
        main_metric="f1",
        reported_split="test",
        splits={"test": "all questions of the file; there is nothing to train on or to show as examples"},
        citation="Whoever wrote the questions.",
    )

    @classmethod
    def of_file(cls, file: str) -> type[Task]:
        if not file:
            raise _no_file()
        path = Path(file)
        bound = {
            "__doc__": f"The questions of {path.name}.",
            "name": f"{cls.name}-{file_stem(path)}",
            "file": path,
            "card": replace(cls.card, title=f"the questions of {path.name}", source=path.name),
        }
        return type(cls.__name__, (cls,), bound)

    def examples(self, split: str) -> Sequence[Example]:
        """The questions in the file's order."""
        if self.file is None:
            raise _no_file()
        if split not in self.card.splits:
            raise self.unknown_split(split)
        return [_example(record) for record in unique_ids(read_jsonl(self.file), "id")]

    def corpus(self) -> Corpus:
        raise UserError(f"task {self.name} has no corpus of its own: name one with --corpus")

    def available_offline(self) -> bool:
        return self.file is not None and self.file.is_file()


def _no_file() -> UserError:
    return UserError("task jsonl reads a file of yours: write jsonl:FILE, e.g. -t jsonl:questions.jsonl")


def _example(record: Record) -> Example:
    answers = record.value("answers")
    if isinstance(answers, list) and any(isinstance(item, list) for item in answers):
        raise record.error(
            "field 'answers' holds lists inside a list: list the answers to one question as texts, "
            "and write a question with several answers as several questions"
        )
    texts = _answers.texts_of(record, "answers", answers)
    key, supporting = record.identifier("id"), _supporting(record)
    return _answers.example(record, key, "answers", texts, supporting=supporting)


def _supporting(record: Record) -> tuple[str, ...]:
    """Passage ids, each once; whole numbers as text, as in a corpus file."""
    if record.fields.get("supporting") is None:
        return ()
    ids = record.items("supporting", (str, int))
    if any(isinstance(identity, bool) or not str(identity).strip() for identity in ids):
        raise record.error("field 'supporting' must hold passage ids")
    return tuple(dict.fromkeys(map(str, ids)))
