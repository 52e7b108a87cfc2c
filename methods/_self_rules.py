"""Reflection labels by rules, in place of GPT-4's (§3.2.1): what golds and the untrained model say."""

from __future__ import annotations

from collections.abc import Sequence

from ragtrials.data import Example, Passage
from ragtrials.methods._self_tokens import (
    FULL,
    IRRELEVANT,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.metrics.retrieval import dpr_answer_recall


def retrieve_label(known: bool) -> str:
    """Retrieval, unless the untrained model answers the question by itself."""
    return NO_RETRIEVAL if known else RETRIEVAL


def relevance_label(example: Example, passage: Passage) -> str:
    """Relevant is a gold passage, and one that holds an answer."""
    relevant = passage.id in example.supporting or holds(passage, example.aliases)
    return RELEVANT if relevant else IRRELEVANT


def support_label(example: Example, answer: str, passage: Passage) -> str:
    """Full support is the answer in the passage; partial a gold passage that lacks it, as a first hop may."""
    if holds(passage, [answer]):
        return FULL
    return PARTIAL if passage.id in example.supporting else NONE


def utility_label(f1: float) -> str:
    """Utility 1 to 5 by the answer's F1, rounded to quarters."""
    return IS_USE[int(4 * f1 + 0.5)]


def holds(passage: Passage, answers: Sequence[str]) -> bool:
    """Whether the words of one of the answers stand side by side in the passage or its title."""
    return dpr_answer_recall([f"{passage.title}\n{passage.text}"], answers) > 0
