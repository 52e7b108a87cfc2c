"""Self-RAG's scores: the numbers of the specification (baselines.md c.11), and what is left out."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import pytest
from self_segments import FLOOR, said

from ragtrials.methods._self_scores import (
    Weights,
    further_share,
    joined,
    probabilities,
    relevance,
    retrieval_share,
    segment_score,
    support,
    utility,
)
from ragtrials.methods._self_tokens import (
    CONTINUE,
    FULL,
    IRRELEVANT,
    IS_REL,
    IS_SUP,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.methods.self_rag import WATCHED
from ragtrials.program import Mark

REL = dict(zip(IS_REL, (0.9, 0.1), strict=True))
SUP = {FULL: 0.6, PARTIAL: 0.3, NONE: 0.1}
USE = dict(zip(IS_USE, (0.05, 0.05, 0.1, 0.3, 0.5), strict=True))
WHOLE = said(RELEVANT, "Paris", FULL, IS_USE[4], at={0: REL, 2: SUP, 3: USE})


def test_the_share_of_retrieval_is_one_of_probabilities() -> None:
    p = {RETRIEVAL: 0.9, NO_RETRIEVAL: 0.1}
    assert retrieval_share(p) == pytest.approx(0.9)
    assert log(0.9) / (log(0.9) + log(0.1)) == pytest.approx(0.0438, abs=1e-4)  # the released code's
    assert retrieval_share({RETRIEVAL: 0.0, NO_RETRIEVAL: 0.0}) == 0


def test_behind_a_segment_the_evidence_at_hand_counts_for_retrieval() -> None:
    p = {RETRIEVAL: 0.3, NO_RETRIEVAL: 0.5, CONTINUE: 0.1}
    assert retrieval_share(p) == pytest.approx(0.375)
    assert further_share(p) == pytest.approx(0.5)


def test_the_parts_of_a_score() -> None:
    assert relevance(REL) == pytest.approx(0.9)
    assert support(SUP) == pytest.approx(0.75)
    assert utility(USE) == pytest.approx(0.575)


def test_shares_do_not_depend_on_what_else_could_be_said() -> None:
    for score, p in ((relevance, REL), (support, SUP), (utility, USE)):
        assert score({name: 0.01 * value for name, value in p.items()}) == pytest.approx(score(p))
        assert score(dict.fromkeys(p, 0.0)) == 0


@pytest.mark.parametrize(("weight", "score"), [(0.5, 2.75623), (1.0, 3.04373)])
def test_the_score_of_a_segment(weight: float, score: float) -> None:
    assert segment_score(WHOLE, WATCHED, Weights(utility=weight)) == pytest.approx(score, abs=1e-5)


def test_weights_of_nought_leave_the_critic_out() -> None:
    alone = Weights(relevance=0, support=0, utility=0)
    assert segment_score(WHOLE, WATCHED, alone) == pytest.approx(exp(-0.2))
    critic = segment_score(WHOLE, WATCHED, Weights(sequence=0))
    assert critic == pytest.approx(0.9 + 0.75 + 0.5 * 0.575)


def test_what_a_segment_does_not_say_scores_nothing() -> None:
    bare = said("Paris", at={0: REL})
    assert segment_score(bare, WATCHED, Weights()) == pytest.approx(exp(-0.2) + 0.9)


def test_the_first_token_of_a_kind_counts() -> None:
    twice = said(RELEVANT, FULL, "Paris", NONE, at={0: REL, 1: SUP, 3: {NONE: 1.0}})
    assert segment_score(twice, WATCHED, Weights(sequence=0)) == pytest.approx(0.9 + 0.75)


def test_the_mean_log_probability_does_not_favour_short_segments() -> None:
    short, long = said("a", logprob=-0.5), said("a", "b", "c", logprob=-0.5)
    assert segment_score(short, WATCHED, Weights(relevance=0)) == pytest.approx(exp(-0.5))
    assert segment_score(long, WATCHED, Weights(relevance=0)) == pytest.approx(exp(-0.5))


def test_probabilities_at_a_place() -> None:
    p = probabilities(WHOLE, 0, WATCHED)
    assert (p[RELEVANT], p[IRRELEVANT], p[FULL]) == pytest.approx((0.9, 0.1, FLOOR))
    assert probabilities(WHOLE, -1, WATCHED)[IS_USE[4]] == pytest.approx(0.5)


def test_two_halves_joined_are_the_whole() -> None:
    first, rest = said(RELEVANT, "Paris", at={0: REL}), said("it", "is", FULL, at={2: SUP}, first=102)
    both = joined(first, replace(rest, prompt_ids=(1, 2, 3, 100, 101), finish="length"))
    assert both == replace(
        said(RELEVANT, "Paris", "it", "is", FULL, at={0: REL, 4: SUP}),
        finish="length",
    )
    assert both.marks == (Mark(0, RELEVANT), Mark(4, FULL))


def test_every_group_is_watched() -> None:
    assert set(WATCHED) == {RETRIEVAL, NO_RETRIEVAL, CONTINUE, *IS_REL, *IS_SUP, *IS_USE}
    assert len(WATCHED) == 13
