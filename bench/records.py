"""One record of a data file, with its place there and getters that check what they hand out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragtrials.errors import UserError


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a data file and its place there; the getters check what they hand out.

    Attributes:
        fields: The record's values by field name.
        path: The file.
        number: Counted from 1.
        unit: What `number` counts: "record" (of a JSON array) or "line" (of JSONL and tables).
    """

    fields: Mapping[str, Any]
    path: Path
    number: int
    unit: str = "record"

    def error(self, problem: str) -> UserError:
        """The one-line error that says which record has the problem."""
        ids = (self.fields.get(name) for name in ("_id", "id", "qid"))
        shown = next((f" (id {repr(value)[:60]})" for value in ids if isinstance(value, (str, int))), "")
        return UserError(f"{self.path}: {self.unit} {self.number}{shown}: {problem}")

    def value(self, field: str) -> Any:
        """The value of a field that must be there and not null."""
        if self.fields.get(field) is None:
            raise self.error(f"field {field!r} is missing")
        return self.fields[field]

    def text(self, field: str) -> str:
        """A text that is not blank, exactly as published."""
        value = self.value(field)
        if not isinstance(value, str):
            raise self.error(f"field {field!r} must be text, not {type(value).__name__}")
        if not value.strip():
            raise self.error(f"field {field!r} is empty")
        return value

    def identifier(self, field: str) -> str:
        """An id as text; some datasets publish numbers."""
        value = self.value(field)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(field)

    def items(self, field: str, of: type | tuple[type, ...] = object) -> list[Any]:
        """A list (it may be empty) whose items are of the given type."""
        value = self.value(field)
        if not isinstance(value, list) or not all(isinstance(item, of) for item in value):
            raise self.error(f"field {field!r} has the wrong type")
        return value


def unique_ids(records: Iterable[Record], *fields: str) -> Iterator[Record]:
    """Pass records on, and refuse one whose `fields` (the first is the id) an earlier record had as well."""
    seen: dict[Hashable, int] = {}
    for record in records:
        key = (record.identifier(fields[0]), *(str(record.value(field)) for field in fields[1:]))
        if key in seen:
            raise record.error(f"repeats the {' and '.join(fields)} of {record.unit} {seen[key]}")
        seen[key] = record.number
        yield record
