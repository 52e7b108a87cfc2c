"""Files of predictions in every format that circulates, and what is wrong with those that cannot be read."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.predictions import Predictions, read_predictions


def write(tmp_path: Path, content: Any) -> Path:
    """A file of this text or these bytes, or of this value as JSON."""
    path = tmp_path / "predictions"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def read(tmp_path: Path, content: Any) -> Predictions:
    return read_predictions(write(tmp_path, content))


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def parquet(**columns: Any) -> bytes:
    buffer = io.BytesIO()
    polars.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def refusal(tmp_path: Path, content: Any) -> str:
    with pytest.raises(UserError) as caught:
        read(tmp_path, content)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(tmp_path / "predictions"))


ITEMS = [{"id": "a", "prediction": "Paris"}, {"id": 7, "prediction": None}]


@pytest.mark.parametrize(
    "content",
    [
        lines(*ITEMS),
        json.dumps(ITEMS),
        json.dumps(ITEMS, indent=1),
        {"a": "Paris", "7": None},
        json.dumps({"a": "Paris", "7": None}, indent=1),
        {"answer": {"a": "Paris", "7": None}},
        parquet(id=["a", "7"], prediction=["Paris", None]),
        "\ufeff" + lines(*ITEMS).replace("\n", "\r\n\n"),
        gzip.compress(lines(*ITEMS).encode(), mtime=0),
    ],
    ids=["lines", "array", "indented", "by id", "by id, indented", "answer", "parquet", "BOM, CRLF", "gz"],
)
def test_one_content_in_every_format(tmp_path: Path, content: Any) -> None:
    found = read(tmp_path, content)
    assert found.by_id == {"a": "Paris", "7": None}
    assert (found.repeated, found.parts, found.by_question) == ([], {}, {})


def test_values_that_are_no_text(tmp_path: Path) -> None:
    found = read(tmp_path, {"t": True, "f": False, "list": ["x", "y"], "none": []})
    assert found.by_id == {"t": "yes", "f": "no", "list": ("x", "y"), "none": ()}
    table = parquet(id=[1, 2], prediction=[["x", "y"], ["z"]])
    assert read(tmp_path, table).by_id == {"1": ("x", "y"), "2": ("z",)}


def test_one_line_is_json_lines_although_it_is_one_object(tmp_path: Path) -> None:
    assert read(tmp_path, {"id": "a", "prediction": "x"}).by_id == {"a": "x"}
    assert read(tmp_path, {"question": "who", "prediction": "x"}).by_question == {"who": ["x"]}
    # without a prediction beside it, "id" is an id like any other
    assert read(tmp_path, {"id": "x", "question": "y"}).by_id == {"id": "x", "question": "y"}


def test_questions_stand_for_ids(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        lines(
            {"question": "who", "prediction": "x"},
            {"question": "who", "prediction": "y"},
            {"id": None, "question": "when", "prediction": ""},
        ),
    )
    assert found.by_question == {"who": ["x", "y"], "when": [""]}
    assert found.by_id == {}


@pytest.mark.parametrize(
    "content",
    [
        lines({"id": "a", "prediction": "1"}, {"id": "b", "prediction": "2"}, {"id": "a", "prediction": "3"}),
        '{"a": "1", "b": "2", "a": "3"}',
        '{"answer": {"a": "1", "b": "2", "a": "3"}}',
        parquet(id=["a", "b", "a"], prediction=["1", "2", "3"]),
    ],
    ids=["lines", "by id", "answer", "parquet"],
)
def test_of_repeated_ids_the_last_prediction_counts(tmp_path: Path, content: Any) -> None:
    found = read(tmp_path, content)
    assert found.by_id == {"a": "3", "b": "2"}
    assert found.repeated == ["a"]


def test_multi_hop_parts(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"answer": {"a": "x"}, "sp": {"a": [["T", 0]], "b": []}, "evidence": {"a": [["s", "r", "o"]]}},
    )
    assert found.by_id == {"a": "x"}
    assert found.parts == {"sp": {"a": [["T", 0]], "b": []}, "evidence": {"a": [["s", "r", "o"]]}}


def test_musique_lines(tmp_path: Path) -> None:
    content = lines(
        {"id": "m", "predicted_answer": "x", "predicted_support_idxs": [3, 1], "predicted_answerable": True},
        {"id": "n", "predicted_answer": "y"},
    )
    found = read(tmp_path, content)
    assert found.by_id == {"m": "x", "n": "y"}
    assert found.parts == {"predicted_support_idxs": {"m": [3, 1]}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", " is empty"),
        ("{}", " holds no predictions"),
        ("[]", " holds no records"),
        (lines(*ITEMS) + '{"id": "c"}', ": line 3 (id 'c'): field 'prediction' is missing"),
        (lines(*ITEMS) + "{", ": line 3 is not JSON"),
        (lines(*ITEMS) + '{"prediction": "x"}', ": line 3: field 'id' is missing"),
        (lines(*ITEMS) + '{"id": [], "prediction": "x"}', ": line 3: field 'id' must be text, not list"),
        (
            lines({"id": "a", "prediction": 3}, *ITEMS),
            "field 'prediction' must be a text, a list of texts or",
        ),
        (lines({"id": "a", "prediction": ["x", 3]}, *ITEMS), "must be a text, a list of texts or null"),
        (lines({"id": "a", "predicted_answer": "x", "predicted_support_idxs": [True]}), "whole numbers"),
        ({"a": 3}, ": id 'a': the prediction must be a text, a list of texts or null, not int"),
        (
            {"a": {"b": "c"}},
            ": id 'a': the prediction must be a text, a list of texts or null, not JSONObject",
        ),
        ({"answer": {}, "facts": {}}, ": unknown part 'facts' beside 'answer'; known: sp, evidence"),
        ({"answer": {"a": "x"}, "sp": []}, ": part 'sp' must be an object of lists by id"),
        (
            {"answer": {"a": "x"}, "sp": {"a": [["T", "0"]]}},
            "must be a list of pairs of a title and a sentence",
        ),
        ({"answer": {"a": "x"}, "sp": {"a": [["T", True]]}}, "must be a list of pairs"),
        (
            {"answer": {"a": "x"}, "evidence": {"a": [["s", "r"]]}},
            "part 'evidence', id 'a': must be a list of tri",
        ),
        (b"PAR1 and then something else", ": cannot be read ("),
        (parquet(id=["a"], answer=["x"]), " lacks one of the columns id, prediction"),
        (parquet(id=["a", None], prediction=["x", "y"]), "the column 'id' must hold texts or whole numbers"),
        (parquet(id=["a"], prediction=[1.5]), ": id 'a': the prediction must be a text"),
        (gzip.compress(lines(*ITEMS).encode(), mtime=0)[:-9], " is a truncated gzip file"),
        (b'{"a": "\xff"}', " is not UTF-8"),
        ('{"a": "\\ud800"}', "lone surrogate"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: Any, message: str) -> None:
    assert message in refusal(tmp_path, content)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        read_predictions(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="cannot read"):
        read_predictions(tmp_path)


KEYS = st.sampled_from(
    ["id", "question", "prediction", "answer", "sp", "evidence", "predicted_answer", "predicted_support_idxs"]
) | st.text(max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_or_refuse(tmp_path: Path, content: bytes) -> None:
    """Either predictions of the promised types, or one line."""
    path = write(tmp_path, content)
    try:
        found = read_predictions(path)
    except UserError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert "\n" not in message
        return
    assert found.by_id or found.by_question
    for value in [*found.by_id.values(), *(each for many in found.by_question.values() for each in many)]:
        texts = value if isinstance(value, tuple) else (value or "",)
        assert all(isinstance(text, str) and text.encode() is not None for text in texts)


@QUIET
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    read_or_refuse(tmp_path, content)
    read_or_refuse(tmp_path, b"PAR1" + content + b"PAR1")
    read_or_refuse(tmp_path, b"\x1f\x8b" + content)


@QUIET
@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4) | JSON, min_size=1, max_size=4), st.booleans())
def test_any_json(tmp_path: Path, values: list[Any], bom: bool) -> None:
    start = b"\xef\xbb\xbf" if bom else b""
    for text in (lines(*values), json.dumps(values), json.dumps(values[0], indent=1)):
        read_or_refuse(tmp_path, start + text.encode())


@QUIET
@given(st.data())
def test_a_damaged_copy_of_a_good_file(tmp_path: Path, data: st.DataObject) -> None:
    good = data.draw(
        st.sampled_from(
            [
                lines(*ITEMS).encode(),
                json.dumps({"answer": {"a": "x"}, "sp": {"a": [["T", 0]]}}).encode(),
                parquet(id=["a", "7"], prediction=["Paris", None]),
                gzip.compress(lines(*ITEMS).encode(), mtime=0),
            ]
        )
    )
    cut = data.draw(st.integers(0, len(good)))
    junk = data.draw(st.binary(max_size=4))
    read_or_refuse(tmp_path, good[:cut] + junk + good[cut + data.draw(st.integers(0, 3)) :])
