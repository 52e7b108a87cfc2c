"""The settings of an engine that can change a result, known before anything heavy is loaded."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

from ragtrials.errors import UserError
from ragtrials.llm.devices import resolve_device, resolve_dtype
from ragtrials.llm.models import ResolvedModel

DEFAULT_BATCH_SIZE = 8
DEFAULT_MAX_PROMPT_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the transformers engine runs a model; "auto" is resolved already.

    Attributes:
        dtype: "bfloat16", "float16" or "float32".
        device: "cpu", "cuda", "cuda:1", "mps".
        batch_size: Prompts at once.
        max_prompt_tokens: Longer prompts have their evidence shortened.
    """

    dtype: str
    device: str
    batch_size: int
    max_prompt_tokens: int

    @classmethod
    def resolve(cls, dtype: str, device: str, batch_size: int, max_prompt_tokens: int) -> EngineSettings:
        """Check what the user asked for and fill in "auto".

        Raises:
            UserError: A value is out of range, a device is not there, or torch or transformers is missing.
        """
        if batch_size < 1:
            raise UserError(f"--batch-size is {batch_size}: give 1 or more")
        if max_prompt_tokens < 1:
            raise UserError(f"--max-prompt-tokens is {max_prompt_tokens}: give 1 or more")
        _versions()
        where = resolve_device(device)
        return cls(resolve_dtype(dtype, where), where, batch_size, max_prompt_tokens)

    def signature(self, model: ResolvedModel) -> dict[str, Any]:
        """JSON values that name everything which can change what `model` says."""
        return ({"tokens": list(model.tokens)} if model.tokens else {}) | {
            "engine": "hf",
            "model": model.name,
            "revision": model.revision,
            "digest": model.digest,
            "dtype": self.dtype,
            "device": self.device.partition(":")[0],
            "batch_size": self.batch_size,
            "max_prompt_tokens": self.max_prompt_tokens,
            **_versions(),
        }


def _versions() -> dict[str, str]:
    try:
        return {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(
            f"language models need {error.name}: install with `pip install 'ragtrials[quickstart]'`"
        ) from None
