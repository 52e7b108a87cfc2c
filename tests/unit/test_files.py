from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrials import text_files
from ragtrials.errors import UserError
from ragtrials.files import find_data_file, read_json_array, read_jsonl, read_table
from ragtrials.records import Record, unique_ids

RECORDS = [
    {"id": "a", "text": 'x\u2028y]}\\"'},
    {"id": "b", "text": "é😀", "deep": [{"n": [1, -2.5e-3, None, True]}]},
]
ARRAY = json.dumps(RECORDS, ensure_ascii=False).encode()
LINES = b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in RECORDS)
Reader = Callable[[Path], Iterator[Record]]


def tsv(path: Path) -> Iterator[Record]:
    return read_table(path, "\t")


READERS: list[tuple[Reader, bytes]] = [
    (read_json_array, ARRAY),
    (read_jsonl, LINES),
    (tsv, b"id\ttext\na\tx\n"),
]


def fields(records: Iterable[Record]) -> list[dict[str, Any]]:
    return [dict(record.fields) for record in records]


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "data.file"
    path.write_bytes(content)
    return path


def problem(reader: Reader, path: Path) -> str:
    with pytest.raises(UserError) as caught:
        list(reader(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_records_are_read_as_written(
    tmp_path: Path, pack: Callable[[bytes], bytes], bom: bytes, newline: bytes
) -> None:
    array = json.dumps(RECORDS, indent=1).encode().replace(b"\n", newline)
    assert fields(read_json_array(written(tmp_path, pack(bom + array)))) == RECORDS
    lines = LINES.replace(b"\n", newline) + newline
    assert fields(read_jsonl(written(tmp_path, pack(bom + lines)))) == RECORDS
    rows = newline.join([b"id\ttext", b"a\tx", b""])
    assert fields(tsv(written(tmp_path, pack(bom + rows)))) == [{"id": "a", "text": "x"}]


@pytest.mark.parametrize("size", range(1, 40))
def test_an_array_reads_the_same_wherever_its_chunks_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", size)
    text = json.dumps([*RECORDS, {"e": "\ud83d\ude00 \\ \u00e9", "t": True, "n": -1.25e-10}] * 2)
    assert fields(read_json_array(written(tmp_path, text.encode()))) == json.loads(text)


def test_an_array_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("w") as file:
        file.write("[" + ",".join(json.dumps({"id": str(n), "text": "x" * 5000}) for n in range(8000)) + "]")
    assert path.stat().st_size > 40_000_000
    tracemalloc.start()
    assert sum(1 for _ in read_json_array(path)) == 8000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(("reader", "content"), READERS)
def test_missing_and_unreadable_files(tmp_path: Path, reader: Reader, content: bytes) -> None:
    assert "does not exist" in problem(reader, tmp_path / "absent.json")
    assert "cannot read" in problem(reader, tmp_path)


@pytest.mark.parametrize(("reader", "content"), READERS)
def test_empty_files(tmp_path: Path, reader: Reader, content: bytes) -> None:
    assert "is empty" in problem(reader, written(tmp_path, b""))
    assert "is empty" in problem(reader, written(tmp_path, gzip.compress(b"")))
    assert "is empty" in problem(reader, written(tmp_path, b"\xef\xbb\xbf"))
    assert "is empty" in problem(reader, written(tmp_path, b"\n\n"))


@pytest.mark.parametrize(("reader", "content"), READERS)
def test_damaged_gzip(tmp_path: Path, reader: Reader, content: bytes) -> None:
    packed = gzip.compress(content)
    assert "truncated gzip" in problem(reader, written(tmp_path, packed[:-9]))
    assert "damaged gzip" in problem(reader, written(tmp_path, packed[:-8] + b"\0" * 8))
    assert "damaged gzip" in problem(reader, written(tmp_path, packed[:10] + b"\xff" * 20))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"id": "a"}', "line 1: '[' expected, found '{'"),
        (b"[]", "holds no records"),
        (b'[\n{"id": 1},\n{"id": }]', "line 3: record 2 is not JSON: Expecting value"),
        (b'[\n{"id": 1}\n{"id": 2}]', "line 3: ',' expected, found '{'"),
        (b'[{"id": 1},\n7]', "line 2: '{' expected, found '7'"),
        (b'[{"id": 1},\n', "line 2: the file ends before '{'"),
        (b'[{"id": 1}\n', "line 2: the file ends before ','"),
        (b'[{"id": 1},\n{"id": "2', "line 2: record 2 is not JSON: the file ends inside it"),
        (b'[{"id": 1}] x', "more text after"),
        (b'[{"id": "\xff"}]', "byte 9 is not UTF-8"),
        (b'[{"id": "\xed\xa0\x80"}]', "byte 9 is not UTF-8"),
        (b'[{"id": "\\ud800"}]', "record 1: a text holds a lone surrogate"),
        (b'[{"id": ' + b"[" * 100_000, "record 1 cannot be read"),
        (b'[{"id": ' + b"9" * 5000 + b"}]", "record 1 cannot be read"),
    ],
)
def test_damaged_arrays(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in problem(read_json_array, written(tmp_path, content))


def test_a_bad_byte_is_counted_from_the_start_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_CHUNK", 3)
    assert "byte 12 is not" in problem(read_json_array, written(tmp_path, '[{"i": "éé'.encode() + b'\xe2"}]'))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"id": 1}\n{"id": \n', "line 2 is not JSON: Expecting value (column 8)"),
        (b'\n\n{"id": "2', "line 3 is not JSON: Unterminated string"),
        (b'{"id": 1}\n[1]\n', "line 2 must be a JSON object, not list"),
        (b'{"id": 1}\n{"id": "\xff"}\n', "line 2: byte 8 is not UTF-8"),
        (b'{"id": 1}\n{"id": "\\ud800"}', "line 2 (id '\\ud800'): a text holds a lone surrogate"),
        (b'{"id": 1}\n' + b"[" * 100_000, "line 2 cannot be read"),
    ],
)
def test_damaged_lines(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in problem(read_jsonl, written(tmp_path, content))


def test_surrogate_pairs_are_one_character(tmp_path: Path) -> None:  # P34
    assert fields(read_jsonl(written(tmp_path, b'{"flag": "\\ud83d\\ude00"}'))) == [{"flag": "😀"}]


def test_a_quoted_value_may_hold_anything(tmp_path: Path) -> None:  # P43, P44
    rows = 'id\ttext\ttitle\n1\t"a\tb\n""c"""\tEvan "x"\n\n2\t\t"""Evan"""\r\n'
    assert fields(tsv(written(tmp_path, rows.encode()))) == [
        {"id": "1", "text": 'a\tb\n"c"', "title": 'Evan "x"'},
        {"id": "2", "text": "", "title": '"Evan"'},
    ]


def test_a_table_without_header(tmp_path: Path) -> None:
    records = list(read_table(written(tmp_path, b'q,"a,b"\nr,c\n'), ",", ("question", "answer")))
    assert fields(records) == [{"question": "q", "answer": "a,b"}, {"question": "r", "answer": "c"}]
    assert [record.number for record in records] == [1, 2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"id\ttext\na\tb\nc\n", "line 3: 1 columns instead of 2"),
        (b"id\tid\n", "line 1: a column name is repeated"),
        (b"id\ttext\n", "holds no rows"),
        (b'id\ttext\na\t"b\nc\td\n', "line 2: unexpected end of data"),
        (b'id\ttext\na\t"b"c\n', "line 2: "),
        (b"id\ttext\na\t" + b"b" * 200_000, "line 2: field larger than field limit"),
        (b"id\ttext\na\t\xff\n", "line 2: byte 2 is not UTF-8"),
    ],
)
def test_damaged_tables(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in problem(tsv, written(tmp_path, content))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "field 'question' is missing"),
        ({"question": None}, "field 'question' is missing"),
        ({"question": 3}, "field 'question' must be text, not int"),
        ({"question": ["q"]}, "field 'question' must be text, not list"),
        ({"question": " \n"}, "field 'question' is empty"),
    ],
)
def test_a_text_field_is_checked(value: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=rf"^dev.json: record 7 \(id 'x'\): {said}$"):
        Record({"_id": "x", **value}, Path("dev.json"), 7).text("question")


