"""The prompt parts that methods share: passages, few-shot turns, and the answer's form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from ragtrials.data import Example, Passage
from ragtrials.program import Evidence, Message, Program, assistant, generate, system, user

ANSWER_FORM = (
    "Reply with the answer alone: a name, a number, a short phrase, or yes or no. "
    "If several answers are right, give them all, separated by semicolons."
)
"""The form of an answer, the same for every method. The marker of several answers is `Example.target`'s."""


def passage_parts(passages: Sequence[Passage], words: int | None = None) -> tuple[str | Evidence, ...]:
    """Numbered passages, from 1, each with its title; only their texts may be shortened.

    Args:
        passages: What to show, in this order.
        words: How many words of each text are shown; all of them if None.
    """
    parts: list[str | Evidence] = []
    for number, passage in enumerate(passages, 1):
        parts += [f"[{number}] {passage.title}: ", Evidence(first_words(passage.text, words)), "\n"]
    return tuple(parts)


def first_words(text: str, count: int | None) -> str:
    """The start of a text with at most `count` words, divided by whitespace, spaced as they are in it.

    A text that has no more words than that, or any text if `count` is None, is returned as it is.
    """
    if count is None:
        return text
    found = list(islice(re.finditer(r"\S+", text), count + 1))
    return text if len(found) <= count else text[: found[count - 1].end()]


def question_turn(question: str) -> Message:
    """The turn that asks. Few-shot examples and the real question have the same form."""
    return user(f"Question: {question}\nAnswer in a few words.")


def shot_turns(shots: Sequence[Example]) -> tuple[Message, ...]:
    """Training questions with their answers, as turns of the chat that came before.

    They carry no passages: they show the form of an answer, at a cost of a few tokens each. A small model
    copies that form only if the real question looks the same, so passages belong before these turns.
    """
    turns: list[Message] = []
    for shot in shots:
        turns += [question_turn(shot.question), assistant(shot.target)]
    return tuple(turns)


def clean_answer(text: str) -> str:
    """The first line of a reply that says something, without blanks around it."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def closed_book_prompt(question: str, shots: Sequence[Example]) -> tuple[Message, ...]:
    """The prompt that shows no passages: few-shot turns if there are any, then the question."""
    return (
        system(f"You answer questions from what you know. {ANSWER_FORM}"),
        *shot_turns(shots),
        question_turn(question),
    )


def reading_prompt(
    question: str, passages: Sequence[Passage], shots: Sequence[Example], words: int | None
) -> tuple[Message, ...]:
    """The prompt of a reader: the passages, then few-shot turns if there are any, then the question."""
    return (
        system(
            f"You answer questions with the help of these passages. {ANSWER_FORM}\n\n",
            *passage_parts(passages, words),
        ),
        *shot_turns(shots),
        question_turn(question),
    )


def answer_from(
    question: str,
    passages: Sequence[Passage],
    shots: Sequence[Example],
    words: int | None,
    max_new_tokens: int,
) -> Program:
    """The last step of most methods: read the passages and answer in one line.

    Args:
        question: What is asked.
        passages: What is read, in this order.
        shots: Few-shot examples.
        words: How many words of each passage are shown; all if None.
        max_new_tokens: Longest answer.
    """
    prompt = reading_prompt(question, passages, shots, words)
    reply = yield from generate(prompt, max_new_tokens=max_new_tokens, stop=("\n",))
    return clean_answer(reply.text)
