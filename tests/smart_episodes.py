"""SmartRAG on one question with a scripted policy, for tests of its program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ragtrials.data import Passage
from ragtrials.driver import Driver
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._smart_actions import SEARCH
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Generate, Hit, Trace

CONFIG = SmartRAG.PROFILES["smoke"]
QUESTION = "Where was Ann Lee born?"
ONE = (Hit(Passage("p1", "Ann Lee", "Ann Lee was born in Zermatt."), 1.0),)
OTHER = (Hit(Passage("p2", "Bo Li", "Bo Li was born in Oslo."), 1.0),)


def method_of(**changes: Any) -> SmartRAG:
    """The smoke profile, with long actions, and changed."""
    return SmartRAG(replace(CONFIG, **({"action_tokens": 50, "passage_words": None} | changes)))


class Shelf:
    """Finds one passage for whatever is asked, or nothing."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, found: Sequence[Hit] = ONE) -> None:
        self.found = found
        self.asked: list[str] = []

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        self.asked += queries
        return [list(self.found) for _ in queries]


def run_with(
    method: SmartRAG,
    respond: Callable[[Generate], str] | Sequence[str],
    questions: Iterable[str] = (QUESTION,),
    engine: Any = None,
) -> list[Trace]:
    """What happens to questions, whose ids are their texts; an engine stands in for replies."""
    asked = [(question, question) for question in questions]
    return Driver(Shelf(), engine or ScriptedEngine(respond)).run(method.answer, asked)


def kinds(trace: Trace) -> list[str]:
    """The kinds of the requests, in order."""
    return [step.request.kind for step in trace.steps]


def forever(request: Generate) -> str:
    """A policy that searches whatever it sees; where the tag is given it says something all the same."""
    return f"{SEARCH} again" if request.messages[-1].role == "user" else f" {SEARCH} again"