def test_texts_come_as_published() -> None:  # P42
    assert Record({"q": " a \n"}, Path("f"), 1).text("q") == " a \n"


def test_identifiers_may_be_numbers_but_not_truth_values() -> None:
    record = Record({"n": 5, "t": "x", "b": True}, Path("f"), 1)
    assert (record.identifier("n"), record.identifier("t")) == ("5", "x")
    with pytest.raises(UserError, match="'b' must be text, not bool"):
        record.identifier("b")


def test_lists_are_checked_with_their_items() -> None:
    record = Record({"good": ["a"], "none": [], "bad": ["a", 1], "text": "a"}, Path("f"), 1)
    assert (record.items("good", str), record.items("none", str)) == (["a"], [])
    for field in ("bad", "text", "absent"):
        with pytest.raises(UserError, match=f"field '{field}'"):
            record.items(field, str)


def test_duplicate_ids_are_named() -> None:  # P37
    records = [Record({"id": key}, Path("f"), n) for n, key in enumerate(["a", "b", "a"], start=1)]
    with pytest.raises(UserError, match=r"^f: record 3 \(id 'a'\): repeats the id of record 1"):
        list(unique_ids(records, "id"))
    assert len(list(unique_ids(records[:2], "id"))) == 2


def test_an_id_may_need_a_second_field() -> None:  # P40
    twins = [Record({"id": "a", "answerable": flag}, Path("f"), 1) for flag in (True, False)]
    assert len(list(unique_ids(twins, "id", "answerable"))) == 2
    with pytest.raises(UserError, match="repeats the id and answerable of record 1"):
        list(unique_ids([*twins, twins[0]], "id", "answerable"))


def test_data_files_are_found_or_their_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs t/dev\.json .* --data-dir or RAGTRIALS_DATA"):
        find_data_file(None, "t", "dev", ["json"])
    with pytest.raises(
        UserError, match=r"no t/dev\.json or t/dev\.json\.gz or t/dev\.jsonl .*RAGTRIALS_DATA"
    ):
        find_data_file(tmp_path, "t", "dev", ["json", "jsonl"])
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "dev.json.gz").touch()
    assert find_data_file(tmp_path, "t", "dev", ["json"]).name == "dev.json.gz"
    (tmp_path / "t" / "dev.json").touch()
    assert find_data_file(tmp_path, "t", "dev", ["json"]).name == "dev.json"


@given(content=st.binary(max_size=60) | st.text('[]{}",:\\ud8é1e-tn \n', max_size=40).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_end_in_records_or_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz"
    path.write_bytes(content)
    for reader in (read_json_array, read_jsonl, tsv):
        try:
            got = fields(reader(path))
        except UserError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            assert got
            if reader is read_json_array:
                assert got == json.loads(content.decode("utf-8-sig"))


def test_a_record_that_is_cut_behind_others_is_said_to_be_cut_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('[\n{"a": 1},\n{"b": ["x"')
    with pytest.raises(UserError, match=r"cut\.json: line 3: record 2 is not JSON: the file ends inside it"):
        list(read_json_array(path))
