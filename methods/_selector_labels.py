"""Warm-start labels for a selector, from the words of the gold answer (MMOA-RAG, appendix B.2).

The paper speaks of the words of question and answer. As in its released code, those of the question count
only where the answer has none to look for, yes or no.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

Match = Literal["word", "substring"]

_NO_PUNCTUATION = str.maketrans("", "", '.,!?;:"()[]{}-')

_FUNCTION_WORDS = """
a about all an and another any are as at be because been being both but by did do does each either every
few for from had has have having he here hers his how i if in is it me mine more most my neither no none
nor not of on or other ours she some such than that the their theirs then there these they this those to
us was we were what when where which who whom whose why with you your yours
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


def label_words(question: str, answers: Sequence[str]) -> frozenset[str]:
    """The words that make a passage helpful.

    Those of every answer; for an answer that is just yes or no, those of the question. In lower case, without
    punctuation (apostrophes stay), function words and words of one character.

    Args:
        question: The question.
        answers: The gold answer. Further names of it widen what counts as helpful.
    """
    texts = [question if answer.strip().lower() in ("yes", "no") else answer for answer in answers]
    words = (word for text in texts for word in _plain(text).split())
    return frozenset(word for word in words if len(word) > 1 and word not in _STOP_WORDS)


def helpful(question: str, answers: Sequence[str], passage: str, match: Match = "word") -> bool:
    """Whether a passage has any of the label words.

    Args:
        question: The question.
        answers: The gold answer, as for `label_words`.
        passage: Title, line break and text.
        match: "word" compares sets of words, as the paper says; "substring" is the released code's rule, for
            which "comparison" has "Paris" in it.
    """
    return _has_any(label_words(question, answers), passage, match)


def selector_label(
    question: str, answers: Sequence[str], passages: Iterable[str], match: Match = "word"
) -> tuple[int, ...]:
    """The numbers of the helpful passages, from 0 and ascending; none is a label as well.

    Args:
        question: The question.
        answers: The gold answer, as for `label_words`.
        passages: Each passage's title, line break and text, in the order in which they are shown.
        match: As for `helpful`.
    """
    words = label_words(question, answers)
    return tuple(number for number, passage in enumerate(passages) if _has_any(words, passage, match))


def _plain(text: str) -> str:
    return text.translate(_NO_PUNCTUATION).lower()


def _has_any(words: frozenset[str], passage: str, match: Match) -> bool:
    text = _plain(passage)
    if match == "substring":
        return any(word in text for word in words)
    return not words.isdisjoint(text.split())
