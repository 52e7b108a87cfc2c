"""Metrics of one answer string against its aliases, equal to the official scripts item by item.

Where an official script has a single gold answer and the data have aliases, each value is the maximum over
the aliases, taken independently of the others: that is what the official multi-gold scripts do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ragtrials.metrics.inputs import aliases_of, text_of
from ragtrials.metrics.text import normalise, nq_open_form, triviaqa_form

CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


class Overlap(NamedTuple):
    """How many tokens a prediction and a gold answer share, as fractions of each and their harmonic mean."""

    f1: float = 0.0
    precision: float = 0.0
    recall: float = 0.0


NOTHING = Overlap()
EVERYTHING = Overlap(1.0, 1.0, 1.0)


def token_overlap(prediction: str, gold: str) -> Overlap:
    """Overlap of the token multisets of two normal forms; 0 without a common token, so for two empty ones."""
    predicted, wanted = prediction.split(), gold.split()
    if predicted == wanted:
        return EVERYTHING if predicted else NOTHING
    common = _common(predicted, wanted)
    if not common:
        return NOTHING
    precision, recall = common / len(predicted), common / len(wanted)
    return Overlap(2 * precision * recall / (precision + recall), precision, recall)


def _common(predicted: list[str], wanted: list[str]) -> int:
    """The size of the intersection of two multisets; short ones, as answers are, without counters."""
    if len(wanted) > 16:
        return sum((Counter(predicted) & Counter(wanted)).values())
    rest, common = wanted.copy(), 0
    for word in predicted:
        if word in rest:
            rest.remove(word)
            common += 1
    return common


def closed_answer_overlap(prediction: str, gold: str) -> Overlap:
    """`token_overlap` under HotpotQA's rule: part of a yes/no answer is no answer."""
    if prediction != gold and (prediction in CLOSED_ANSWERS or gold in CLOSED_ANSWERS):
        return NOTHING
    return token_overlap(prediction, gold)


def squad2_overlap(prediction: str, gold: str) -> Overlap:
    """`token_overlap` as in SQuAD v2 and MuSiQue: an empty side agrees with an empty one alone."""
    if not prediction or not gold:
        return EVERYTHING if prediction == gold else NOTHING
    return token_overlap(prediction, gold)


def best_match(
    prediction: Any,
    gold: Any,
    normal_form: Callable[[str], str] = normalise,
    overlap: Callable[[str, str], Overlap] = token_overlap,
) -> dict[str, float]:
    """em, f1, precision and recall, each its maximum over the aliases; all 0 without aliases."""
    predicted = normal_form(text_of(prediction))
    words = set(predicted.split())
    em = f1 = precision = recall = 0.0
    for form in map(normal_form, aliases_of(gold)):
        if form == predicted:
            em = 1.0
        elif words.isdisjoint(form.split()):
            continue  # most aliases end here; no rule credits them
        shared = overlap(predicted, form)
        f1, precision = max(f1, shared.f1), max(precision, shared.precision)
        recall = max(recall, shared.recall)
    return {"em": em, "f1": f1, "precision": precision, "recall": recall}


def hotpotqa(prediction: Any, gold: Any) -> dict[str, float]:
    """`hotpot_evaluate_v1.py`: em, f1, precision, recall of the answer.

    EM of two empty normal forms is 1 while their F1 is 0, as in the script. 2WikiMultihopQA's script v1.1 is
    the same with the aliases of the gold entity as golds.
    """
    return best_match(prediction, gold, overlap=closed_answer_overlap)


def squad(prediction: Any, gold: Any) -> dict[str, float]:
    """SQuAD `evaluate-v1.1.py`: em, f1, without a yes/no rule."""
    return _em_f1(best_match(prediction, gold))


def musique(prediction: Any, gold: Any) -> dict[str, float]:
    """MuSiQue `evaluate_v1.0.py`: em, f1 of the answer; F1 of two empty normal forms is 1."""
    return _em_f1(best_match(prediction, gold, overlap=squad2_overlap))


def triviaqa(prediction: Any, gold: Any) -> dict[str, float]:
    """`triviaqa_evaluation.py` v1.0: em, f1 with TriviaQA's own normal form."""
    return _em_f1(best_match(prediction, gold, triviaqa_form))


def nq_open(prediction: Any, gold: Any) -> dict[str, float]:
    """Google's NQ-open script: em."""
    predicted = nq_open_form(text_of(prediction))
    return {"em": float(any(predicted == form for form in map(nq_open_form, aliases_of(gold))))}


def curatedtrec(prediction: Any, gold: Any) -> dict[str, float]:
    """Google's NQ-open script in its regex mode, for CuratedTREC alone: some pattern matches at the start.

    A pattern that does not compile matches nothing.
    """
    predicted = text_of(prediction)
    return {"em": float(any(_matches(pattern, predicted) for pattern in aliases_of(gold)))}


def popqa(prediction: Any, gold: Any) -> dict[str, float]:
    """PopQA's `run_model.py`: acc, some alias occurs verbatim, lower-cased or capitalised.

    Nothing is normalised, so "NEW YORK" is not "New York" while "act" is found in "actor". The script scores
    the first line of what was generated; cutting it there is the generation's part, not done here.
    """
    predicted = text_of(prediction)
    spellings = ((alias, alias.lower(), alias.capitalize()) for alias in aliases_of(gold))
    return {"acc": float(any(spelling in predicted for group in spellings for spelling in group))}


def containment(prediction: Any, gold: Any) -> dict[str, float]:
    """acc: some alias's normal form is a substring of the prediction's.

    Known in the literature as accuracy, "match" or sub-EM. Unlike most code that counts it, an alias with an
    empty normal form is never found: otherwise the gold answers "The" and "A" would credit every prediction.
    """
    return {"acc": float(contained(normalise(text_of(prediction)), aliases_of(gold), guarded=True))}


def contained(text: str, aliases: Sequence[str], *, guarded: bool) -> bool:
    """Whether some alias's normal form occurs in `text`; if guarded, an empty one does not."""
    return any(form in text for form in map(normalise, aliases) if form or not guarded)


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.match(pattern, text, re.IGNORECASE | re.UNICODE | re.MULTILINE) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _em_f1(values: dict[str, float]) -> dict[str, float]:
    return {"em": values["em"], "f1": values["f1"]}
