"""Digests of plain values: the same content has the same name on every machine."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from typing import Any

from ragtrials.config import plain


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(
        plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


def digest(value: Any, length: int = 10) -> str:
    """The first `length` hex digits of the SHA-256 of the canonical form."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def version_of(distribution: str) -> str:
    """The installed version of a distribution, or "not installed"; nothing is imported."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
