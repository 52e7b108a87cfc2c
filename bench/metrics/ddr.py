"""ROUGE-L as RAG-DDR rewards and evaluates long answers, equal to the PyPI package `rouge` 1.0.1.

Its accuracy is PopQA's (`popqa_2023`), its F1 and exact match are SQuAD's (`squad_v1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from ragtrials.metrics.inputs import aliases_of, text_of

_TINY = 1e-8
"""What the package adds to the denominator; identical texts therefore score a little less than 1."""


def rouge_l(prediction: Any, gold: Any) -> dict[str, float]:
    """rouge_l: F of ROUGE-L, the best alias counts (RAG-DDR's rewards and its MS MARCO evaluation).

    Case and punctuation count, nothing is stemmed, so Google's `rouge_score` gives other values. Sentences
    end at every full stop. Only different words count, on both sides. A side without a sentence scores 0.
    """
    predicted = _sentences(text_of(prediction))
    return {"rouge_l": max((_f(predicted, _sentences(alias)) for alias in aliases_of(gold)), default=0.0)}


def common_words(reference: Sequence[str], hypothesis: Sequence[str]) -> set[str]:
    """The different words of the one longest common subsequence that the package picks among equals.

    It walks back from the ends of both: over a pair of equal words on both sides, else one word back in the
    reference if that alone keeps the length, else one word back in the hypothesis.
    """
    # The walk takes all first and last words that both have, which saves their part of the table. Where the
    # two ends overlap, the shorter side is used up by them.
    begin = _same(zip(reference, hypothesis, strict=False))
    end = _same(zip(reversed(reference), reversed(hypothesis), strict=False))
    words = {*reference[:begin], *reference[len(reference) - end :]}
    reference = reference[begin : len(reference) - end]
    hypothesis = hypothesis[begin : len(hypothesis) - end]
    place = len(hypothesis)
    for word, growth in zip(reversed(reference), reversed(_growth(reference, hypothesis)), strict=True):
        place = (growth & (1 << place) - 1).bit_length()
        if place and hypothesis[place - 1] == word:
            words.add(word)
            place -= 1
    return words


def _same(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _growth(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """Where the longest common subsequence grows along the hypothesis, one number per word of the reference.

    Bit j of number i is 1 where that of `reference[: i + 1]` and `hypothesis[: j + 1]` is longer than without
    word j. The walk may pass all other places: from such a pair of words it takes both if they are equal,
    and else goes back in the reference. An equal pair that it passes has one with the same word further
    back. `row` has the opposite bits; the bit-parallel algorithm of Crochemore et al. (2001) makes it from
    the row before by one addition.
    """
    places = dict.fromkeys(reference, 0)
    for place, word in enumerate(hypothesis):
        if word in places:
            places[word] |= 1 << place
    full = (1 << len(hypothesis)) - 1
    row, growth = full, []
    for word in reference:
        matches = row & places[word]
        row = (row + matches | row - matches) & full
        growth.append(full ^ row)
    return growth


def _f(predicted: list[list[str]], gold: list[list[str]]) -> float:
    if not predicted or not gold:
        return 0.0
    shared = set[str]().union(*(common_words(one, other) for one in gold for other in predicted))
    precision = len(shared) / len(set[str]().union(*predicted))
    recall = len(shared) / len(set[str]().union(*gold))
    return 2.0 * (precision * recall / (precision + recall + _TINY))


def _sentences(text: str) -> list[list[str]]:
    """The words of each different sentence. As in the package, blanks between stops are one empty word."""
    return [sentence.split() or [""] for sentence in dict.fromkeys(text.split(".")) if sentence]
