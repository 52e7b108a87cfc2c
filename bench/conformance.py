"""What every method and every task must hold. Other packages can run the same checks on theirs.

Each check returns a list of problems, empty if all is well:

    from ragtrials.conformance import check_method, check_task
    assert check_method(MyMethod) == []
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from ragtrials import metrics
from ragtrials.config import parse, plain
from ragtrials.data import Corpus, Example, Passage
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.program import Completion, Generate, Hit, Request, Result, Retrieve, Score, Trace
from ragtrials.signature import digest
from ragtrials.task import Task

PROFILES = ("paper", "laptop", "smoke")
ODD_QUESTIONS = (
    "Who wrote it?",
    "two\nlines\t{x} %s 100% {0}",
    '"quotes" \\ </search> <|im_end|> [INST]',
    "no question mark, 日本語, é, 🙂",
    " spaces  around ",
)
REPLIES = ("Paris", "", "\n\n", "a\nb\nc", "1,2,3", "yes")


class _Scripted:
    """A retriever and an engine that always say the same."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, reply: str, found: int) -> None:
        self.reply, self.found = reply, found

    def search(self, queries: Any, k: int, example_ids: Any = None) -> list[list[Hit]]:
        hits = [Hit(Passage(f"p{i}", f"Title {i}", f"Text {i}."), 1.0 / (i + 1)) for i in range(self.found)]
        return [hits[:k] for _ in queries]

    def generate(self, requests: Any, seeds: Any) -> list[Completion]:
        return [
            Completion(self.reply, (1,), (1,), (-0.5,), watched=((-0.5,) * len(r.watch),)) for r in requests
        ]

    def score(self, requests: Any) -> list[Completion]:
        return [Completion(r.continuation, (1,), (1,), (-0.5,), "scored") for r in requests]


def check_method(kind: type[Method]) -> list[str]:
    """The problems of a method class: its card, its settings, and its program on odd input."""
    problems = [*_card_problems(kind), *_training_problems(kind)]
    shown = [Example(f"s{i}", f"Shown question {i}?", (("shown answer",),)) for i in range(4)]
    for profile in kind.PROFILES:
        method = kind(kind.PROFILES[profile])
        method.prepare(shown[: method.shots])
        for reply in REPLIES:
            for found in (3, 0):
                problems += _program_problems(method, reply, found, f"profile {profile}")
    return list(dict.fromkeys(problems))


def _card_problems(kind: type[Method]) -> Iterator[str]:
    if not (kind.__doc__ or "").strip():
        yield "has no docstring"
    if not (kind.paper.title and kind.paper.url):
        yield "its Paper card lacks title or url"
    if any(not 0 <= value <= 1 for value in kind.paper.reported.values()):
        yield "reported numbers must be fractions of 1"
    if missing := [name for name in PROFILES if name not in kind.PROFILES]:
        yield f"lacks the profile(s) {', '.join(missing)}"
    if not dataclasses.is_dataclass(kind.Config):
        yield "its Config is no dataclass"
        return
    for name, config in kind.PROFILES.items():
        if type(config) is not kind.Config:
            yield f"profile {name} is no instance of Config"
        elif parse(kind.Config, plain(config), name) != config:
            yield f"profile {name} does not survive being written and read"
    for field in dataclasses.fields(kind.Config):
        if field.name not in (kind.Config.__doc__ or ""):
            yield f"Config.{field.name} is not described in Config's docstring"


def _training_problems(kind: type[Method]) -> Iterator[str]:
    """What the training frame asks of a method that trains."""
    if not dataclasses.is_dataclass(kind.Config):
        return
    hints = typing.get_type_hints(kind.Config)
    for name in kind.evaluation_settings:
        if name not in hints:
            yield f"evaluation_settings names {name!r}, which Config lacks"
    if not kind.trains:
        if kind.evaluation_settings:
            yield "has `evaluation_settings` but `trains = False`"
        return
    if kind.train is Method.train:
        yield "has `trains = True` but no train()"
    if hints.get("examples") != int | None:
        yield "Config.examples must be there, an `int | None`: how many examples to train on"


