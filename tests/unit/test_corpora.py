"""Corpora that lie in a file: what is read, what is refused, and how often."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrials import corpora
from ragtrials.corpora import WIKI18, file_corpus, file_stem, open_corpus, read_passages
from ragtrials.data import Passage, passages_digest
from ragtrials.errors import UserError
from ragtrials.retrieval.build import open_store

quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def read(path: Path) -> list[tuple[str, str, str]]:
    return [(passage.id, passage.title, passage.text) for passage in read_passages(path)]


# What is read


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "C.JSONL"])
def test_json_lines_with_a_title(tmp_path: Path, name: str) -> None:
    content = lines(
        {"id": "a", "title": "Ada", "text": "She was.", "extra": [1]},
        {"id": 7, "title": None, "text": "x"},
        {"id": "c", "text": "y"},
    )
    assert read(put(tmp_path / name, content)) == [("a", "Ada", "She was."), ("7", "", "x"), ("c", "", "y")]


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Evan Morris"\nEvan was.\nHe went.', "Evan Morris", "Evan was.\nHe went."),
        ("Evan Morris\nEvan was.", "Evan Morris", "Evan was."),
        ("Evan Morris\r\nEvan was.", "Evan Morris", "Evan was."),
        ('"""Weird Al"" Yankovic"\nAl was.', '""Weird Al"" Yankovic', "Al was."),
        ('"Heroes\nA song.', '"Heroes', "A song."),
        ('"\nA song.', '"', "A song."),
        ('""\nA song.', "", "A song."),
        ("\nA song.", "", "A song."),
        ("Only one line.", "", "Only one line."),  # problem input P44: not a title with an empty body
        ('"Evan Morris"', "", '"Evan Morris"'),
        ("Evan Morris\n  \n", "", "Evan Morris\n  \n"),
    ],
)
def test_contents_are_a_title_and_a_text(tmp_path: Path, contents: str, title: str, text: str) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": "1", "contents": contents}))
    assert read(path) == [("1", title, text)]


@pytest.mark.parametrize(
    ("title", "expected"),
    [("Ada", ("Ada", "She was.")), ("Other", ("Other", "Ada\nShe was.")), (None, ("Ada", "She was."))],
)
def test_contents_beside_a_title_lose_nothing(
    tmp_path: Path, title: str | None, expected: tuple[str, str]
) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": "1", "title": title, "contents": "Ada\nShe was."}))
    assert read(path) == [("1", *expected)]


@pytest.mark.parametrize("name", ["c.tsv", "c.tsv.gz"])
def test_a_table_as_dpr_publishes_it(tmp_path: Path, name: str) -> None:
    content = (
        "id\ttext\ttitle\r\n"
        '1\t"""Heroes"" is a song, and\ta tab."\t"""Heroes"""\r\n'
        '2\t"On two\nlines."\tEvan "Ev" Morris\r\n'
        "3\tplain\t\r\n"
    )
    assert read(put(tmp_path / name, content)) == [
        ("1", '"Heroes"', '"Heroes" is a song, and\ta tab.'),
        ("2", 'Evan "Ev" Morris', "On two\nlines."),
        ("3", "", "plain"),
    ]


