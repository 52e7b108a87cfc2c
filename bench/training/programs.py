"""A method's own program, changed: drawn at a temperature, or with a teacher in the model's place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ragtrials.data import Example
from ragtrials.errors import RunFailure
from ragtrials.program import Completion, Generate, Program, Request, Retrieve, Score
from ragtrials.training.rows import Demonstration

Answer: TypeAlias = Callable[[str], Program]


def sampled(answer: Answer, roles: str | Sequence[str], temperature: float, top_p: float = 1.0) -> Answer:
    """A program whose generations of some roles are drawn instead of greedy.

    Args:
        answer: The program.
        roles: One role or several; the others' generations stay as they are.
        temperature: What the drawn generations are asked with.
        top_p: Likewise.
    """
    drawn_roles = frozenset([roles] if isinstance(roles, str) else roles)

    def warmed(request: Request) -> Request:
        if isinstance(request, Generate) and request.role in drawn_roles:
            return replace(request, temperature=temperature, top_p=top_p)
        return request

    def drawn(question: str) -> Program:
        program = answer(question)
        value: Any = None
        while True:
            try:
                yielded = program.send(value)
            except StopIteration as end:
                return str(end.value)
            if isinstance(yielded, Generate | Retrieve | Score):
                value = yield warmed(yielded)
            else:
                value = yield [warmed(request) for request in yielded]

    return drawn


def taught(
    program: Program, example: Example, reply: Callable[[Generate, Example], str], rows: list[Demonstration]
) -> Program:
    """A program whose generations a teacher answers; each becomes a row. Its retrievals pass through.

    Args:
        program: The program, not started yet.
        example: What it works on.
        reply: The right continuation of a request for an example.
        rows: Where rows are added.

    Raises:
        RunFailure: It asks how likely a text is, which a teacher cannot say.
    """

    def teach(request: Request) -> Completion:
        if not isinstance(request, Generate):
            raise RunFailure(
                f"asked for a {request.kind} where a teacher speaks: only generations can be taught"
            )
        text = reply(request, example)
        rows.append(Demonstration(request.messages, text, request.role))
        return Completion(text)

    value: Any = None
    while True:
        try:
            yielded = program.send(value)
        except StopIteration as end:
            return str(end.value)
        if isinstance(yielded, Retrieve):
            value = yield yielded
        elif isinstance(yielded, Generate | Score):
            value = teach(yielded)
        else:
            searches = [request for request in yielded if isinstance(request, Retrieve)]
            found = iter((yield searches) if searches else ())
            value = [next(found) if isinstance(r, Retrieve) else teach(r) for r in yielded]


class NoModel:
    """An engine for programs with a teacher: stands where a teacher answers before any model is asked."""

    @property
    def signature(self) -> Mapping[str, Any]:
        """Nothing: there is no model."""
        return {}

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """Never called."""
        raise AssertionError("a taught program reached the model")

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """Never called."""
        raise AssertionError("a taught program reached the model")
