"""How other projects count, so that their published numbers can be compared. Not for judging methods here.

None of these guards against golds with an empty normal form: the projects do not either.
"""

from __future__ import annotations

import string
from functools import lru_cache
from typing import Any

from ragtrials.metrics.inputs import aliases_of, text_of
from ragtrials.metrics.qa import (
    CLOSED_ANSWERS,
    best_match,
    closed_answer_overlap,
    contained,
    squad,
    token_overlap,
)
from ragtrials.metrics.text import ARTICLES, normalise

_MMOA_MARKS = ("\n\n", "Answer: ", "The answer is: ")
_HYPHENS = "‐‑⁃‒–—―−－⁻"
_QUOTES = "’՚Ꞌꞌ＇‘‚‛“”„‟`´′″‴‵‶‷⁗"
_SLASHES_AND_TILDES = "⁄∕˜⁓∼∽∿〜～"
_CONTROLS = "".join(map(chr, (*range(0x01, 0x09), 0x0E, 0x0F, *range(0x11, 0x1C)))) + "\u00ad"
_MMOA_TABLE = str.maketrans(
    {
        **dict.fromkeys(string.punctuation + _HYPHENS + _QUOTES + _SLASHES_AND_TILDES + "…", " "),
        **dict.fromkeys(_CONTROLS),
    }
)


def flashrag(prediction: Any, gold: Any) -> dict[str, float]:
    """FlashRAG: HotpotQA's yes/no rule in f1, precision, recall on every dataset; acc is a substring."""
    acc = contained(normalise(text_of(prediction)), aliases_of(gold), guarded=False)
    return {**best_match(prediction, gold, overlap=closed_answer_overlap), "acc": float(acc)}


def search_r1(prediction: Any, gold: Any) -> dict[str, float]:
    """Search-R1's `em_check` of an answer that was already taken out of its <answer> tags: em."""
    return {"em": squad(prediction, gold)["em"]}


def self_rag(prediction: Any, gold: Any) -> dict[str, float]:
    """Self-RAG per question: match (raw substring, case counts), acc (equals the first gold), SQuAD f1.

    Its own f1 returns 0 for a whole dataset that holds one question without golds; here that question is 0.
    """
    predicted, golds = text_of(prediction), aliases_of(gold)
    return {
        "match": float(any(alias in predicted for alias in golds)),
        "acc": float(golds[:1] == (predicted,)),
        "f1": squad(prediction, gold)["f1"],
    }


def mmoa(prediction: Any, gold: Any) -> dict[str, float]:
    """MMOA-RAG's evaluation: f1, em, acc; all 0 where one side alone is yes, no or noanswer.

    There is one gold string: several aliases are joined by ", ", as it does for AmbigQA's `nq_answer`.
    """
    predicted, wanted = _mmoa_form(text_of(prediction)), _mmoa_form(", ".join(aliases_of(gold)))
    if predicted != wanted and (predicted in CLOSED_ANSWERS or wanted in CLOSED_ANSWERS):
        return {"f1": 0.0, "em": 0.0, "acc": 0.0}
    return _mmoa_values(predicted, wanted)


def mmoa_reward(prediction: Any, gold: Any) -> dict[str, float]:
    """MMOA-RAG's training reward: as its evaluation, without the yes/no rule."""
    return _mmoa_values(_mmoa_form(text_of(prediction)), _mmoa_form(", ".join(aliases_of(gold))))


def _mmoa_values(predicted: str, wanted: str) -> dict[str, float]:
    return {
        "f1": token_overlap(predicted, wanted).f1,
        "em": float(predicted == wanted),
        "acc": float(wanted in predicted),
    }


@lru_cache(maxsize=1 << 16)
def _mmoa_form(text: str) -> str:
    """What follows the last mark, lower-cased, punctuation and its look-alikes as spaces, without articles.

    It takes the marks off gold answers, too.
    """
    for mark in _MMOA_MARKS:
        text = text.rsplit(mark, 1)[-1]
    return " ".join(ARTICLES.sub(" ", text.lower().translate(_MMOA_TABLE)).split())
