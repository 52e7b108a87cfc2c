"""One process at a time in a folder. The lock goes away with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragtrials.errors import UserError


@contextmanager
def exclusive(folder: Path, what: str) -> Iterator[None]:
    """Hold `folder`/lock while the block runs.

    Args:
        folder: Created if it does not exist.
        what: What to call the folder's work in the error.

    Raises:
        UserError: Another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "?"
            raise UserError(
                f"{what} is being worked on by process {holder}; wait for it or stop it"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode("ascii"), 0)
        yield
    finally:
        os.close(handle)
