"""RAG-DDR's preference pairs: which of several rewarded outputs of an agent is preferred to which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Candidate:
    """One sampled answer to a question.

    Attributes:
        index: What the caller finds it by again; unique among the candidates of a question.
        text: The answer as sampled.
        score: Its reward.
        raw: Whether it was sampled without documents; otherwise it was augmented by some.
    """

    index: int
    text: str
    score: float
    raw: bool


def generator_pair(candidates: Sequence[Candidate], seed: int) -> tuple[int, int] | None:
    """The indices of the chosen and of the rejected answer, or None if all rewards are equal (spec §2.3).

    Among the best answers those without documents come first: what the model knows anyway. If the chosen one
    is such, among the worst answers those with documents come first: they went wrong because of documents.
    What is left is drawn with equal chances. The pair depends on the candidates and the seed alone, not on
    the order of the candidates.

    Args:
        candidates: All answers to one question.
        seed: Of this question's draw. The official code draws all pairs of a file from one stream (§7, quirk
            20), so that a pair depends on the questions before it; here it does not.

    Raises:
        ValueError: Two candidates have the same index.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.index)
    if len({candidate.index for candidate in ordered}) < len(ordered):
        raise ValueError("two candidates of a question have the same index")
    best, worst = _extremes([candidate.score for candidate in ordered])
    if best == worst:
        return None
    draw = Random(seed)
    winners, losers = [ordered[i] for i in best], [ordered[i] for i in worst]
    chosen = draw.choice([c for c in winners if c.raw] or winners)
    rejected = draw.choice(([c for c in losers if not c.raw] if chosen.raw else []) or losers)
    return chosen.index, rejected.index


def refiner_sets(scores: Sequence[float]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which documents alone led to the best and which to the worst reward (spec §2.4).

    The refiner learns YES before NO for the former and NO before YES for the latter; documents between them
    are left out. Both are empty if all rewards are equal, so if there is only one document.

    Args:
        scores: The reward of the answer with each document alone, in order of retrieval. Documents are told
            apart by their place, never by their content (§7, quirk 7).
    """
    best, worst = _extremes(scores)
    return ((), ()) if best == worst else (best, worst)


def refiner_pairs(scores: Sequence[float], seed: int) -> tuple[int, int] | None:
    """The document for YES before NO and the one for NO before YES, or None if all rewards are equal.

    Each is drawn with equal chances from its set, see `refiner_sets` (spec §2.4).
    """
    best, worst = refiner_sets(scores)
    if not best:
        return None
    draw = Random(seed)
    return draw.choice(best), draw.choice(worst)


def _extremes(scores: Sequence[float]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of the highest and those of the lowest score; the same places if all are equal."""
    high, low = max(scores, default=0.0), min(scores, default=0.0)
    places = range(len(scores))
    return tuple(i for i in places if scores[i] == high), tuple(i for i in places if scores[i] == low)
