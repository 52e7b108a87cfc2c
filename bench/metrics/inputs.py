"""What may be handed to a metric, read in one way by all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ragtrials.errors import UserError
from ragtrials.metrics.text import normalise, triviaqa_form


def text_of(prediction: Any) -> str:
    """The predicted text; None (nothing was predicted) is the empty text.

    Raises:
        UserError: The prediction is neither text nor None.
    """
    if isinstance(prediction, str):
        return prediction
    if prediction is None:
        return ""
    raise UserError(f"a prediction must be text, not {type(prediction).__name__}: {_shown(prediction)}")


def aliases_of(gold: Any) -> tuple[str, ...]:
    """The acceptable strings. One plain string is one alias, never a sequence of characters.

    Raises:
        UserError: The gold is not text or a list of texts.
    """
    if isinstance(gold, str):
        return (gold,)
    aliases = _items(gold, "a gold answer must be text or a list of texts")
    if not all(isinstance(alias, str) for alias in aliases):
        raise UserError(f"a gold alias must be text: {_shown(gold)}")
    return aliases


def answer_list(prediction: Any) -> tuple[str, ...]:
    """The predicted answers of a question with several; None is no answer, one string is one answer.

    Raises:
        UserError: The prediction is not a list of texts.
    """
    if prediction is None:
        return ()
    if isinstance(prediction, str):
        return (prediction,)
    answers = _items(prediction, "a prediction of several answers must be a list of texts")
    if not all(isinstance(answer, str) for answer in answers):
        raise UserError(f"a predicted answer must be text: {_shown(prediction)}")
    return answers


def slots_of(gold: Any) -> tuple[tuple[str, ...], ...]:
    """The alias lists of a gold with several slots.

    Raises:
        UserError: The gold is not a list of alias lists.
    """
    return tuple(aliases_of(slot) for slot in _items(gold, "a gold with slots must be a list of alias lists"))


def annotations_of(gold: Any) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The slots of each annotation of a gold that several people annotated.

    Raises:
        UserError: The gold is not a list of lists of alias lists.
    """
    return tuple(slots_of(annotation) for annotation in _items(gold, "a gold must be a list of annotations"))


def flags(prediction: Any, aliases: Any) -> tuple[str, ...]:
    """What a reader of this item's scores should know.

    "empty_pred": nothing but white space was predicted. "degenerate_gold": there is no alias, or one has
    an empty normal form ("The", "..."; for TriviaQA "A'a"), so that official exact match and containment
    mean little.
    """
    found = []
    if not text_of(prediction).strip():
        found.append("empty_pred")
    golds = aliases_of(aliases)
    if not golds or not all(normalise(alias) and triviaqa_form(alias) for alias in golds):
        found.append("degenerate_gold")
    return tuple(found)


def count_flags(rows: Iterable[str]) -> dict[str, int]:
    """How many rows have each flag, by name; a row's flags are joined by commas."""
    found: Counter[str] = Counter()
    for flags, count in Counter(rows).items():
        found.update(dict.fromkeys(filter(None, flags.split(",")), count))
    return dict(sorted(found.items()))


def closed(aliases: Iterable[str]) -> bool:
    """Whether a question is answered by yes or no alone: words that every passage "holds"."""
    return {normalise(alias) for alias in aliases} <= {"yes", "no"}


def _items(value: Any, rule: str) -> tuple[Any, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(value)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise UserError(f"{rule}, not {type(value).__name__}: {_shown(value)}")
    return tuple(value)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
