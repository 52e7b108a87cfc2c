"""What SmartRAG's actions earn (§3, Eq. 5): an answer its correctness, a retrieval its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ragtrials.methods._smart_actions import ANSWER, SEARCH, Tag

Correctness: TypeAlias = Literal["auto", "em_f1", "em"]


def correctness(scores: Mapping[str, float], measure: Correctness, choosing: bool) -> float:
    """What an answer earns by its scores: EM + F1 in [0, 2], or EM alone in [0, 1].

    Args:
        scores: The task's "em" and "f1" of the answer, the best over all aliases.
        measure: Which; "auto" takes EM alone where the task chooses among given answers: between them there
            is no partly right, and F1 drops a choice such as "A", which it reads as an article.
        choosing: Whether the task does.
    """
    if measure == "em" or (measure == "auto" and choosing):
        return scores["em"]
    return scores["em"] + scores["f1"]


def episode_rewards(
    tags: Sequence[Tag | None], correct: float, alpha: float, malformed: float
) -> tuple[float, ...]:
    """The reward of each action of an episode, in order.

    Args:
        tags: What the actions were; None for a malformed one.
        correct: What the episode's answer earns.
        alpha: What a retrieval costs.
        malformed: What a malformed action earns instead.
    """
    earned: dict[Tag | None, float] = {SEARCH: -alpha, ANSWER: correct, None: malformed}
    return tuple(earned[tag] for tag in tags)
