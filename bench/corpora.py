"""Corpora that lie in one file: a user's JSON lines or TSV, and the passages of DPR's Wikipedia.

Files are streamed each time they are read, never held in memory, and may be gzip-compressed:

- `.jsonl`: lines of `id`, `title` (may be missing) and `text`; or of `id` and `contents`, as pyserini and
  FlashRAG write them: the first line is the title, the rest the text.
- `.tsv`: a header line that names the columns `id`, `text` and, if there is one, `title`, in any order.
  Quoting follows RFC 4180, as in DPR's `psgs_w100.tsv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ragtrials.data import Corpus, Passage, passages_digest
from ragtrials.errors import UserError
from ragtrials.files import read_jsonl, read_table
from ragtrials.notes import noted_digest
from ragtrials.records import Record

WIKI18 = "wiki18-100w"
"""Wikipedia of December 2018 in passages of 100 words, by Karpukhin et al. (DPR, arXiv:2004.04906)."""
WIKI18_PASSAGES = 21_015_324
_WIKI18_FILES = (f"{WIKI18}/psgs_w100.tsv", f"{WIKI18}/psgs_w100.tsv.gz")

_READING = "passages 1"
"""Raised whenever the same file gives other passages than before: digests are noted under this name."""
_SUFFIX = re.compile(r"(\.jsonl|\.tsv)?(\.gz)?$", re.IGNORECASE)
_LONGEST_STEM = 60


def open_corpus(given: str, data_dir: Path | None) -> Corpus:
    """What `--corpus` names.

    Args:
        given: "wiki18-100w", or a file whose stem becomes the corpus' name.
        data_dir: Where `wiki18-100w/psgs_w100.tsv[.gz]` is looked for.

    Raises:
        UserError: The file does not exist or its name says no known format. What is wrong inside it is told
            when it is read.
    """
    if given == WIKI18:
        return _wiki18(data_dir)
    path = Path(given)
    if not _suffix(path):
        raise UserError(
            f"--corpus {given!r} is neither {WIKI18} nor a file whose name ends in .jsonl, .tsv, .jsonl.gz "
            "or .tsv.gz"
        )
    if not path.is_file():
        raise UserError(f"--corpus {given}: no such file")
    return file_corpus(path, file_stem(path))


def file_corpus(path: Path, name: str) -> Corpus:
    """The corpus of a file; its digest is noted in the cache: the file is not read for it at every run."""
    return Corpus(name, lambda: read_passages(path), lambda: _digest(path, read_passages(path), _READING))


def read_passages(path: Path) -> Iterator[Passage]:
    """The passages of a file in their order, one after the other.

    Raises:
        UserError: The file is damaged or a record is wrong; the message names the line.
    """
    if _suffix(path) == ".tsv":
        return map(_row, _with_header(path))
    return map(_line, read_jsonl(path))


def file_stem(path: Path) -> str:
    """A file's name without folder and format, fit to be part of a folder's name and of a table's heading."""
    name = re.sub(r"[^\w.-]+", "_", _SUFFIX.sub("", path.name)).strip(".")
    return name[:_LONGEST_STEM] or "unnamed"


def _suffix(path: Path) -> str:
    found = _SUFFIX.search(path.name)
    return (found[1] or "").lower() if found else ""


def _digest(path: Path, passages: Iterator[Passage], kind: str) -> str:
    try:
        return noted_digest(path, [path], lambda: passages_digest(passages), kind)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def _line(record: Record) -> Passage:
    title = _title(record)
    if record.fields.get("text") is not None or record.fields.get("contents") is None:
        return Passage(record.identifier("id"), title, record.text("text"))
    contents = record.text("contents")
    first, text = _split(contents)
    # A title of its own that is not the first line: then the first line is text as well.
    title, text = (first, text) if title in ("", first) else (title, contents)
    return Passage(record.identifier("id"), title, text)


def _split(contents: str) -> tuple[str, str]:
    """Title and text of a first line, which may stand in one pair of double quotes, and the rest.

    Without a rest there is no title: a passage must have a text to be found by.
    """
    first, _, rest = contents.partition("\n")
    if not rest.strip():
        return "", contents
    title = first.strip()
    quoted = len(title) >= 2 and title[0] == title[-1] == '"'
    return (title[1:-1] if quoted else title), rest


def _title(record: Record) -> str:
    title = record.fields.get("title")
    if title is not None and not isinstance(title, str):
        raise record.error(f"field 'title' must be text, not {type(title).__name__}")
    return title or ""


def _with_header(path: Path) -> Iterator[Record]:
    for number, record in enumerate(read_table(path, "\t")):
        if number == 0 and not {"id", "text"} <= set(record.fields):
            names = " ".join(", ".join(record.fields).split())[:80]
            raise UserError(
                f"{path}: line 1 must name the columns id and text, and title if there is one, not {names!r}"
            )
        yield record


def _row(record: Record) -> Passage:
    return Passage(record.identifier("id"), _title(record), record.text("text"))


def _wiki18(data_dir: Path | None) -> Corpus:
    if data_dir is None:
        raise UserError(
            f"--corpus {WIKI18} needs {_WIKI18_FILES[0]} in a data folder: "
            "name the folder with --data-dir or RAGTRIALS_DATA"
        )
    path = next((data_dir / name for name in _WIKI18_FILES if (data_dir / name).is_file()), None)
    if path is None:
        raise UserError(
            f"no {' or '.join(_WIKI18_FILES)} in {data_dir}: put DPR's file there, "
            "or name another folder with --data-dir or RAGTRIALS_DATA"
        )
    return Corpus(WIKI18, lambda: _whole(path), lambda: _digest(path, _whole(path), f"{WIKI18} {_READING}"))


def _whole(path: Path) -> Iterator[Passage]:
    """All passages; a file with more or fewer must not go by the name of the published corpus."""
    count = 0
    for passage in read_passages(path):
        count += 1
        yield passage
    if count != WIKI18_PASSAGES:
        raise UserError(
            f"{path} holds {count:,} passages, but {WIKI18} has {WIKI18_PASSAGES:,}: fetch it again, "
            f"or search a part of it under its own name with --corpus FILE"
        )
