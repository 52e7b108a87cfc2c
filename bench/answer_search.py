"""Which questions' gold answers occur in a text: thousands of answers looked up at once, by whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_WORD = re.compile(r"[^\W_]+")
_ARTICLES = ("a", "an", "the")


class AnswerSearch:
    """The gold answers of many questions, ready to be looked for in one text after another.

    An answer occurs in a text if its words stand there side by side. Words are runs of letters and digits;
    case, punctuation, and articles in front of the answer do not count. So "US" is not in "bus", and
    "East Germany" is in "West–East Germany-based": a rule that deletes punctuation, as the normal form of
    exact match does, would join the neighbours of a dash into one word. Whatever `dpr_answer_recall` finds
    of an answer that has words is found here as well.

    Args:
        golds: The acceptable strings of each question.

    Attributes:
        searchable: Whether a question has any string with words in it; "..." and "The" have none.
    """

    def __init__(self, golds: Sequence[Iterable[str]]) -> None:
        phrases = [{phrase for alias in aliases if (phrase := _phrase(alias))} for aliases in golds]
        self.searchable = tuple(map(bool, phrases))
        self._questions: dict[tuple[str, ...], list[int]] = {}
        for question, found in enumerate(phrases):
            for phrase in found:
                self._questions.setdefault(phrase, []).append(question)
        # A text is scanned once: at each word, only the lengths of phrases that begin with it are tried.
        self._lengths: dict[str, set[int]] = {}
        for phrase in self._questions:
            self._lengths.setdefault(phrase[0], set()).add(len(phrase))

    def questions_in(self, text: str) -> Iterator[int]:
        """The questions, by their place among the golds, with an answer in the text; some more than once."""
        words = _words(text)
        for start, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                yield from self._questions.get(tuple(words[start : start + length]), ())


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))


def _phrase(answer: str) -> tuple[str, ...]:
    """The words of an answer from the first that is no article; () if there is none."""
    words = _words(answer)
    start = next((place for place, word in enumerate(words) if word not in _ARTICLES), len(words))
    return tuple(words[start:])
