"""Self-RAG's scores of a segment by the probabilities of reflection tokens (§3.3 and appendix A.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from ragtrials.methods._self_tokens import (
    CONTINUE,
    FULL,
    IRRELEVANT,
    IS_SUP,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.program import Completion, Mark

UTILITY_WEIGHTS = (-1.0, -0.5, 0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Weights:
    """What the parts of a segment's score weigh; the defaults are the paper's.

    Attributes:
        relevance, support, utility: Of the reflection tokens' scores; all 0 leaves the critic out.
        sequence: Of exp(mean log-probability of the segment's tokens).
    """

    relevance: float = 1.0
    support: float = 1.0
    utility: float = 0.5
    sequence: float = 1.0


def retrieval_share(p: Mapping[str, float]) -> float:
    """p(Retrieval) / (p(Retrieval) + p(No Retrieval)) of probabilities, in [0, 1]."""
    return _share(p, (RETRIEVAL,), (RETRIEVAL, NO_RETRIEVAL))


def further_share(p: Mapping[str, float]) -> float:
    """The same behind a segment, where using the evidence further counts for retrieval; can exceed 1."""
    return _share(p, (RETRIEVAL, CONTINUE), (RETRIEVAL, NO_RETRIEVAL))


def relevance(p: Mapping[str, float]) -> float:
    """p(Relevant) / (p(Relevant) + p(Irrelevant)), in [0, 1]."""
    return _share(p, (RELEVANT,), (RELEVANT, IRRELEVANT))


def support(p: Mapping[str, float]) -> float:
    """(p(Fully) + p(Partially) / 2) / (p(Fully) + p(Partially) + p(No support)), in [0, 1]."""
    total = p[FULL] + p[PARTIAL] + p[NONE]
    return (p[FULL] + 0.5 * p[PARTIAL]) / total if total else 0.0


def utility(p: Mapping[str, float]) -> float:
    """The mean of -1, -0.5, 0, 0.5, 1 under the probabilities of utility 1 to 5, in [-1, 1]."""
    total = sum(p[token] for token in IS_USE)
    weighted = sum(w * p[token] for w, token in zip(UTILITY_WEIGHTS, IS_USE, strict=True))
    return weighted / total if total else 0.0


def segment_score(segment: Completion, watch: Sequence[str], weights: Weights) -> float:
    """A segment's score f: how likely it is, and what its reflection tokens say of it.

    Relevance is read where the segment begins. Support and utility are read at the first token of their
    kind, and are 0 if it has none.

    Args:
        segment: What was generated behind a passage, with log-probabilities and watched tokens.
        watch: The watched tokens, in the request's order.
        weights: What the parts weigh.
    """
    assert segment.logprobs is not None
    parts = weights.relevance * relevance(probabilities(segment, 0, watch))
    for group, score, weight in (
        (IS_SUP, support, weights.support),
        (IS_USE, utility, weights.utility),
    ):
        place = next((mark.place for mark in segment.marks if mark.name in group), None)
        if place is not None:
            parts += weight * score(probabilities(segment, place, watch))
    return parts + weights.sequence * exp(sum(segment.logprobs) / len(segment.logprobs))


def probabilities(segment: Completion, place: int, watch: Sequence[str]) -> dict[str, float]:
    """The probabilities of the watched tokens at one of its tokens."""
    return {name: exp(value) for name, value in zip(watch, segment.watched[place], strict=True)}


def joined(segment: Completion, rest: Completion) -> Completion:
    """A segment and what was generated behind it, as if it had been generated at once."""
    assert segment.logprobs is not None
    assert rest.logprobs is not None
    return replace(
        rest,
        text=f"{segment.text.rstrip()} {rest.text.lstrip()}".strip(),
        token_ids=segment.token_ids + rest.token_ids,
        prompt_ids=segment.prompt_ids,
        logprobs=segment.logprobs + rest.logprobs,
        watched=segment.watched + rest.watched,
        marks=(*segment.marks, *(Mark(len(segment.token_ids) + m.place, m.name) for m in rest.marks)),
    )


def _share(p: Mapping[str, float], of: Sequence[str], among: Sequence[str]) -> float:
    total = sum(p[name] for name in among)
    return sum(p[name] for name in of) / total if total else 0.0
