"""Starts vLLM's engine process for a model folder, quietly and offline."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.folders import read_json
from ragtrials.llm.policy import ADAPTER_CONFIG
from ragtrials.llm.vllm_policies import adapted_modules
from ragtrials.llm.vllm_settings import VLLMSettings

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The bounds of an adapter's rank that vLLM can be built for."""

_ALWAYS = {
    "HF_HUB_OFFLINE": "1",  # the model is a folder on this machine
    "VLLM_NO_USAGE_STATS": "1",  # by itself it would report to its makers
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # after a training this process may have used the GPU
}
_UNLESS_SET = {"VLLM_LOGGING_LEVEL": "ERROR"}


def started(name: str, weights: Path, settings: VLLMSettings, adapters: Mapping[str, Path]) -> Any:
    """A `vllm.LLM`; half a minute or more.

    Args:
        name: What error messages call the model.
        weights: Its folder.
        settings: How it is run.
        adapters: The adapter folders that it will be asked with.

    Raises:
        UserError: vLLM does not know such a model, or an adapter's rank is too high for it.
        RunFailure: The engine process ended.
    """
    gc.collect()  # an engine or a trainer before this one may hold memory that nobody needs any more
    _empty_cuda_cache()
    with _environment():
        from vllm import LLM

        try:
            return LLM(
                model=str(weights),
                tokenizer_mode="hf",
                dtype=settings.common.dtype,
                seed=0,
                max_model_len=-1,  # the model's context, or what memory has room for
                max_num_seqs=settings.common.batch_size,
                generation_config="vllm",  # what the folder recommends would leak into decoding
                logprobs_mode="raw_logprobs",
                use_tqdm_on_load=False,
                enforce_eager=settings.common.device == "cpu",  # compiling pays on a GPU alone
                **_lora(adapters),
            )
        except ValueError as error:
            reason = " ".join(str(error).split())[:300]
            raise UserError(f"model {name}: vLLM cannot run it ({reason}); use --engine hf") from error
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            raise RunFailure(
                f"model {name}: vLLM did not start ({reason}); its own messages above say why"
            ) from error


def lora_requests(adapters: Mapping[str, Path]) -> dict[str, Any]:
    """vLLM's `LoRARequest` of each role; roles of one folder share one."""
    from vllm.lora.request import LoRARequest

    numbers = {folder: number for number, folder in enumerate(_distinct(adapters), start=1)}
    return {
        role: LoRARequest(f"policy{number}", number, str(folder.resolve()))
        for role, folder in adapters.items()
        for number in [numbers[folder.resolve()]]
    }


def _lora(adapters: Mapping[str, Path]) -> dict[str, Any]:
    """What `LLM` has to know of the adapters before it loads the model."""
    if not adapters:
        return {}
    folders = _distinct(adapters)
    rank = max(int(read_json(folder / ADAPTER_CONFIG)["r"]) for folder in folders)
    bound = next((bound for bound in _RANKS if bound >= rank), None)
    if bound is None:
        raise UserError(
            f"--engine vllm takes LoRA adapters of rank {_RANKS[-1]} or less, not {rank}: use --engine hf"
        )
    return {
        "enable_lora": True,
        "max_lora_rank": bound,
        "max_loras": 1,  # at a time, see `VLLMEngine`
        "max_cpu_loras": len(folders),
        # Without this the output layer is made ready for adapters, too, and fails where the log-probabilities
        # of a prompt are asked for: it counts on one token for each request (vLLM 0.32).
        "lora_target_modules": sorted(set().union(*map(adapted_modules, folders))),
    }


def _distinct(adapters: Mapping[str, Path]) -> list[Path]:
    return list(dict.fromkeys(folder.resolve() for folder in adapters.values()))


def _empty_cuda_cache() -> None:
    """Give freed memory back to the GPU: the engine process takes nearly all of it."""
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@contextmanager
def _environment() -> Iterator[None]:
    """What the engine process inherits; afterwards this process has its own again."""
    wanted = _ALWAYS | {name: value for name, value in _UNLESS_SET.items() if name not in os.environ}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
