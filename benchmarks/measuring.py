"""What the benchmarks measure with: a process's memory, and a loop that says how fast the machine is now."""

from __future__ import annotations

import time
from pathlib import Path


def memory(field: str) -> int:
    """Bytes of a line of /proc/self/status. (`ru_maxrss` would begin with the parent's size.)"""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"this kernel does not report {field}")


def calibration(rounds: int = 200_000) -> float:
    """CPU seconds of a loop over plain text work, to compare figures of busy and of different machines."""
    text = "The quick brown fox, it seems, jumps over 1,000 lazy dogs"
    began = time.process_time()
    for number in range(rounds):
        " ".join(sorted(f"{text} {number}".lower().split()))
    return time.process_time() - began
