"""Self-RAG's prompts: what the generator reads, and what critic and labelling model are asked (§3.2)."""

from __future__ import annotations

from typing import Literal

from ragtrials.data import Passage
from ragtrials.methods._prompts import ANSWER_FORM, first_words
from ragtrials.methods._self_tokens import (
    END_PARAGRAPH,
    FULL,
    IRRELEVANT,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARAGRAPH,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.program import Evidence, Message, Part, Token, plain_text, user


def generator_prompt(question: str, form: Literal["chat", "released"]) -> tuple[Message, ...]:
    """The question, in the model's chat template or in the form of the released checkpoints."""
    if form == "released":
        return (plain_text(f"### Instruction:\n{question}\n\n### Response:\n"),)
    return (user(f"{ANSWER_FORM}\n\nQuestion: {question}"),)


def passage_part(passage: Passage, words: int | None) -> tuple[Part, ...]:
    """A passage between its tags; its text may be shortened, and training puts no loss on it."""
    text = f"{passage.title}\n{first_words(passage.text, words)}"
    return (Token(PARAGRAPH), Evidence(text), Token(END_PARAGRAPH))


# What is asked of a critic, which answers with a reflection token, and of a labelling model, which answers in
# words.
RETRIEVE_WORDS = {"no": NO_RETRIEVAL, "yes": RETRIEVAL}
IS_REL_WORDS = {"yes": RELEVANT, "no": IRRELEVANT}
IS_SUP_WORDS = {"fully": FULL, "partially": PARTIAL, "no": NONE}
IS_USE_WORDS = {str(value): token for value, token in enumerate(IS_USE, 1)}


def retrieve_question(question: str) -> tuple[Message, ...]:
    """Whether a question needs retrieval: `RETRIEVE_WORDS`."""
    return (
        user(
            "Does one have to look something up to answer this question well? Reply yes or no.\n\n"
            f"Question: {question}"
        ),
    )


def relevance_question(question: str, passage: Passage, words: int | None) -> tuple[Message, ...]:
    """Whether a passage is relevant: `IS_REL_WORDS`."""
    return (
        user(
            f"Does this passage help to answer the question? Reply yes or no.\n\nQuestion: {question}\n"
            "Passage: ",
            *_shown(passage, words),
        ),
    )


def support_question(question: str, answer: str, passage: Passage, words: int | None) -> tuple[Message, ...]:
    """How far a passage supports an answer: `IS_SUP_WORDS`."""
    return (
        user(
            "Does this passage support the answer? Reply fully, partially or no.\n\n"
            f"Question: {question}\nAnswer: {answer}\nPassage: ",
            *_shown(passage, words),
        ),
    )


def utility_question(question: str, answer: str) -> tuple[Message, ...]:
    """How useful an answer is: `IS_USE_WORDS`."""
    return (
        user(
            "How useful is this answer to whoever asked? Reply with a number from 1, of no use, to 5, "
            f"complete.\n\nQuestion: {question}\nAnswer: {answer}"
        ),
    )


def _shown(passage: Passage, words: int | None) -> tuple[str | Evidence, ...]:
    return (f"{passage.title}: ", Evidence(first_words(passage.text, words)))
