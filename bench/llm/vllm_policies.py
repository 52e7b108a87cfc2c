"""Which weights vLLM holds for trained roles: LoRA adapters over one model, or one whole model.

vLLM keeps all of a GPU's memory for one model. Plain LoRA adapters of any number of roles share it. A full
folder, and an adapter of which vLLM would leave something out, are models of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ragtrials.errors import UserError
from ragtrials.llm.folders import read_json
from ragtrials.llm.models import ResolvedModel, resolve_model
from ragtrials.llm.policy import ADAPTER_CONFIG, ADAPTER_WEIGHTS, is_adapter
from ragtrials.llm.vllm_settings import VLLMSettings
from ragtrials.program import Completion, Engine, Generate, Score

# Settings of an adapter that vLLM refuses or, worse, does not read.
_NOT_SERVED = ("trainable_token_indices", "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out")


# Layers that vLLM does not adapt where the log-probabilities of a prompt are asked for.
_EMBEDDINGS = {"lm_head", "embed_tokens"}


def load_vllm(model: ResolvedModel, settings: VLLMSettings, policies: Mapping[str, Path]) -> Engine:
    """The vLLM engine of a model, with trained weights by role.

    Args:
        model: The base model.
        settings: How it is run.
        policies: Folders of trained weights, checked by `ragtrials.llm.policy.check_policy`.

    Raises:
        UserError: The model cannot be loaded.
    """
    adapters = {role: folder for role, folder in policies.items() if served(folder)}
    whole = {role: folder.resolve() for role, folder in policies.items() if role not in adapters}
    base = cache(partial(_load_base, model, settings, adapters))
    if not whole:
        return base()
    loaders = {f: cache(partial(_load_whole, model, settings, f)) for f in dict.fromkeys(whole.values())}
    return SoleModelEngine(
        settings.signature(model), base, {role: loaders[folder] for role, folder in whole.items()}
    )


def served(folder: Path) -> bool:
    """Whether a folder of trained weights is an adapter that vLLM can put on a model as it is."""
    if not is_adapter(folder):
        return False
    config = read_json(folder / ADAPTER_CONFIG)
    return not any(config.get(name) for name in _NOT_SERVED) and not adapted_modules(folder) & _EMBEDDINGS


def adapted_modules(folder: Path) -> set[str]:
    """The names of the layers that an adapter's weights belong to, such as "q_proj"."""
    from safetensors import safe_open

    with safe_open(folder / ADAPTER_WEIGHTS, "numpy") as weights:
        return {key.split(".lora_")[0].rpartition(".")[2] for key in weights.keys() if ".lora_" in key}  # noqa: SIM118


def _load_base(model: ResolvedModel, settings: VLLMSettings, adapters: Mapping[str, Path]) -> Engine:
    """The untrained model with adapters; with its added tokens, which take rows that vLLM cannot add."""
    from ragtrials.llm.loading import added_ids
    from ragtrials.llm.merged import merged_folder
    from ragtrials.llm.vllm_engine import VLLMEngine

    grows = bool(added_ids(model))
    weights = merged_folder(model, None, settings.common.dtype) if grows else model.folder
    return VLLMEngine(model, settings, weights, adapters)


def _load_whole(model: ResolvedModel, settings: VLLMSettings, folder: Path) -> Engine:
    """A model of its own: a full folder, or the base model with an adapter added up."""
    from ragtrials.llm.merged import merged_folder
    from ragtrials.llm.vllm_engine import VLLMEngine

    if is_adapter(folder):
        return VLLMEngine(model, settings, merged_folder(model, folder, settings.common.dtype))
    return _load_base(resolve_model(str(folder), model.tokens), settings, {})


class SoleModelEngine:
    """Loads the model of the first role that speaks; fulfils `ragtrials.program.Engine`.

    A trained method can have roles that only training asks (Self-RAG's critic), so which model is needed is
    seen when one is asked.

    Args:
        signature: That of the base model; trained weights are named by who trained them.
        base: Gives the engine of all roles that have none of their own.
        own: The same by role. Roles of one model have one and the same loader.
    """

    def __init__(
        self,
        signature: Mapping[str, Any],
        base: Callable[[], Engine],
        own: Mapping[str, Callable[[], Engine]],
    ) -> None:
        self._signature = dict(signature)
        self._base = base
        self._own = dict(own)
        self._first: str | None = None

    @property
    def signature(self) -> Mapping[str, Any]:
        """The base model's signature."""
        return dict(self._signature)

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """One completion per request, in order.

        Raises:
            UserError: A second model would have to be loaded, or a setting of a request is not possible.
            RunFailure: A prompt does not fit.
        """
        return self._engine(requests).generate(requests, seeds) if requests else []

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """For each request, in order, the log-probabilities of its continuation's tokens.

        Raises:
            UserError: A second model would have to be loaded.
            RunFailure: A prompt does not fit.
        """
        return self._engine(requests).score(requests) if requests else []

    def _engine(self, requests: Sequence[Generate] | Sequence[Score]) -> Engine:
        if self._first is None:
            self._first = requests[0].role
        load = self._loader(self._first)
        for request in requests:
            if self._loader(request.role) is not load:
                raise UserError(
                    f"--engine vllm holds one model, but roles {self._first!r} and {request.role!r} have "
                    "weights that cannot share one: use --engine hf"
                )
        return load()

    def _loader(self, role: str) -> Callable[[], Engine]:
        return self._own.get(role, self._base)
