"""What a model folder must hold, whether it is whole, and the digest that names its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ragtrials.errors import UserError
from ragtrials.notes import noted_digest

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_TOKENIZERS = (
    ("tokenizer.json",),
    ("tokenizer.model",),
    ("spiece.model",),
    ("vocab.json", "merges.txt"),
    ("vocab.txt",),
)
_OBJECTS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
_SUFFIXES = (".json", ".safetensors", ".model", ".txt", ".jinja")


def checked_digest(folder: Path) -> str:
    """The SHA-256 of a model folder's configuration, tokenizer and weights (64 hex digits).

    The folder is checked and read once; as long as no file's size or times change, the answer is then
    taken from a note in the cache.

    Raises:
        UserError: A file is missing or damaged, or the cache cannot be written.
    """

    return files_digest(folder, check_folder)


def files_digest(folder: Path, check: Callable[[Path], None] = lambda folder: None) -> str:
    """The SHA-256 of a folder's configuration, tokenizer and weights (64 hex digits).

    Args:
        folder: A model folder or an adapter folder.
        check: Called before the files are read, and not where their digest is taken from a note.

    Raises:
        UserError: A file or the cache cannot be read or written, or `check` says so.
    """

    def compute() -> str:
        check(folder)
        return _digest(folder)

    try:
        return noted_digest(folder, _files(folder), compute)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be read ({error.strerror})") from error


def check_folder(folder: Path) -> None:
    """Hold that a folder has a configuration, a tokenizer and whole safetensors weights.

    Raises:
        UserError: Names the file that is missing or damaged.
    """
    hint = "pass a folder that holds what transformers' save_pretrained writes"
    if not (folder / "config.json").is_file():
        raise UserError(f"model folder {folder}: config.json is missing; {hint}")
    if not any(all((folder / name).is_file() for name in names) for names in _TOKENIZERS):
        raise UserError(f"model folder {folder}: there is no tokenizer (tokenizer.json); {hint}")
    for file in _files(folder):
        if file.suffix == ".json" and not isinstance(read_json(file), dict) and file.name in _OBJECTS:
            raise UserError(f"{file}: is not a JSON object; copy the file again")
    for shard in _shards(folder, hint):
        check_safetensors(shard)


def _shards(folder: Path, hint: str) -> list[Path]:
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    index = folder / _INDEX
    if not index.is_file():
        raise UserError(f"model folder {folder}: there are no weights ({_WEIGHTS}); {hint}")
    content = read_json(index)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise UserError(f"{index}: has no weight_map; copy the file again")
    shards = [folder / str(name) for name in dict.fromkeys(weight_map.values())]
    if missing := [shard.name for shard in shards if not shard.is_file()]:
        raise UserError(f"model folder {folder}: {', '.join(missing)} is missing, but {_INDEX} names it")
    return shards


def check_safetensors(file: Path) -> None:
    """Compare a file's size with what its header promises; the numbers themselves are not read.

    Raises:
        UserError: The file is truncated, damaged or of another format.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        header_size = int.from_bytes(stream.read(8), "little")
        if size < 8 or header_size > size - 8:
            raise UserError(f"{file}: is truncated inside its header ({size} bytes); copy the file again")
        raw = stream.read(header_size)
    try:
        header = json.loads(raw)
        end = max((t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"), default=0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise UserError(f"{file}: is not a safetensors file; copy the file again") from None
    if size != (expected := 8 + header_size + end):
        what = "is truncated" if size < expected else "is damaged"
        raise UserError(f"{file}: {what} ({size} of {expected} bytes); copy the file again")


def read_json(file: Path) -> Any:
    """What a JSON file holds.

    Raises:
        UserError: It is not JSON in UTF-8.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}: is not JSON ({error.msg}); copy the file again") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not UTF-8 text; copy the file again") from None


def _files(folder: Path) -> list[Path]:
    """The files that decide what the model says, in the order of their names."""
    return sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES and file.is_file())


def _digest(folder: Path) -> str:
    sha = hashlib.sha256()
    for file in _files(folder):
        sha.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                sha.update(block)
    return sha.hexdigest()
