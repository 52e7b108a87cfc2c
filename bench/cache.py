"""Where derived files live that can be made again (indexes, converted models), and how they get there."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ragtrials.errors import UserError

CACHE_VARIABLE = "RAGTRIALS_CACHE"
ABANDONED_SECONDS = 24 * 3600


def cache_dir() -> Path:
    """RAGTRIALS_CACHE if set, else ragtrials/ under XDG_CACHE_HOME or ~/.cache. Not created here."""
    if explicit := os.environ.get(CACHE_VARIABLE):
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ragtrials"


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder`, built by `build(temporary_folder)` if it does not exist yet.

    The work happens in a temporary sibling that is renamed at the end, so a killed or failed build
    leaves nothing behind that looks finished, and of two processes that build at once one wins.

    Raises:
        UserError: The cache cannot be written (no permission, no space).
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        work.chmod(folder.parent.stat().st_mode & 0o777)  # mkdtemp's 0700 would lock out a shared cache
    except OSError as error:
        raise cache_error(error) from error
    try:
        build(work)
        work.replace(folder)
    except OSError as error:
        if not folder.is_dir():  # otherwise another process finished the same folder first
            raise cache_error(error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _sweep(folder: Path) -> None:
    """Remove what killed builds of `folder` left behind; nobody builds for a day."""
    for left in folder.parent.glob(f".{folder.name}-*"):
        if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def cache_error(error: OSError) -> UserError:
    """The one line for a cache that cannot be written."""
    return UserError(
        f"cannot write the cache {cache_dir()}: {error.strerror or error}; "
        f"free some space or set {CACHE_VARIABLE} to a writable folder"
    )
