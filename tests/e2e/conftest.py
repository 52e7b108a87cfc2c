"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import build_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, called "tiny" in records."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_model(folder)
    return folder
