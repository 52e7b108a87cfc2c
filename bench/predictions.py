"""Files of predictions that anybody made, in the formats that circulate.

- JSON lines or a JSON array: `id` and `prediction`; or, for datasets without ids, `question` and
  `prediction`; or MuSiQue's `id`, `predicted_answer`, `predicted_support_idxs`.
- One JSON object: predictions by id; or HotpotQA's and 2WikiMultihopQA's `answer`, `sp` and `evidence`, each
  by id.
- Parquet with the columns `id` and `prediction`, as runs store it.

The format is recognised by content, not by name. A prediction is a text, a list of texts (a question with
several answers), null (nothing was predicted), or true or false, which are read as "yes" and "no".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ragtrials.errors import UserError
from ragtrials.files import (
    JSONObject,
    read_json_array,
    read_jsonl,
    read_sole_object,
)
from ragtrials.parquet import read_columns
from ragtrials.records import Record
from ragtrials.text_files import first_bytes

Prediction: TypeAlias = "str | tuple[str, ...] | None"
"""One text, several answers, or nothing."""

_TEXT_FIELDS = ("prediction", "predicted_answer")
_SUPPORT = "predicted_support_idxs"


@dataclass(slots=True)
class Predictions:
    """What a file predicts. Where an id repeats, the last prediction counts, as in the official scripts.

    Attributes:
        path: The file.
        by_id: Predictions by question id.
        by_question: Predictions by question text; those of a repeated question in the file's order.
        parts: What a file in a dataset's own format says beside the answer: by part's name, then by id.
        repeated: The ids that came more than once.
    """

    path: Path
    by_id: dict[str, Prediction] = field(default_factory=dict)
    by_question: dict[str, list[Prediction]] = field(default_factory=dict)
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)

    def add(self, key: str, prediction: Prediction) -> None:
        """Take the prediction of one question."""
        if key in self.by_id:
            self.repeated.append(key)
        self.by_id[key] = prediction


def read_predictions(path: Path) -> Predictions:
    """Read a whole file of predictions.

    Raises:
        UserError: It cannot be read, is in none of the formats, or holds a value of the wrong type; the
            message names the line, record or id.
    """
    found = Predictions(path)
    start = first_bytes(path).removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if start.startswith(b"PAR1"):
        _take_parquet(found)
    elif start.startswith(b"["):
        _take_records(found, read_json_array(path))
    elif start.startswith(b"{") and (whole := read_sole_object(path)):
        if {"id", "question"} & whole.fields.keys() and {*_TEXT_FIELDS} & whole.fields.keys():
            _take_records(found, [whole])  # JSON lines, one of them
        else:
            _take_object(found, whole)
    else:
        _take_records(found, read_jsonl(path))
    if not found.by_id and not found.by_question:
        raise UserError(f"{path} holds no predictions")
    return found


def _take_records(found: Predictions, records: Iterable[Record]) -> None:
    for record in records:
        name = next((name for name in _TEXT_FIELDS if name in record.fields), None)
        if name is None:
            raise record.error("field 'prediction' is missing: give the predicted text, or null for none")
        value = record.fields[name]
        if problem := _problem(value):
            raise record.error(f"field {name!r} {problem}")
        if record.fields.get("id") is not None:
            key = record.identifier("id")
            found.add(key, _prediction(value))
            if (support := record.fields.get(_SUPPORT)) is not None:
                if not _is_support(support):
                    raise record.error(f"field {_SUPPORT!r} must be a list of whole numbers")
                found.parts.setdefault(_SUPPORT, {})[key] = support
        elif "question" in record.fields:
            found.by_question.setdefault(record.text("question"), []).append(_prediction(value))
        else:
            raise record.error("field 'id' is missing (or 'question', for a dataset without ids)")


def _take_object(found: Predictions, whole: Record) -> None:
    """Predictions by id, or parts of a dataset's own format, each by id."""
    fields = whole.fields
    own = isinstance(fields.get("answer"), dict)
    answers = fields["answer"] if own else fields
    assert isinstance(answers, JSONObject)  # as `read_sole_object` makes them
    _take_by_id(found, answers.items())
    found.repeated += answers.repeated
    if not own:
        return
    if unknown := [name for name in fields if name != "answer" and name not in _PARTS]:
        known = ", ".join(_PARTS)
        raise UserError(f"{found.path}: unknown part {unknown[0][:60]!r} beside 'answer'; known: {known}")
    for name, (fits, rule) in _PARTS.items():
        if name not in fields:
            continue
        if not isinstance(fields[name], dict):
            raise UserError(f"{found.path}: part {name!r} must be an object of lists by id")
        for key, value in fields[name].items():
            if not fits(value):
                raise UserError(f"{found.path}: part {name!r}, id {key[:60]!r}: must be a list of {rule}")
        found.parts[name] = fields[name]


def _take_parquet(found: Predictions) -> None:
    import polars

    frame = read_columns(found.path, ["id", "prediction"], "make it again")
    ids = frame["id"].cast(polars.String) if frame["id"].dtype.is_integer() else frame["id"]
    if ids.dtype != polars.String or ids.null_count():
        raise UserError(f"{found.path}: the column 'id' must hold texts or whole numbers, and no null")
    _take_by_id(found, zip(ids.to_list(), frame["prediction"].to_list(), strict=True))


def _take_by_id(found: Predictions, items: Iterable[tuple[str, Any]]) -> None:
    for key, value in items:
        if problem := _problem(value):
            raise UserError(f"{found.path}: id {key[:60]!r}: the prediction {problem}")
        found.add(key, _prediction(value))


def _problem(value: Any) -> str:
    """What is wrong with a predicted value; "" if nothing is."""
    if value is None or isinstance(value, (str, bool)):
        return ""
    if isinstance(value, list) and all(isinstance(answer, str) for answer in value):
        return ""
    return f"must be a text, a list of texts or null, not {type(value).__name__}"


def _prediction(value: Any) -> Prediction:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return tuple(value) if isinstance(value, list) else value


def _is_support(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int for item in value)


def _are_facts(value: Any) -> bool:
    return _are_rows(value, (str, int))


def _are_triples(value: Any) -> bool:
    return _are_rows(value, (str, str, str))


def _are_rows(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list) and tuple(map(type, row)) == kinds for row in value
    )


_PARTS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "sp": (_are_facts, "pairs of a title and a sentence number"),
    "evidence": (_are_triples, "triples of texts"),
}
