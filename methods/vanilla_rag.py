"""Retrieve once with the question, read the passages, answer. The baseline of every RAG paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ragtrials.errors import UserError
from ragtrials.method import Method, Paper
from ragtrials.methods._prompts import answer_from
from ragtrials.program import Program, retrieve


@dataclass(frozen=True, slots=True)
class VanillaRagConfig:
    """Settings.

    Attributes:
        k: Passages to retrieve.
        shots: Few-shot examples from the training split, shown without passages.
        max_new_tokens: Longest answer.
        passage_words: Words of each passage's text that are shown, from its start; all if None.
    """

    k: int = 5
    shots: int = 4
    max_new_tokens: int = 32
    passage_words: int | None = None

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"k must be at least 1, not {self.k} (no_retrieval answers without passages)")
        if self.shots < 0 or self.max_new_tokens < 1:
            raise UserError("shots must be at least 0 and max_new_tokens at least 1")
        if self.passage_words is not None and self.passage_words < 1:
            raise UserError(
                f"passage_words must be at least 1, or none to show whole passages, not {self.passage_words}"
            )


class VanillaRag(Method):
    """Retrieve-then-read."""

    name = "vanilla_rag"
    Config = VanillaRagConfig
    PROFILES: ClassVar[Mapping[str, VanillaRagConfig]] = {
        "paper": VanillaRagConfig(shots=0),  # FlashRAG's "standard RAG": zero-shot, top 5, 32 new tokens
        "laptop": VanillaRagConfig(k=3),  # a prompt of 400 tokens instead of 700, which decides on a CPU
        "smoke": VanillaRagConfig(k=2, shots=1, max_new_tokens=4),
    }
    paper = Paper(
        title="FlashRAG: A Modular Toolkit for Efficient Retrieval-Augmented Generation Research",
        url="arXiv:2405.13576",
        reported={"hotpotqa/f1": 0.353, "twowiki/f1": 0.210, "nq/em": 0.351, "popqa/f1": 0.367},
        deviations=(
            "our own prompt wording; the form is the paper's: passages in the system turn, then the question",
            "the laptop profile reads 3 passages and shows examples; the paper reads 5 and shows none",
        ),
    )
    config: VanillaRagConfig

    def answer(self, question: str) -> Program:
        passages = yield from retrieve(question, k=self.config.k)
        config = self.config
        return (
            yield from answer_from(
                question, passages, self.shown, config.passage_words, config.max_new_tokens
            )
        )
