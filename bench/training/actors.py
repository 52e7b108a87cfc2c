"""The models of PPO on one base model in memory: actors, their reference, and those who only act."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ragtrials.errors import UserError
from ragtrials.llm.adapters import Adapters
from ragtrials.llm.loading import load_model
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.policy import is_adapter
from ragtrials.training import weights
from ragtrials.training.settings import Optimisation

CRITIC = "ppo_critic"
"""The name of the critic's adapter, which no role can have."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays whom.

    Attributes:
        trained: The trained policies: a name for each, and the roles that it plays. MMOA-RAG's three agents
            are one policy; with adapters of their own they are three.
        start: The folder that each trained policy begins with; one without begins as the base model.
        acting: The folders of roles that act without being trained; those without are the base model.
    """

    trained: Mapping[str, tuple[str, ...]]
    start: Mapping[str, Path] = field(default_factory=dict)
    acting: Mapping[str, Path] = field(default_factory=dict)

    @property
    def policies(self) -> dict[str, str]:
        """The trained policy of each role that has one."""
        return {role: policy for policy, roles in self.trained.items() for role in roles}


class Actors:
    """Actors with adapters on one model, or one actor that is a whole model.

    Args:
        base: The model that training starts from.
        cast: Who plays whom.
        settings: What is trained.
        own_critic: Whether there is an adapter for the critic, too.
        dtype: Number format of frozen weights.
        device: Where it runs.
        seed: Decides new adapters' A matrices.

    Raises:
        UserError: The weights that it is to begin with do not fit the settings.
        ValueError: A policy cannot be called so.

    Attributes:
        model: The causal language model, adapters inside it.
        adapters: Which adapter is in force; None with full tuning.
    """

    def __init__(
        self,
        base: ResolvedModel,
        cast: Cast,
        settings: Optimisation,
        own_critic: bool,
        dtype: str,
        device: str,
        seed: int,
    ) -> None:
        self.base = base
        self.cast = cast
        self.adapters: Adapters | None = None
        self._seed = seed
        self._peft: Any = None
        self._frozen_copy: Any = None
        if settings.tuning == "full":
            self._load_whole(settings, dtype, device)
        else:
            self._load_adapters(settings, own_critic, dtype, device)

    def _load_whole(self, settings: Optimisation, dtype: str, device: str) -> None:
        if len(self.cast.trained) > 1:
            raise UserError(
                "full tuning trains one policy: let the agents share it, or set ppo.update.tuning=lora"
            )
        (policy,) = self.cast.trained
        start = self.cast.start.get(policy)
        self.model = weights.load_trainable(self.base, start, settings, dtype, device, self._seed).eval()
        self._frozen_copy = copy.deepcopy(self.model).requires_grad_(False)

    def _load_adapters(self, settings: Optimisation, own_critic: bool, dtype: str, device: str) -> None:
        model = load_model(self.base, dtype, device)
        taken = {part for place, _ in model.named_modules() for part in place.split(".")}
        for policy in self.cast.trained:
            if not policy.isidentifier() or policy in taken:  # peft finds adapters by parts of names
                raise ValueError(f"policy {policy!r}: give it a name that is a word, and none of the model's")
        names: dict[str, str] = {}
        for policy, roles in self.cast.trained.items():
            start = self.cast.start.get(policy)
            self._add(model, policy, settings, start)
            names |= dict.fromkeys(roles, policy)
            if start is not None:
                self._add(model, _reference(policy), settings, start)
                names[_reference(policy)] = _reference(policy)
        acting = self.cast.acting
        for number, folder in enumerate(dict.fromkeys(acting.values())):
            self._add(model, f"ppo_acting{number}", settings, folder)
            names |= {role: f"ppo_acting{number}" for role, own in acting.items() if own == folder}
        if own_critic:
            self._add(model, CRITIC, settings, None)
            names[CRITIC] = CRITIC
        self.model = self._peft.get_base_model().eval()
        owners = {*self.cast.trained, CRITIC}
        for name, parameter in self.model.named_parameters():
            _, _, inside = name.partition(".lora_")  # "A.", the adapter's name, ".weight"
            parameter.requires_grad_(not owners.isdisjoint(inside.split(".")[1:2]))
        self.adapters = Adapters.live(self.model, names)

    def _add(self, model: Any, name: str, settings: Optimisation, start: Path | None) -> None:
        if start is not None and not is_adapter(start):
            raise UserError(
                "an adapter cannot be put on a fully trained model: set tuning=full for all stages"
            )
        self._peft = weights.add_adapter(
            model if self._peft is None else self._peft,
            name,
            settings.lora,
            start,
            self.base.name,
            self._seed,
        )

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """What is trained of the model, by name, an adapter of the critic included."""
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def changing(self) -> Sequence[str]:
        """Names of the parameters that differ between the model's uses."""
        if self.adapters is None:
            return list(self.parameters())
        return [name for name, _ in self.model.named_parameters() if ".lora_" in name]

    @contextmanager
    def speaking(self, policy: str) -> Iterator[Any]:
        """The model with one policy, or the critic's adapter, in force."""
        if self.adapters is not None:
            self.adapters.activate(self.adapters.name(self._role(policy)))
        yield self.model

    @contextmanager
    def referring(self, policy: str) -> Iterator[Any]:
        """The model as it was when training began."""
        if self.adapters is None:
            yield self._frozen_copy
            return
        self.adapters.activate(self.adapters.name(_reference(policy)))
        yield self.model

    def _role(self, policy: str) -> str:
        return self.cast.trained[policy][0] if policy in self.cast.trained else policy

    def save(self, tokenizer: Any, folder: Path) -> dict[str, Path]:
        """Write the trained policies; their folders by role.

        One policy is written into `folder` itself, several into a sub-folder each.
        """
        written: dict[str, Path] = {}
        for policy, roles in self.cast.trained.items():
            own = folder if len(self.cast.trained) == 1 else folder / policy
            if self.adapters is None:
                weights.save_weights(self.model, tokenizer, self.base, own)
            else:
                weights.save_adapter(self._peft, policy, self.base, own)
            written |= dict.fromkeys(roles, own)
        return written


def _reference(policy: str) -> str:
    return f"{policy}_reference"
