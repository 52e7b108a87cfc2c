"""Strict readers of the files that datasets are published in.

All of them stream, read gzip-compressed files as well (recognised by content, not by name), tolerate a byte
order mark and CRLF, and answer every problem with a `UserError` of one line that names the file and the line
or record. Text that UTF-8 cannot hold (lone surrogates) is refused here, before it breaks a tokenizer later.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ragtrials.errors import UserError
from ragtrials.records import Record
from ragtrials.text_files import chunks, numbered_lines

_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = "a text holds a lone surrogate (half of an escaped character)"

_DECODER = json.JSONDecoder()


def read_json_array(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON array, record by record, in memory of one record's size."""
    window = _Window(path)
    if not window.peek():
        raise UserError(f"{path} is empty")
    window.expect("[")
    if window.peek() == "]":
        raise UserError(f"{path} holds no records")
    for number in count(1):
        yield Record(window.object(number), path, number)
        if window.peek() == "]":
            break
        window.expect(",")
    window.position += 1
    if window.peek():
        raise window.problem("there is more text after the array's closing ']'")


class JSONObject(dict[str, Any]):
    """An object that remembers which of its keys came more than once; the last value counts, as in JSON."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        times = Counter(key for key, _ in pairs) if len(self) < len(pairs) else {}
        self.repeated = [key for key, count in times.items() if count > 1]


_REPEATED_KEYS = json.JSONDecoder(object_pairs_hook=JSONObject)


def read_json_object(path: Path) -> Record:
    """The one object that a whole file is. It is held in memory: for files of some tens of megabytes."""
    window = _Window(path)
    if not window.peek():
        raise UserError(f"{path} is empty")
    record = Record(window.object(1), path, 1)
    if window.peek():
        raise window.problem("there is more text after the object's closing '}'")
    return record


def holds_json_array(path: Path) -> bool:
    """Whether a JSON file is an array; some datasets circulate both as an array and as one object."""
    return _Window(path).peek() == "["


def read_sole_object(path: Path) -> Record | None:
    """The object that a whole file is, with `JSONObject`s in it; None if more follows (JSON lines)."""
    window = _Window(path, _REPEATED_KEYS)
    record = Record(window.object(1), path, 1)
    return None if window.peek() else record


def read_jsonl(path: Path) -> Iterator[Record]:
    """The objects of a file with one JSON object a line; blank lines are skipped."""
    empty = True
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            value = json.loads(line.rstrip("\r\n"))
        except json.JSONDecodeError as error:
            raise UserError(
                f"{path}: line {number} is not JSON: {error.msg} (column {error.colno})"
            ) from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: line {number} cannot be read: {error}") from error
        if not isinstance(value, dict):
            raise UserError(f"{path}: line {number} must be a JSON object, not {type(value).__name__}")
        record = Record(value, path, number, "line")
        if _holds_lone_surrogate(line, value):
            raise record.error(_LONE_SURROGATE)
        empty = False
        yield record
    if empty:
        raise UserError(f"{path} is empty")


def read_table(path: Path, delimiter: str, columns: Sequence[str] | None = None) -> Iterator[Record]:
    """The rows of a CSV or TSV file, values as text.

    Quoting follows RFC 4180: a quoted value may hold the delimiter, line breaks, and quotes written twice.

    Args:
        path: The file.
        delimiter: "," or a tab.
        columns: The columns' names if the file has no header line.
    """
    lines = (line for _, line in numbered_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names, empty, start = columns, True, 1
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{path}: line {start}: {error}") from error
        if row is None:
            break
        if not row:
            continue
        if names is None:
            names = row
            if len(set(names)) != len(names):
                shown = " ".join(", ".join(names).split())  # a quoted name may hold line breaks
                raise UserError(f"{path}: line {start}: a column name is repeated: {shown}")
            continue
        if len(row) != len(names):
            raise UserError(f"{path}: line {start}: {len(row)} columns instead of {len(names)}")
        empty = False
        yield Record(dict(zip(names, row, strict=True)), path, start, "line")
    if empty:
        raise UserError(f"{path} is empty" if names is columns else f"{path} holds no rows below its header")


def find_data_file(data_dir: Path | None, task_name: str, split: str, suffixes: Sequence[str]) -> Path:
    """The file `<data_dir>/<task_name>/<split>.<suffix>` or the same with .gz, the first that exists.

    Raises:
        UserError: There is none; the message says where it was looked for and how to name another place.
    """
    names = [f"{task_name}/{split}.{suffix}{gz}" for suffix in suffixes for gz in ("", ".gz")]
    if data_dir is None:
        raise UserError(
            f"task {task_name} needs {names[0]} in a data folder: "
            "name the folder with --data-dir or RAGTRIALS_DATA"
        )
    for name in names:
        if (data_dir / name).is_file():
            return data_dir / name
    raise UserError(
        f"no {' or '.join(names)} in {data_dir}: put the file there, "
        "or name another folder with --data-dir or RAGTRIALS_DATA"
    )


class _Window:
    """The stretch of a JSON text around the place where it is being read."""

    def __init__(self, path: Path, decoder: json.JSONDecoder = _DECODER) -> None:
        self._decoder = decoder
        self.text = ""
        self.position = 0
        self._path = path
        self._line = 1
        self._chunks = chunks(path)

    def peek(self) -> str:
        """The next character that is not white space; "" at the end of the file."""
        while True:
            space = _SPACE.match(self.text, self.position)
            self.position = space.end() if space else self.position
            if self.position < len(self.text):
                return self.text[self.position]
            if not self._more():
                return ""

    def expect(self, mark: str) -> None:
        """Move behind `mark`, which must come next."""
        if (found := self.peek()) != mark:
            raise self.problem(
                f"{mark!r} expected, found {found!r}" if found else f"the file ends before {mark!r}"
            )
        self.position += 1

    def object(self, number: int) -> dict[str, Any]:
        """The object that must come next; the position moves behind it."""
        self.expect("{")
        self.position -= 1
        while True:
            try:
                value, end = self._decoder.raw_decode(self.text, self.position)
            except json.JSONDecodeError as error:
                if _may_be_cut(error, len(self.text)) and self._more():
                    continue
                self.position = error.pos
                cut = error.pos == len(self.text) or error.msg.startswith("Unterminated string")
                what = "the file ends inside it" if cut else error.msg
                raise self.problem(f"record {number} is not JSON: {what}") from error
            except (ValueError, RecursionError) as error:
                raise self.problem(f"record {number} cannot be read: {error}") from error
            if _holds_lone_surrogate(self.text[self.position : end], value):
                raise self.problem(f"record {number}: {_LONE_SURROGATE}")
            self.position = end
            assert isinstance(value, dict)  # it begins with a brace
            return value

    def problem(self, problem: str) -> UserError:
        """The error for the place where the reading stands."""
        line = self._line + self.text.count("\n", 0, self.position)
        return UserError(f"{self._path}: line {line}: {problem}")

    def _more(self) -> bool:
        """Drop what was read and at least double the rest, so that a long record costs linear time.

        At the end of the file nothing changes: positions in the text stay what they are.
        """
        parts, size, wanted = [self.text[self.position :]], 0, len(self.text) - self.position
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size > wanted:
                break
        if size:
            self._line += self.text.count("\n", 0, self.position)
            self.text, self.position = "".join(parts), 0
        return size > 0


def _may_be_cut(error: json.JSONDecodeError, length: int) -> bool:
    """Whether the buffer's end can be to blame; strings aside, it cuts no token 16 characters before it."""
    return error.msg.startswith("Unterminated string") or error.pos >= length - 16


def _holds_lone_surrogate(source: str, value: Any) -> bool:
    if not _SURROGATE_ESCAPE.search(source):
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
