"""What the benchmarks measure with: a process's memory, and a loop that says how fast the machine is now."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def in_own_process(script: str, *words: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a benchmark prints as one JSON object if it is called with these words."""
    command = [sys.executable, script, *words]
    ran = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


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
