"""Metrics of what was retrieved, before any answer is written. Values are fractions of 1.

Repeated ids count once. Questions without known gold passages score 0 here: leave them out of a mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
