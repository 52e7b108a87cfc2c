"""Who labels with reflection tokens: rules, an instruction-tuned model, or the trained critic (§3.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from ragtrials.data import Example, Passage
from ragtrials.methods import _self_rules as rules
from ragtrials.methods._self_prompts import (
    IS_REL_WORDS,
    IS_SUP_WORDS,
    IS_USE_WORDS,
    RETRIEVE_WORDS,
    relevance_question,
    retrieve_question,
    support_question,
    utility_question,
)
from ragtrials.program import Generate, Message, Token
from ragtrials.training.rows import Demonstration

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

CRITIC, LABELLER = "critic", "labeller"
Kind: TypeAlias = Literal["retrieve", "relevance", "support", "utility"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Key: TypeAlias = tuple[Kind, str, str, str]
WORDS: Mapping[Kind, Mapping[str, str]] = {
    "retrieve": RETRIEVE_WORDS,
    "relevance": IS_REL_WORDS,
    "support": IS_SUP_WORDS,
    "utility": IS_USE_WORDS,
}
"""For each kind of label the words that a model says it with, and the token of each."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Something that is to be labelled.

    Attributes:
        kind: What is asked.
        example: About which question.
        answer: About which answer; of "support" and "utility".
        passage: About which passage; of "relevance" and "support".
    """

    kind: Kind
    example: Example
    answer: str = ""
    passage: Passage | None = None

    @property
    def key(self) -> Key:
        """What tells it from all others: kind, question, answer and passage."""
        return self.kind, self.example.id, self.answer, self.passage.id if self.passage else ""

    def messages(self, words: int | None) -> tuple[Message, ...]:
        """The question as a critic or a model is asked it.

        Args:
            words: How many words of the passage are shown; all if None.
        """
        question = self.example.question
        if self.kind == "retrieve":
            return retrieve_question(question)
        if self.kind == "utility":
            return utility_question(question, self.answer)
        assert self.passage is not None
        if self.kind == "relevance":
            return relevance_question(question, self.passage, words)
        return support_question(question, self.answer, self.passage, words)


Labeller: TypeAlias = Callable[[str, Sequence[Inquiry]], "list[str | None]"]
"""Labels inquiries, under a name of its own in the training; None where the label cannot be read."""


def by_rules(known: frozenset[str], f1: Callable[[str, Example], float]) -> Labeller:
    """The labeller that follows rules.

    Args:
        known: Ids of the examples that the untrained model answers without retrieval.
        f1: The F1 of an answer.
    """

    def label(inquiry: Inquiry) -> str:
        example, passage = inquiry.example, inquiry.passage
        if inquiry.kind == "retrieve":
            return rules.retrieve_label(example.id in known)
        if inquiry.kind == "utility":
            return rules.utility_label(f1(inquiry.answer, example))
        assert passage is not None
        if inquiry.kind == "relevance":
            return rules.relevance_label(example, passage)
        return rules.support_label(example, inquiry.answer, passage)

    return lambda name, inquiries: [label(inquiry) for inquiry in inquiries]


def by_model(run: TrainRun, words: int | None, model: str | None) -> Labeller:
    """The labeller that asks an instruction-tuned model, which answers in words.

    Args:
        run: The training.
        words: How many words of a passage are shown.
        model: The model, as `--model` takes it; the untrained one if None.
    """

    def labels(name: str, inquiries: Sequence[Inquiry]) -> list[str | None]:
        asked = [
            (
                inquiry.example.id,
                Generate(
                    inquiry.messages(words), LABELLER, max_new_tokens=4, allowed=tuple(WORDS[inquiry.kind])
                ),
                0,
            )
            for inquiry in inquiries
        ]
        replies = run.ask(name, asked, model)
        return [
            read(reply.text, WORDS[inquiry.kind]) for inquiry, reply in zip(inquiries, replies, strict=True)
        ]

    return labels


def by_critic(run: TrainRun, words: int | None) -> Labeller:
    """The labeller that takes the likeliest reflection token of the trained critic.

    Args:
        run: The training.
        words: How many words of a passage are shown.
    """

    def labels(name: str, inquiries: Sequence[Inquiry]) -> list[str | None]:
        asked = []
        for inquiry in inquiries:
            watch = tuple(WORDS[inquiry.kind].values())
            request = Generate(inquiry.messages(words), CRITIC, max_new_tokens=1, watch=watch)
            asked.append((inquiry.example.id, request, 0))
        replies = run.ask(name, asked)
        return [
            max(zip(reply.watched[0], request.watch, strict=True))[1]
            for (_, request, _), reply in zip(asked, replies, strict=True)
        ]

    return labels


def read(text: str, words: Mapping[str, str]) -> str | None:
    """The token of the first word of a reply that stands for one."""
    said = "".join(c if c.isalnum() else " " for c in text.lower()).split()
    return next((words[word] for word in said if word in words), None)


def reusing(labelled: Mapping[Key, str | None], others: Labeller) -> Labeller:
    """The labeller that says what was said before of the same, and asks another about the rest."""

    def label(name: str, inquiries: Sequence[Inquiry]) -> list[str | None]:
        rest = [inquiry for inquiry in inquiries if labelled.get(inquiry.key) is None]
        found = iter(others(name, rest) if rest else ())
        return [labelled.get(inquiry.key) or next(found) for inquiry in inquiries]

    return label


def lessons(
    inquiries: Sequence[Inquiry], labels: Sequence[str | None], words: int | None
) -> list[Demonstration]:
    """What the critic learns from: inquiries with their labels, where there is one."""
    return [
        Demonstration(inquiry.messages(words), (Token(label),), CRITIC)
        for inquiry, label in zip(inquiries, labels, strict=True)
        if label is not None
    ]
