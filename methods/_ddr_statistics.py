"""What a run's record says about RAG-DDR's preference pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

from ragtrials.methods._ddr_pairs import Candidate, refiner_sets


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """The pairs that train the generator. The means are over all questions with a candidate, 0 without any.

    Attributes:
        queries: Questions that answers were sampled for.
        kept: Questions that gave a pair.
        ties: Questions that gave none: all rewards were equal, or there was no candidate.
        chosen_raw: Pairs whose chosen answer was sampled without documents.
        rejected_raw: Pairs whose rejected answer was.
        mean_best: Mean of the questions' highest rewards.
        mean_worst: Mean of their lowest rewards.
        mean_spread: Mean of the differences of the two.
    """

    queries: int
    kept: int
    ties: int
    chosen_raw: int
    rejected_raw: int
    mean_best: float
    mean_worst: float
    mean_spread: float

    @classmethod
    def of(cls, groups: Iterable[tuple[Sequence[Candidate], tuple[int, int] | None]]) -> Self:
        """From each question's candidates and what `generator_pair` made of them."""
        everything = list(groups)
        pairs = [({c.index: c.raw for c in group}, pair) for group, pair in everything if pair is not None]
        best, worst, spread = _reward_means([c.score for c in group] for group, _ in everything)
        return cls(
            queries=len(everything),
            kept=len(pairs),
            ties=len(everything) - len(pairs),
            chosen_raw=sum(raw[chosen] for raw, (chosen, _) in pairs),
            rejected_raw=sum(raw[rejected] for raw, (_, rejected) in pairs),
            mean_best=best,
            mean_worst=worst,
            mean_spread=spread,
        )


@dataclass(frozen=True, slots=True)
class DocumentStatistics:
    """The pairs that train the refiner. The means are over all questions with a document, 0 without any.

    Attributes:
        queries: Questions whose documents were tried one by one.
        kept: Questions that gave a YES and a NO pair.
        ties: Questions that gave none: all rewards were equal, or there was at most one document.
        best_documents: Documents at the best reward, over the questions kept.
        worst_documents: Documents at the worst reward, over the questions kept.
        mean_best: Mean of the questions' highest rewards.
        mean_worst: Mean of their lowest rewards.
        mean_spread: Mean of the differences of the two.
    """

    queries: int
    kept: int
    ties: int
    best_documents: int
    worst_documents: int
    mean_best: float
    mean_worst: float
    mean_spread: float

    @classmethod
    def of(cls, groups: Iterable[Sequence[float]]) -> Self:
        """From the rewards of each question's documents."""
        everything = list(groups)
        sets = [found for found in map(refiner_sets, everything) if found[0]]
        best, worst, spread = _reward_means(everything)
        return cls(
            queries=len(everything),
            kept=len(sets),
            ties=len(everything) - len(sets),
            best_documents=sum(len(high) for high, _ in sets),
            worst_documents=sum(len(low) for _, low in sets),
            mean_best=best,
            mean_worst=worst,
            mean_spread=spread,
        )


def _reward_means(groups: Iterable[Sequence[float]]) -> tuple[float, float, float]:
    """The means of the highest and lowest rewards and of their differences; empty groups are left out."""
    ends = [(max(scores), min(scores)) for scores in groups if scores]
    if not ends:
        return 0.0, 0.0, 0.0
    best, worst = zip(*ends, strict=True)
    return fmean(best), fmean(worst), fmean(high - low for high, low in ends)