def _program_problems(method: Method, reply: str, found: int, where: str) -> Iterator[str]:
    scripted = _Scripted(reply, found)
    asked = [(f"e{i}", question) for i, question in enumerate(ODD_QUESTIONS)]
    retriever = scripted if method.retrieves else None
    traces = Driver(retriever, scripted).run(method.answer, asked)
    again = Driver(retriever, scripted).run(method.answer, asked)
    if _without_times(traces) != _without_times(again):
        yield f"{where}: the same question and results give another program"
    for question, trace in zip(ODD_QUESTIONS, traces, strict=True):
        if not trace.steps:
            yield f"{where}: answers without any request"
        elif not any(question in _text(step.request) for step in trace.steps):
            yield f"{where}: no request holds the question verbatim"
        if any(_role(step.request) not in (None, *method.roles) for step in trace.steps):
            yield f"{where}: a request has a role that is not in `roles`"
        if trace.answer != trace.answer.strip():
            yield f"{where}: the answer has blanks around it"


def _without_times(traces: list[Trace]) -> list[list[tuple[Request, Result]]]:
    return [[(step.request, step.result) for step in trace.steps] for trace in traces]


def _text(request: Request) -> str:
    if isinstance(request, Retrieve):
        return request.query
    return "\n".join(message.text for message in request.messages)


def _role(request: Request) -> str | None:
    return request.role if isinstance(request, Generate | Score) else None


def check_task(task: Task) -> list[str]:
    """The problems of a task: its card, its splits, its answers, its corpus, its scores.

    Reads all of its data.
    """
    card = task.card
    problems = [
        f"its card lacks {name}"
        for name in ("title", "version", "source", "revision", "licence", "sizes", "citation", "splits")
        if not getattr(card, name) and not (name == "sizes" and task.reads_file)  # nothing was published
    ]
    if card.reported_split not in card.splits:
        problems.append(f"the reported split {card.reported_split!r} is not among its splits")
    problems += [f"unknown metric {name!r}" for name in card.metrics if name not in metrics.metric_names()]
    problems += _corpus_problems(task)
    by_split = {split: task.examples(split) for split in card.splits}
    for split, examples in by_split.items():
        problems += [f"split {split}: {problem}" for problem in _example_problems(task, list(examples))]
        if digest(list(examples)) != digest(list(type(task)(task.data_dir).examples(split))):
            problems.append(f"split {split}: read twice, it differs")
    if task.has_corpus:
        evaluated = by_split[card.reported_split]
        trained = [e for split, found in by_split.items() if split != card.reported_split for e in found]
        problems += _lost_passages(evaluated, task.corpus(), "corpus")
        problems += _lost_passages(trained, task.training_corpus(), "training corpus") if trained else ()
    problems += _leaks(task, by_split)
    return problems


def _corpus_problems(task: Task) -> Iterator[str]:
    if task.has_corpus:
        return
    try:
        task.corpus()
    except UserError:
        return
    yield "says that it has no corpus and gives one"


def _lost_passages(examples: Sequence[Example], corpus: Corpus, name: str) -> Iterator[str]:
    known = {passage.id for passage in corpus}
    for example in examples:
        if lost := [identity for identity in example.supporting if identity not in known]:
            yield f"example {example.id}: gold passage {lost[0]} is not in the {name}"


def _example_problems(task: Task, examples: list[Example]) -> Iterator[str]:
    if not examples:
        yield "has no examples"
    if len({example.id for example in examples}) != len(examples):
        yield "an id is repeated"
    for example in examples:
        if not example.question.strip():
            yield f"example {example.id}: the question is empty"
        if not example.answers or not all(group and all(group) for group in example.answers):
            yield f"example {example.id}: an answer is missing or empty"
            continue
        best, none = task.score(example.target, example), task.score("", example)
        degenerate = bool(metrics.flags("x", example.aliases))
        if not degenerate and best[task.card.main_metric] != 1.0:
            yield f"example {example.id}: its own answer scores {best[task.card.main_metric]}"
        if set(best) != set(none) or not {"em", "f1", "acc"} <= set(best):
            yield f"example {example.id}: the scores are not always the same, with em, f1 and acc"
        if not degenerate and none[task.card.main_metric] != 0.0:
            yield f"example {example.id}: no answer scores {none[task.card.main_metric]}"


def _leaks(task: Task, by_split: dict[str, Any]) -> Iterator[str]:
    """Questions of the reported split, by id or normalised text, that other splits hold."""
    reported = by_split[task.card.reported_split]
    ids = {example.id for example in reported}
    texts = {metrics.normalise(example.question) for example in reported}
    for split, examples in by_split.items():
        if split == task.card.reported_split:
            continue
        for example in examples:
            if example.id in ids or metrics.normalise(example.question) in texts:
                yield f"split {split}: example {example.id} is in the reported split"
