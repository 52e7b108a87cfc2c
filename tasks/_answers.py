"""Gold answers as datasets publish them: one text, a list, or a list inside a text."""

from __future__ import annotations

import ast
import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragtrials.data import Example
from ragtrials.records import Record


def texts_of(record: Record, field: str, value: Any) -> list[str]:
    """Answers as a list of texts; one text is one answer, never its letters.

    Args:
        record: Where the value comes from.
        field: The name of its field, for the error.
        value: What was published.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise record.error(f"field {field!r} must hold a text or a list of texts")
    return texts


def json_texts(record: Record, field: str) -> list[str]:
    """The list of texts that a field holds as JSON inside a text."""
    try:
        value = json.loads(record.text(field))
    except (ValueError, RecursionError) as error:
        raise record.error(f"field {field!r} is no JSON list: {error}") from error
    return _encodable(record, field, value)


def python_texts(record: Record, field: str) -> list[str]:
    """The list of texts that a field holds as a Python literal inside a text; nothing is evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python deprecates; they are taken as they stand
            value = ast.literal_eval(record.text(field))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise record.error(f"field {field!r} is no Python list of texts: {reason[:100]}") from error
    return _encodable(record, field, value)


def aliases(record: Record, field: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The answers without blank ones (an empty prediction would match them), each once, in order."""
    found = tuple(dict.fromkeys(text for text in texts if text.strip()))
    if not found:
        raise record.error(f"field {field!r} holds no answer")
    return found


def blanks(texts: Sequence[str]) -> dict[str, int]:
    """For `meta`: how many blank answers were dropped, {} if none."""
    count = sum(not text.strip() for text in texts)
    return {"blank_answers": count} if count else {}


def example(
    record: Record,
    key: str,
    field: str,
    texts: Sequence[str],
    *,
    supporting: tuple[str, ...] = (),
    meta: Mapping[str, Any] | None = None,
) -> Example:
    """The example of a record that has one answer.

    Args:
        record: Its `question` is asked.
        key: The example's id.
        field: The field that the answer comes from, for the error.
        texts: The answer's aliases as published. Blank ones are dropped and counted in `meta`.
        supporting: Ids of the gold passages.
        meta: What else the record says.
    """
    return Example(
        id=key,
        question=record.text("question"),
        answers=(aliases(record, field, texts),),
        supporting=supporting,
        meta={**(meta or {}), **blanks(texts)},
    )


def named_by_question(records: Iterable[Record], field: str) -> Iterator[tuple[str, Record]]:
    """Records of a dataset without ids, each with one made from its question (16 hex digits).

    It survives any change of file or order. A repeated question gets "-2", "-3", ... behind it.
    """
    seen: Counter[str] = Counter()
    for record in records:
        key = hashlib.sha256(record.text(field).encode()).hexdigest()[:16]
        seen[key] += 1
        yield (key if seen[key] == 1 else f"{key}-{seen[key]}"), record


def _encodable(record: Record, field: str, value: Any) -> list[str]:
    texts = texts_of(record, field, value)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise record.error(
            f"field {field!r} holds a lone surrogate (half of an escaped character)"
        ) from error
    return texts