@pytest.mark.parametrize("header", ["title\tid\ttext", "text\tnote\tid\ttitle", "text\tid"])
def test_columns_stand_in_any_order(tmp_path: Path, header: str) -> None:
    values = {"id": "1", "title": "T", "text": "x", "note": "n"}
    row = "\t".join(values[name] for name in header.split("\t"))
    title = "T" if "title" in header else ""
    assert read(put(tmp_path / "c.tsv", f"\ufeff{header}\n{row}\n")) == [("1", title, "x")]


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("c.jsonl", "", "is empty"),
        ("c.jsonl", '{"id": 1, "text": "x"}\nnonsense', "line 2 is not JSON"),
        ("c.jsonl", '["x"]', "line 1 must be a JSON object, not list"),
        ("c.jsonl", '{"text": "x"}', "line 1: field 'id' is missing"),
        ("c.jsonl", '{"id": true, "text": "x"}', "field 'id' must be text, not bool"),
        ("c.jsonl", '{"id": "1"}', "line 1 (id '1'): field 'text' is missing"),
        ("c.jsonl", '{"id": "1", "text": " "}', "field 'text' is empty"),
        ("c.jsonl", '{"id": "1", "text": ["x"]}', "field 'text' must be text, not list"),
        ("c.jsonl", '{"id": "1", "contents": 5}', "field 'contents' must be text, not int"),
        ("c.jsonl", '{"id": "1", "title": 5, "text": "x"}', "field 'title' must be text, not int"),
        ("c.jsonl", '{"id": "1", "text": "\\ud800"}', "lone surrogate"),
        ("c.jsonl", b'{"id": "1", "text": "\xff"}', "is not UTF-8"),
        ("c.tsv", "", "is empty"),
        ("c.tsv", "id\ttext\n", "holds no rows below its header"),
        ("c.tsv", "1\tsome text\n2\tmore\n", "line 1 must name the columns id and text"),
        ("c.tsv", "id\ttext\tid\n1\tx\t2\n", "a column name is repeated"),
        ("c.tsv", '"a\nb"\t"a\nb"\n1\tx\n', "a column name is repeated: a b, a b"),
        ("c.tsv", '"a\nb"\tc\n1\tx\n', "line 1 must name the columns id and text"),
        ("c.tsv", "id\ttext\n1\tx\ty\n", "line 2: 3 columns instead of 2"),
        ("c.tsv", 'id\ttext\n1\t"x\n', "line 2: "),
        ("c.tsv", "id\ttext\n\tx\n", "field 'id' is empty"),
        ("c.tsv", "id\ttext\n1\t\n", "line 2 (id '1'): field 'text' is empty"),
        ("c.tsv", b"id\ttext\n1\t\xff\n", "line 2: byte 2 is not UTF-8"),
    ],
)
def test_a_wrong_record_is_named(tmp_path: Path, name: str, content: str | bytes, problem: str) -> None:
    path = put(tmp_path / name, content)
    with pytest.raises(UserError) as caught:
        read(path)
    assert problem in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["c.jsonl.gz", "c.tsv.gz"])
def test_a_truncated_gzip_file_is_named(tmp_path: Path, name: str) -> None:
    rows = "".join(f"{n}\ttext {n * n}\n" for n in range(500))
    records = lines(*({"id": n, "text": f"text {n * n}"} for n in range(500)))
    path = put(tmp_path / name, f"id\ttext\n{rows}" if "tsv" in name else records)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(UserError, match=rf"{name} is a truncated gzip file: fetch it again$"):
        read(path)


def test_a_repeated_id_is_found_when_passages_are_stored(tmp_path: Path, fresh_cache: Path) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": 1, "text": "x"}, {"id": "1", "text": "y"}))
    with pytest.raises(UserError, match="passages 1 and 2 of the corpus have the same id '1'"):
        open_store(open_corpus(str(path), None))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("gone.jsonl", "--corpus gone.jsonl: no such file"),
        ("wiki18", "--corpus 'wiki18' is neither wiki18-100w nor a file whose name ends in .jsonl, .tsv,"),
        ("notes.txt", "--corpus 'notes.txt' is neither"),
        ("", "--corpus '' is neither"),
        (".", "--corpus '.' is neither"),
        (WIKI18, "--corpus wiki18-100w needs wiki18-100w/psgs_w100.tsv in a data folder: name the folder"),
    ],
)
def test_a_corpus_that_is_not_there_is_named(given: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        open_corpus(given, None)
    assert str(caught.value).startswith(problem)


# Names and digests


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("/home/me/passages.jsonl", "passages"),
        ("wiki.v2.TSV.gz", "wiki.v2"),
        ("my passages (2).tsv", "my_passages_2_"),
        ("a|b\n`c`.jsonl", "a_b_c_"),
        ("東京.jsonl", "東京"),
        ("...jsonl", "unnamed"),
        (".jsonl", "unnamed"),
        ("..", "unnamed"),
        ("x" * 200 + ".tsv", "x" * 60),
        (os.fsdecode(b"\xff.tsv"), "_"),
    ],
)
def test_a_stem_is_fit_for_a_folder_and_a_table(path: str, stem: str) -> None:
    assert file_stem(Path(path)) == stem


