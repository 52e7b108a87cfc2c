"""The layout of HotpotQA that 2WikiMultihopQA shares: pairs of titles and sentences or sentence numbers."""

from __future__ import annotations

from typing import Any

from ragtrials.data import Passage, passage_id
from ragtrials.records import Record


def facts(record: Record) -> list[list[Any]]:
    """The supporting facts: pairs of a title and the number of a sentence, as published."""
    return _pairs(record, "supporting_facts", int)


def paragraphs(record: Record, between: str) -> list[Passage]:
    """The paragraphs of the context, with ids made from their content.

    Args:
        record: A published record.
        between: What stands between two sentences; "" if sentences bring their own leading space.
    """
    texts = [(title, between.join(found).strip()) for title, found in _pairs(record, "context", list)]
    return [Passage(passage_id(title, text), title, text) for title, text in texts]


def gold_paragraphs(record: Record, between: str) -> tuple[str, ...]:
    """Ids of the paragraphs whose titles the supporting facts name."""
    titles = {title for title, _ in facts(record)}
    return tuple(dict.fromkeys(p.id for p in paragraphs(record, between) if p.title in titles))


def original_layout(row: Record) -> dict[str, Any]:
    """The hub's layout, which has columns where the published file has pairs, turned back."""
    found, context = row.value("supporting_facts"), row.value("context")
    return {
        **{field: row.fields.get(field) for field in ("question", "answer", "type", "level")},
        "_id": row.fields.get("id"),
        "supporting_facts": [list(pair) for pair in zip(found["title"], found["sent_id"], strict=True)],
        "context": [list(pair) for pair in zip(context["title"], context["sentences"], strict=True)],
    }


def _pairs(record: Record, field: str, second: type[Any]) -> list[list[Any]]:
    """A field of [title, x] pairs, where x is a sentence number or a list of sentences."""
    pairs = record.items(field, list)
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], second):
            raise record.error(f"field {field!r} must hold pairs of a title and {second.__name__}")
        if second is list and not all(isinstance(sentence, str) for sentence in pair[1]):
            raise record.error(f"field {field!r} holds a sentence that is not text")
    return pairs
