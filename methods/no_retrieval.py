"""Closed-book answering: what the model knows by itself. The floor that retrieval has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ragtrials.errors import UserError
from ragtrials.method import Method, Paper
from ragtrials.methods._prompts import clean_answer, closed_book_prompt
from ragtrials.program import Program, generate


@dataclass(frozen=True, slots=True)
class NoRetrievalConfig:
    """Settings.

    Attributes:
        shots: Few-shot examples from the training split.
        max_new_tokens: Longest answer.
    """

    shots: int = 4
    max_new_tokens: int = 32

    def __post_init__(self) -> None:
        if self.shots < 0 or self.max_new_tokens < 1:
            raise UserError("shots must be at least 0 and max_new_tokens at least 1")


class NoRetrieval(Method):
    """Ask the model and nothing else."""

    name = "no_retrieval"
    retrieves = False
    Config = NoRetrievalConfig
    PROFILES: ClassVar[Mapping[str, NoRetrievalConfig]] = {
        "paper": NoRetrievalConfig(shots=0),  # FlashRAG's "naive generation": zero-shot, 32 new tokens
        "laptop": NoRetrievalConfig(),
        "smoke": NoRetrievalConfig(shots=1, max_new_tokens=4),
    }
    paper = Paper(
        title="FlashRAG: A Modular Toolkit for Efficient Retrieval-Augmented Generation Research",
        url="arXiv:2405.13576",
        reported={"hotpotqa/f1": 0.284, "twowiki/f1": 0.339, "nq/em": 0.226, "popqa/f1": 0.217},
        deviations=("our own prompt wording", "the laptop profile shows few-shot examples, the paper none"),
    )
    config: NoRetrievalConfig

    def answer(self, question: str) -> Program:
        prompt = closed_book_prompt(question, self.shown)
        reply = yield from generate(prompt, max_new_tokens=self.config.max_new_tokens, stop=("\n",))
        return clean_answer(reply.text)