def test_the_digest_tells_two_files_of_one_name_apart(tmp_path: Path, fresh_cache: Path) -> None:
    one, other, copy = (
        open_corpus(str(put(tmp_path / folder / "passages.jsonl", lines({"id": 1, "text": text}))), None)
        for folder, text in (("a", "x"), ("b", "y"), ("c", "x"))
    )
    assert one.name == other.name == "passages"
    assert one.digest != other.digest
    assert one.digest == copy.digest == passages_digest([Passage("1", "", "x")])


def test_layout_and_compression_change_no_digest(tmp_path: Path, fresh_cache: Path) -> None:
    record = {"id": "1", "title": "Ada", "text": "She was."}
    files = [
        put(tmp_path / "a.jsonl", lines(record)),
        put(tmp_path / "b.jsonl.gz", lines({"id": 1, "contents": '"Ada"\nShe was.'})),
        put(tmp_path / "c.tsv", "id\ttitle\ttext\n1\tAda\tShe was.\n"),
    ]
    assert len({open_corpus(str(file), None).digest for file in files}) == 1


def test_an_unchanged_file_is_read_once_for_its_digest(
    tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": 1, "text": "x"}))
    before = open_corpus(str(path), None).digest
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(corpora, "passages_digest", lambda _: pytest.fail("the file is read again"))
        assert open_corpus("c.jsonl", None).digest == before
    put(path, lines({"id": 1, "text": "y"}))
    assert open_corpus(str(path), None).digest != before


def test_a_damaged_file_leaves_no_note(tmp_path: Path, fresh_cache: Path) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": 1, "text": "x"}, {"id": 2}))
    for _ in range(2):
        with pytest.raises(UserError, match="line 2"):
            _ = open_corpus(str(path), None).digest


def test_a_file_that_vanishes_is_named(tmp_path: Path, fresh_cache: Path) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": 1, "text": "x"}))
    corpus = open_corpus(str(path), None)
    path.unlink()
    with pytest.raises(UserError, match=r"cannot read .*c\.jsonl: No such file"):
        _ = corpus.digest


def test_a_corpus_is_a_stream(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", lines({"id": 1, "text": "x"}) + "nonsense")
    passages = iter(file_corpus(path, "mine"))
    assert next(passages) == Passage("1", "", "x")
    with pytest.raises(UserError, match="line 2"):
        next(passages)


# DPR's Wikipedia


@pytest.fixture
def three_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "WIKI18_PASSAGES", 3)


def wikipedia(folder: Path, count: int, name: str = "psgs_w100.tsv") -> Path:
    rows = "".join(f'{n}\t"Text, ""{n}"""\tTitle {n}\n' for n in range(1, count + 1))
    return put(folder / "wiki18-100w" / name, f"id\ttext\ttitle\n{rows}")


@pytest.mark.parametrize("name", ["psgs_w100.tsv", "psgs_w100.tsv.gz"])
@pytest.mark.usefixtures("fresh_cache", "three_are_all")
def test_wikipedia_is_found_in_the_data_folder(tmp_path: Path, name: str) -> None:
    wikipedia(tmp_path, 3, name)
    corpus = open_corpus(WIKI18, tmp_path)
    assert corpus.name == WIKI18
    assert [passage.text for passage in corpus] == ['Text, "1"', 'Text, "2"', 'Text, "3"']
    assert corpus.digest == passages_digest(corpus)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.usefixtures("three_are_all")
def test_a_part_of_wikipedia_does_not_go_by_its_name(tmp_path: Path, fresh_cache: Path, count: int) -> None:
    path = wikipedia(tmp_path, count)
    problem = rf"psgs_w100\.tsv holds {count} passages, but wiki18-100w has 3: .*--corpus FILE$"
    with pytest.raises(UserError, match=problem):
        open_store(open_corpus(WIKI18, tmp_path))
    part = open_corpus(str(path), tmp_path)  # as the error proposes
    assert (part.name, len(open_store(part))) == ("psgs_w100", count)
    with pytest.raises(UserError, match=problem):  # the part's noted digest is not taken for the whole's
        open_store(open_corpus(WIKI18, tmp_path))


def test_wikipedia_has_the_published_number_of_passages(tmp_path: Path, fresh_cache: Path) -> None:
    wikipedia(tmp_path, 3)
    with pytest.raises(UserError, match="holds 3 passages, but wiki18-100w has 21,015,324"):
        list(open_corpus(WIKI18, tmp_path))


def test_missing_wikipedia_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"no wiki18-100w/psgs_w100\.tsv or .* in {tmp_path}: put"):
        open_corpus(WIKI18, tmp_path)


