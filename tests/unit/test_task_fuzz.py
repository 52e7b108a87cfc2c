"""Whatever stands in a dataset's files, reading ends in sound examples or in one line that names the file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, POOLED, put, write_split
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.registry import TASKS

every_task = pytest.mark.parametrize("name", sorted(LAYOUTS))
AS_JSON = [name for name in sorted(LAYOUTS) if LAYOUTS[name].suffix != "tsv"]
AS_TABLE = sorted(set(LAYOUTS) - set(AS_JSON))
WITH_IDS = [name for name in sorted(LAYOUTS) if LAYOUTS[name].key]

ABSENT = object()
TEXT = st.text(st.characters(), max_size=5) | st.sampled_from(
    ["\ud800", "a\udfff", "\x00", "\ufeff", "a\r\nb"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=8,
)
quickly = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def split_file(name: str) -> str:
    return f"{name}/{LAYOUTS[name].reported}.{LAYOUTS[name].suffix}"


def content(name: str, records: int = 3) -> bytes:
    """A sound file, with a letter beyond ASCII in each question."""
    layout = LAYOUTS[name]
    made_up = [layout.record(n) for n in range(records)]
    for record in made_up:
        record[layout.question] += " — é?"
    return layout.write(made_up).replace("\\u2014", "—").replace("\\u00e9", "é").encode()


def ends_well(name: str, folder: Path, records: int | None = None) -> None:
    """Reading ends in sound examples and passages, or in one line that names the file.

    If `records` says how many the file has, each gives an example or is left out with a reason.
    """
    task, layout = TASKS.load(name)(folder), LAYOUTS[name]
    try:
        examples = task.examples(layout.reported)
        left_out = task.left_out(layout.reported)
        passages = {passage.id for passage in task.corpus()} if name in POOLED else set()
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert split_file(name) in str(error)  # noqa: PT017
        return
    assert records is None or len(examples) + len(left_out) == records
    for example in examples:
        assert example.question.strip()
        assert all(group and all(alias.strip() for alias in group) for group in example.answers)
        assert passages.issuperset(example.supporting) or name == "strategyqa"
        assert all(0.0 <= value <= 1.0 for value in task.score(example.target, example).values())
        json.dumps(example.meta, ensure_ascii=False).encode()


@every_task
def test_the_sound_file_is_sound(name: str, tmp_path: Path) -> None:
    put(tmp_path, split_file(name), content(name))
    found = TASKS.load(name)(tmp_path).examples(LAYOUTS[name].reported)
    assert [example.question[-5:] for example in found] == [" — é?"] * 3


@pytest.mark.parametrize("name", AS_JSON)
@given(data=st.data())
@quickly
def test_any_value_in_any_field_ends_well(name: str, data: st.DataObject, tmp_path: Path) -> None:
    record = LAYOUTS[name].record(0)
    values = JSON | st.just(ABSENT)
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(record)), values, min_size=1, max_size=2))
    changed = {field: value for field, value in {**record, **changes}.items() if value is not ABSENT}
    write_split(tmp_path, name, LAYOUTS[name].reported, [changed])
    ends_well(name, tmp_path, records=1)


@pytest.mark.parametrize("name", AS_TABLE)
@given(data=st.data())
@quickly
def test_any_text_in_any_cell_ends_well(name: str, data: st.DataObject, tmp_path: Path) -> None:
    record = LAYOUTS[name].record(0)
    text = st.text(max_size=12) | st.text("[]'\",\\ud8{}()1 \r\n\x00\ufeff", max_size=12)
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(record)), text, min_size=1, max_size=2))
    write_split(tmp_path, name, LAYOUTS[name].reported, [{**record, **changes}])
    ends_well(name, tmp_path, records=1)


@every_task
@given(raw=st.binary(max_size=40) | st.text('[]{}",:\\\n\t\r 1a', max_size=40).map(str.encode))
@quickly
def test_any_bytes_end_well(name: str, raw: bytes, tmp_path: Path) -> None:
    put(tmp_path, split_file(name), raw)
    ends_well(name, tmp_path)


@every_task
@given(data=st.data(), packed=st.booleans())
@quickly
def test_a_sound_file_with_a_damaged_stretch_ends_well(
    name: str, data: st.DataObject, packed: bool, tmp_path: Path
) -> None:
    raw = gzip.compress(content(name)) if packed else content(name)
    start = data.draw(st.integers(0, len(raw) - 1))
    length = data.draw(st.integers(0, 8) | st.just(len(raw)))  # the whole rest: it is cut
    instead = data.draw(
        st.binary(max_size=4) | st.sampled_from([b"\xff\xfe", b"\x00", b"null", b"\r\n", b'"'])
    )
    put(tmp_path, split_file(name), raw[:start] + instead + raw[start + length :])
    ends_well(name, tmp_path)


@every_task
def test_a_gzip_file_that_ends_anywhere_before_its_end_is_named(name: str, tmp_path: Path) -> None:
    packed = gzip.compress(content(name), mtime=0)
    for size in range(2, len(packed), 11):
        put(tmp_path, split_file(name), packed[:size])
        with pytest.raises(UserError, match=r"^[^\n]*truncated gzip file: fetch it again$"):
            TASKS.load(name)(tmp_path).examples(LAYOUTS[name].reported)


@every_task
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_in_another_encoding_is_named_with_the_byte(name: str, encoding: str, tmp_path: Path) -> None:
    put(tmp_path, split_file(name), content(name).decode().replace("—", "-").encode(encoding))
    with pytest.raises(UserError, match=rf"^[^\n]*{split_file(name)}[^\n]*$"):
        TASKS.load(name)(tmp_path).examples(LAYOUTS[name].reported)


@every_task
def test_a_record_in_another_encoding_than_the_others_is_named(name: str, tmp_path: Path) -> None:
    first, _, rest = content(name).rpartition("é".encode())
    put(tmp_path, split_file(name), first + "é".encode("latin-1") + rest)
    with pytest.raises(UserError, match=r"^[^\n]*byte \d+ is not UTF-8[^\n]*$"):
        TASKS.load(name)(tmp_path).examples(LAYOUTS[name].reported)


@pytest.mark.parametrize("name", AS_JSON)
def test_a_lone_surrogate_is_refused(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    write_split(tmp_path, name, layout.reported, [{**layout.record(0), layout.question: "half \ud83d?"}])
    with pytest.raises(UserError, match=r"^[^\n]*a text holds a lone surrogate[^\n]*$"):
        TASKS.load(name)(tmp_path).examples(layout.reported)


@pytest.mark.parametrize("name", AS_JSON)
def test_a_huge_text_is_read_whole(name: str, tmp_path: Path) -> None:
    layout, huge = LAYOUTS[name], "Why? " * 600_000 + "é?"
    write_split(tmp_path, name, layout.reported, [{**layout.record(0), layout.question: huge}])
    [example] = TASKS.load(name)(tmp_path).examples(layout.reported)
    assert example.question == huge


@pytest.mark.parametrize("name", AS_TABLE)
def test_a_huge_cell_is_named(name: str, tmp_path: Path) -> None:
    layout, huge = LAYOUTS[name], "Why? " * 100_000
    write_split(tmp_path, name, layout.reported, [layout.record(0), {**layout.record(1), "question": huge}])
    with pytest.raises(UserError, match=r"^[^\n]*line \d: field larger than field limit[^\n]*$"):
        TASKS.load(name)(tmp_path).examples(layout.reported)


ODD_IDS: list[Any] = [ABSENT, None, "", " ", True, 1.5, ["q1"], {"id": "q1"}]


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in WITH_IDS if name in AS_JSON for value in ODD_IDS]
)
def test_a_missing_or_odd_id_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    record = {**layout.record(0), str(layout.key): value}
    write_split(tmp_path, name, layout.reported, [{k: v for k, v in record.items() if v is not ABSENT}])
    with pytest.raises(UserError, match=rf"^[^\n]*field '{layout.key}' [^\n]*$"):
        TASKS.load(name)(tmp_path).examples(layout.reported)


@pytest.mark.parametrize(
    ("changes", "said"), [({"id": " "}, "is empty"), ({"id": ABSENT}, "is missing"), ({"id": ""}, "is empty")]
)
def test_a_missing_id_in_a_table_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    record = {**LAYOUTS["popqa"].record(0), **changes}
    write_split(tmp_path, "popqa", "test", [{k: v for k, v in record.items() if v is not ABSENT}])
    with pytest.raises(UserError, match=rf"^[^\n]*field 'id' {said}$"):
        TASKS.load("popqa")(tmp_path).examples("test")
