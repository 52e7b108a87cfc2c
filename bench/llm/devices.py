"""Which device and number format a model runs in, told without importing torch wherever that is certain."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from functools import cache
from pathlib import Path

from ragtrials.errors import UserError

DTYPES = ("auto", "bfloat16", "float16", "float32")
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
# A GPU that torch can use on Linux shows as one of these: NVIDIA, NVIDIA or AMD under WSL, AMD.
_GPU_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_CPUINFO = Path("/proc/cpuinfo")


def resolve_device(device: str) -> str:
    """The device to run on: "auto" is CUDA (or ROCm) where there is one, else the CPU.

    Raises:
        UserError: The device has no such name, or is not there.
    """
    if not _DEVICE.fullmatch(device):
        raise UserError(f"--device {device!r} is unknown: use auto, cpu, cuda, cuda:N or mps")
    if device == "auto":
        return "cuda" if _cuda_devices() else "cpu"
    kind, _, index = device.partition(":")
    if kind == "cuda" and int(index or 0) >= _cuda_devices():
        raise UserError(
            f"--device {device}: torch sees {_cuda_devices()} CUDA devices here; use --device cpu"
        )
    if kind == "mps" and not _mps_available():
        raise UserError("--device mps: torch sees no Apple GPU here; use --device cpu")
    return device


def resolve_dtype(dtype: str, device: str) -> str:
    """The number format to run in: "auto" is bfloat16 where the device computes in it, else float32.

    Args:
        dtype: One of `DTYPES`.
        device: What `resolve_device` returned.

    Raises:
        UserError: The format has no such name.
    """
    if dtype not in DTYPES:
        raise UserError(f"--dtype {dtype!r} is unknown: use one of {', '.join(DTYPES)}")
    if dtype != "auto":
        return dtype
    if device.startswith("cuda"):
        import torch

        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        fast = device == "cpu" and _cpu_computes_bfloat16()
    return "bfloat16" if fast else "float32"


def has_bfloat16(cpuinfo: str) -> bool:
    """Whether a /proc/cpuinfo text (x86 or ARM) lists bfloat16 instructions.

    Without them bfloat16 is emulated: correct, but several times slower than float32.
    """
    flags = re.findall(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    return bool(flags) and {"avx512_bf16", "amx_bf16", "bf16"}.intersection(flags[0].split()) != set()


@cache
def _cpu_computes_bfloat16() -> bool:
    return _CPUINFO.is_file() and has_bfloat16(_CPUINFO.read_text(encoding="utf-8", errors="replace"))


@cache
def _cuda_devices() -> int:
    """How many CUDA devices torch sees; 0 without asking torch where its build or the machine has none."""
    if importlib.metadata.version("torch").endswith("+cpu"):
        return 0
    if platform.system() == "Linux" and not any(Path(file).exists() for file in _GPU_FILES):
        return 0
    import torch

    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0


@cache
def _mps_available() -> bool:
    if platform.system() != "Darwin":
        return False
    import torch

    return bool(torch.backends.mps.is_available())


def out_of_memory(error: RuntimeError) -> bool:
    """Whether torch lacked memory: CUDA has a class for it, the CPU's allocator only a sentence."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