# Anything else


def ends_well(path: Path) -> None:
    """Sound passages, or one line that names the file."""
    try:
        passages = list(read_passages(path))
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert path.name in str(error)  # noqa: PT017
        return
    assert passages
    for passage in passages:
        assert passage.id.strip()
        assert passage.text.strip()
        f"{passage.id}{passage.title}{passage.text}".encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
FIELD = JSON | st.text('"\\\n\r a\ud800é', max_size=8)


@given(
    records=st.lists(
        st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "title", "text", "contents"), FIELD)),
        max_size=3,
    ),
    prefix=st.sampled_from(["", "\ufeff", "\n"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@quickly
def test_any_value_in_any_field_ends_well(
    tmp_path: Path, records: list[dict[str, Any]], prefix: str, end: str
) -> None:
    text = prefix + "".join(json.dumps(record) + end for record in records)
    ends_well(put(tmp_path / "any.jsonl", text))


CELLS = st.lists(
    st.tuples(*[st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.just("id\ttext")] * 3),
    max_size=3,
)


@given(cells=CELLS, end=st.sampled_from(["\n", "\r\n"]))
@quickly
def test_any_quoted_text_in_any_cell_ends_well(
    tmp_path: Path, cells: list[tuple[str, str, str]], end: str
) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter="\t", lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
        [("title", "text", "id"), *cells]
    )
    path = put(tmp_path / "any.tsv", written.getvalue())
    ends_well(path)
    if cells and all(text.strip() and identity.strip() for _, text, identity in cells):
        assert read(path) == [(identity, title, text) for title, text, identity in cells]


@pytest.mark.parametrize("name", ["any.jsonl", "any.tsv"])
@given(content=st.binary(max_size=40) | st.text('[]{}",:\\\n\t\r 1aidtext', max_size=40).map(str.encode))
@quickly
def test_any_bytes_end_well(tmp_path: Path, name: str, content: bytes) -> None:
    ends_well(put(tmp_path / name, content))
    ends_well(put(tmp_path / name, b"id\ttext\n" + content))


@given(cut=st.integers(0, 200), flip=st.integers(0, 200))
@quickly
def test_any_damaged_gzip_file_ends_well(tmp_path: Path, cut: int, flip: int) -> None:
    content = bytearray(gzip.compress(lines(*({"id": n, "text": f"{n * n}"} for n in range(20))).encode()))
    content[flip % len(content)] ^= 0x55
    path = tmp_path / "any.jsonl.gz"
    path.write_bytes(bytes(content[: len(content) - cut]))
    ends_well(path)
