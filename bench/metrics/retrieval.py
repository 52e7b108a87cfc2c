"""Metrics of what was retrieved, before any answer is written. Values are fractions of 1.

Repeated ids count once. Questions without known gold passages score 0 here: leave them out of a mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from ragtrials.metrics.inputs import aliases_of
from ragtrials.metrics.text import normalise


def gold_recall(retrieved_ids: Iterable[str], gold_ids: Collection[str]) -> float:
    """Share of the gold passages that were retrieved."""
    gold = set(gold_ids)
    return len(gold.intersection(retrieved_ids)) / len(gold) if gold else 0.0


def all_gold_found(retrieved_ids: Iterable[str], gold_ids: Collection[str]) -> float:
    """1 if every gold passage was retrieved (what a multi-hop question needs), else 0."""
    return float(bool(gold_ids) and set(gold_ids).issubset(retrieved_ids))


def gold_precision(retrieved_ids: Iterable[str], gold_ids: Collection[str]) -> float:
    """Share of the retrieved passages that are gold; 0 if nothing was retrieved."""
    retrieved = set(retrieved_ids)
    return len(retrieved.intersection(gold_ids)) / len(retrieved) if retrieved else 0.0


def reciprocal_rank(retrieved_ids: Sequence[str], gold_ids: Collection[str]) -> float:
    """1 / rank of the first gold passage, 0 if there is none. Its mean over questions is the MRR."""
    gold = set(gold_ids)
    for rank, passage_id in enumerate(dict.fromkeys(retrieved_ids), start=1):
        if passage_id in gold:
            return 1 / rank
    return 0.0


def answer_recall(passage_texts: Iterable[str], aliases: Sequence[str] | str) -> float:
    """1 if some alias's SQuAD normal form is a substring of some passage's, else 0.

    KILT's and FlashRAG's way. It finds "US" inside "bus"; `dpr_answer_recall` compares tokens instead. An
    alias with an empty normal form is never found.
    """
    wanted = [form for form in map(normalise, aliases_of(aliases)) if form]
    if not wanted:
        return 0.0
    return float(any(form in text for text in map(normalise, passage_texts) for form in wanted))


def dpr_answer_recall(passage_texts: Iterable[str], aliases: Sequence[str] | str) -> float:
    """1 if the tokens of some alias stand side by side in some passage, else 0: DPR's `has_answer`.

    Text is decomposed (NFD) and lower-cased; a token is a run of letters, numbers and marks, or one other
    visible character. An alias without tokens is never found (DPR would find it everywhere).
    """
    wanted = [tokens for tokens in map(_dpr_tokens, aliases_of(aliases)) if tokens != "  "]
    return float(any(tokens in text for text in map(_dpr_tokens, passage_texts) for tokens in wanted))


class _DprClasses(dict[int, str]):
    """What `str.translate` puts for a character: itself, itself as a token of its own, or a space."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)[0]
        self[code] = character if kind in "LNM" else " " if kind in "ZC" else f" {character} "
        return self[code]


_DPR_CLASSES = _DprClasses()


@lru_cache(maxsize=1 << 13)
def _dpr_tokens(text: str) -> str:
    """The tokens, each with a space on either side, so that a substring is a run of whole tokens."""
    tokens = unicodedata.normalize("NFD", text).translate(_DPR_CLASSES).lower().split()
    return f" {' '.join(tokens)} "
