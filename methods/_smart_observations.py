"""SmartRAG's observations (§3): what a retrieval found, as one line of the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from ragtrials.data import Passage
from ragtrials.methods._prompts import first_words
from ragtrials.metrics.retrieval import answer_recall
from ragtrials.program import Evidence

NOTHING = "nothing was found"


def observation_parts(passages: Sequence[Passage], words: int | None) -> tuple[str | Evidence, ...]:
    """The passages as "title: text title: text" in one line; each may be shortened further, from its end.

    Args:
        passages: What was found, best first; if nothing was, the observation says so.
        words: How many words of each text are shown; all if None.
    """
    parts: list[str | Evidence] = []
    for passage in passages:
        line = f"{passage.title}: {first_words(passage.text, words)}"
        parts += [" " if parts else "", Evidence(" ".join(line.split()))]
    return tuple(parts) or (NOTHING,)


def hit(aliases: Sequence[str], observation: str) -> bool:
    """Whether an observation holds an answer: a normalised alias as a part of its normalised text.

    As in the paper's hit rate letters count, not words: "cat" is in "concatenation". An alias of which
    normalisation leaves nothing ("The") is nowhere; the released code finds it everywhere.
    """
    return answer_recall([observation], aliases) > 0
