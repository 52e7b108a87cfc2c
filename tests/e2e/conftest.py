"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import hotpot_folder
from tiny import build_tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, called "tiny" in records."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    build_tiny_model(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, an empty cache, and a made-up hotpotqa."""
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    hotpot_folder(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path
