from __future__ import annotations

import pytest
from tiny import build_tiny_model
from tiny_engine import load


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        torch = pytest.importorskip("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # so small a model only loses by more
        yield
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", with_bos=True, context=700)


@pytest.fixture(scope="module")
def engine(folder):
    return load(folder)
