"""Text files, gzip-compressed or not, read as a stream; what is wrong with one is one line that names it."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ragtrials.errors import UserError

_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if it is a gzip file."""
    try:
        with path.open("rb") as raw:
            if raw.peek(2)[:2] == _GZIP_MAGIC:
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield unzipped  # type: ignore[misc]
            else:
                yield raw
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist") from error
    except EOFError as error:
        raise UserError(f"{path} is a truncated gzip file: fetch it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file ({error}): fetch it again") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error


def chunks(path: Path) -> Iterator[str]:
    """The text of a file in pieces of about a megabyte, an empty one at the end."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read = 0
    with opened(path) as file:
        while True:
            chunk = file.read(_CHUNK)
            held = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                raise UserError(f"{path}: byte {read - held + error.start} is not UTF-8") from error
            read += len(chunk)
            yield text
            if not chunk:
                return


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, numbered. Only a line feed ends one: other separators occur inside texts."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}: line {number}: byte {error.start} is not UTF-8") from error


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file, unpacked, to tell formats apart."""
    with opened(path) as file:
        return file.read(64)
