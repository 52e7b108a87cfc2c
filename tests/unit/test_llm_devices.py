from __future__ import annotations

import pytest

from ragtrials.errors import UserError
from ragtrials.llm import devices
from ragtrials.llm.devices import has_bfloat16, resolve_device, resolve_dtype

X86 = "processor\t: 0\nmodel name\t: CPU\nflags\t\t: fpu sse2 avx2 {} fma\nbugs\t\t: bf16\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd {} i8mm\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (X86.format("avx512f avx512_bf16"), True),
        (X86.format("amx_bf16"), True),
        (X86.format("avx512f"), False),
        (ARM.format("bf16"), True),
        (ARM.format("svebf16x"), False),
        ("", False),
    ],
)
def test_bfloat16_is_read_from_the_cpus_flags(text, expected):
    assert has_bfloat16(text) is expected


@pytest.mark.parametrize(("fast", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_auto_takes_bfloat16_only_where_the_cpu_has_it(monkeypatch, fast, expected):
    monkeypatch.setattr(devices, "_cpu_computes_bfloat16", lambda: fast)
    assert resolve_dtype("auto", "cpu") == expected
    assert resolve_dtype("float16", "cpu") == "float16"


@pytest.mark.parametrize(("seen", "expected"), [(0, "cpu"), (2, "cuda")])
def test_auto_takes_the_gpu_where_there_is_one(monkeypatch, seen, expected):
    monkeypatch.setattr(devices, "_cuda_devices", lambda: seen)
    assert resolve_device("auto") == expected
    assert resolve_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(devices, "_cuda_devices", lambda: 1)
    assert resolve_device("cuda:0") == "cuda:0"
    with pytest.raises(UserError, match="--device cuda:1: torch sees 1 CUDA devices"):
        resolve_device("cuda:1")


def test_unknown_names_are_refused():
    with pytest.raises(UserError, match="--device 'gpu' is unknown: use auto"):
        resolve_device("gpu")
    with pytest.raises(UserError, match="--dtype 'bf16' is unknown: use one of auto, bfloat16"):
        resolve_dtype("bf16", "cpu")


def test_the_answer_without_torch_is_torchs_own():
    torch = pytest.importorskip("torch")
    assert (devices._cuda_devices() > 0) == torch.cuda.is_available()
