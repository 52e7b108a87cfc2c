"""vLLM beside transformers on the CPU, in float32, on the tiny model. Skipped where vLLM is not installed."""

from __future__ import annotations

import pytest
from tiny_engine import load

pytest.importorskip("vllm", reason="vLLM is not installed: it has an environment of its own")


@pytest.fixture(scope="module", autouse=True)
def surroundings(tmp_path_factory):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
        patch.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def both():
    """Loads the two engines of a model with the same options."""

    def loaded(folder, **options):
        return load(folder, **options), load(folder, engine="vllm", **options)

    return loaded
