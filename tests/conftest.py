"""Every test runs with a cache of its own session and without a network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Test files run side by side: more threads would only wait for each other. Read when torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

DATA = os.environ.get("RAGTRIALS_DATA")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on real files are skipped, with the reason, where the files are not."""
    if DATA is None:
        skip = pytest.mark.skip(reason="RAGTRIALS_DATA is not set: the real dataset files are not here")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(skip)


@pytest.fixture
def data_dir() -> Path:
    """The folder of real dataset files (for tests marked `data`)."""
    assert DATA is not None
    return Path(DATA)


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RAGTRIALS_CACHE", str(folder))
    return folder
