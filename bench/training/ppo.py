"""Proximal policy optimisation of one or several agents from sampled turns.

Schulman et al. 2017 (arXiv:1707.06347) with a penalty for leaving a reference policy (Ziegler et al. 2019),
as MMOA-RAG (arXiv:2501.15228, §3.4) uses it: each agent's responses are trajectories, and their rewards are
what the agents share plus what is their own. The mathematics is in `advantages`, `losses` and `kl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor
from transformers import get_scheduler

from ragtrials.errors import RunFailure
from ragtrials.seeding import derive_seed
from ragtrials.training.actor_critic import ActorCritic, Row
from ragtrials.training.advantages import gae, shaped_rewards, whiten
from ragtrials.training.losses import policy_loss, token_weights, value_loss
from ragtrials.training.ppo_report import Pass, report
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.trajectories import response_mask, trajectories
from ragtrials.training.turns import Turn


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of B turns, and what was known of their T tokens when they were sampled; 0 on padding.

    Attributes:
        rows: The turns, ready to be read.
        mask: (B, T) bool, real tokens.
        roles: (B) int64, the turns' roles, numbered.
        old: (B, T) Log-probabilities under the policy that sampled.
        reference: (B, T) Log-probabilities under the reference.
        entropy: (B, T) Entropy of the policy that sampled.
        values: (B, T) The critic's values.
        advantages: (B, T) Whitened advantages.
        returns: (B, T) What the values should have been.
    """

    rows: list[Row]
    mask: Tensor
    roles: Tensor
    old: Tensor
    reference: Tensor
    entropy: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor


class PPO:
    """Learns from one buffer of turns after another.

    Args:
        models: Actors, reference and critic.
        settings: How to learn.
        seed: Decides the order of turns in each pass.
        mixed: Whether to compute in bfloat16 where that is safe (mixed precision).

    Attributes:
        beta: The present weight of the KL penalty.
        taken: PPO steps so far.
    """

    def __init__(self, models: ActorCritic, settings: Ppo, seed: int, mixed: bool = False) -> None:
        self.models = models
        self.settings = settings
        self.beta = settings.kl.init
        self.taken = 0
        self._seed = seed
        self._parameters = list(models.parameters().values())
        update = settings.update
        cpu = self._parameters[0].device.type == "cpu"
        self._accelerator = Accelerator(mixed_precision="bf16" if mixed else "no", cpu=cpu)
        # Weight decay is for matrices, as in transformers' trainer: not for biases, norms, the value head.
        matrices = [p for p in self._parameters if p.dim() > 1]
        vectors = [p for p in self._parameters if p.dim() <= 1]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": update.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=update.learning_rate,
            betas=(0.9, 0.999),
            eps=1e-8,
        )
        self._schedule = get_scheduler(
            update.schedule, self._optimizer, ceil(update.warmup * settings.steps), settings.steps
        )

    def step(self, turns: Sequence[Turn]) -> dict[str, float]:
        """Learn from a buffer of turns that the present policies sampled.

        Args:
            turns: B turns of trained roles; those of an episode in the order in which they were taken.

        Returns:
            Scalars of the step, see `ragtrials.training.ppo_report`.

        Raises:
            RunFailure: A loss or a gradient is not a number.
        """
        with torch.no_grad():
            buffer = self._look(turns)
        passes = [
            self._update([buffer.rows[place] for place in minibatch], buffer)
            for epoch in range(self.settings.update.epochs)
            for minibatch in self._minibatches(len(turns), epoch)
        ]
        scalars = report(buffer, passes, self.beta, self._schedule.get_last_lr()[0])
        self.beta = self.settings.kl.updated(self.beta, scalars["kl"], len(turns))
        self._schedule.step()
        self.taken += 1
        return scalars

    def _look(self, turns: Sequence[Turn]) -> Buffer:
        """Everything about a buffer that stays as it is while the policies learn from it."""
        settings, mask = self.settings, response_mask(turns)
        with self._accelerator.autocast():
            rows = self.models.rows(turns)
        old, reference, entropy, values = (torch.zeros(mask.shape) for _ in range(4))
        for batch in self.models.micro_batches(rows):
            with self._accelerator.autocast():
                said = self.models.actor(batch)
                found = (said.logprobs, self.models.reference(batch), said.entropy)
                judged = self.models.values(batch) if said.values is None else said.values
            for whole, part in zip((old, reference, entropy, values), (*found, judged), strict=True):
                whole[[row.place for row in batch], : part.shape[1]] = part.float().cpu()
        scores = torch.tensor([turn.reward for turn in turns])
        rewards = shaped_rewards(scores, old - reference, mask, self.beta, settings.kl_at)
        advantages, returns = self._credit(turns, rewards, values)
        names = sorted({turn.role for turn in turns})
        roles = torch.tensor([names.index(turn.role) for turn in turns])
        if settings.whiten != "none":
            advantages = whiten(advantages, mask, roles if settings.whiten == "role" else None)
        return Buffer(rows, mask, roles, old, reference, entropy, values, advantages, returns)

    def _credit(self, turns: Sequence[Turn], rewards: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and returns (B, T) of the trajectories that the turns make up."""
        places, real = trajectories(turns, self.settings.credit)
        advantages, returns = torch.zeros_like(values), torch.zeros_like(values)
        along = gae(
            rewards.flatten()[places], values.flatten()[places], real, self.settings.gamma, self.settings.lam
        )
        for whole, part in zip((advantages, returns), along, strict=True):
            whole.view(-1)[places[real]] = part[real]
        return advantages, returns

    def _minibatches(self, turns: int, epoch: int) -> list[list[int]]:
        """The turns in a new order, cut into minibatches: agents are mixed as chance has it."""
        generator = torch.Generator().manual_seed(derive_seed(self._seed, self.taken, epoch))
        order: list[int] = torch.randperm(turns, generator=generator).tolist()
        size = self.settings.update.batch_size
        return [order[start : start + size] for start in range(0, turns, size)]

    def _update(self, rows: Sequence[Row], buffer: Buffer) -> Pass:
        """One step of the optimiser on a minibatch; the gradient is added up over its micro-batches."""
        settings, device = self.settings, self._parameters[0].device
        places = torch.tensor([row.place for row in rows])
        shares = torch.zeros_like(buffer.old)
        shares[places] = token_weights(buffer.mask[places], settings.weigh, buffer.roles[places]).float()
        losses = {"policy_loss": 0.0, "value_loss": 0.0}
        clipped: list[tuple[Tensor, Tensor]] = []
        for batch in self.models.micro_batches(rows):
            at, width = [row.place for row in batch], max(row.length for row in batch)
            mask, old, values, advantages, returns, share = (
                x[at, :width].to(device)
                for x in (
                    buffer.mask,
                    buffer.old,
                    buffer.values,
                    buffer.advantages,
                    buffer.returns,
                    shares,
                )
            )
            with self._accelerator.autocast():
                said = self.models.actor(batch)
            surrogate, cut = policy_loss(said.logprobs, old, advantages, settings.clip, mask)
            loss = policy = (surrogate * share).sum()
            if settings.entropy_weight:
                loss = loss - settings.entropy_weight * (said.entropy * share).sum()
            judged = said.values
            if judged is None:
                self._accelerator.backward(loss)
                loss = torch.zeros((), device=device)
                with self._accelerator.autocast():
                    judged = self.models.values(batch)
            value = (value_loss(judged, values, returns, settings.value_clip, mask) * share).sum()
            self._accelerator.backward(loss + settings.value_weight * value)
            losses["policy_loss"] += policy.item()
            losses["value_loss"] += value.item()
            clipped.append((torch.tensor(at), (cut & mask).sum(dim=-1).cpu()))
        norm = float(self._accelerator.clip_grad_norm_(self._parameters, settings.update.clip))
        if not all(map(torch.isfinite, map(torch.tensor, (norm, *losses.values())))):
            raise RunFailure(
                f"the training loss is not a number at PPO step {self.taken + 1}: lower learning_rate"
            )
        self._optimizer.step()
        self._optimizer.zero_grad()
        return Pass(losses["policy_loss"], losses["value_loss"], norm, clipped)

    def state(self) -> dict[str, Any]:
        """All that another process needs to go on as this one would: weights, optimiser, schedule, beta."""
        return {
            "taken": self.taken,
            "beta": self.beta,
            "parameters": {name: p.detach().clone() for name, p in self.models.parameters().items()},
            "optimizer": self._optimizer.state_dict(),
            "schedule": self._schedule.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state.

        Raises:
            RunFailure: It is the state of other models.
        """
        own = self.models.parameters()
        if own.keys() != state["parameters"].keys():
            raise RunFailure("the saved PPO step is of other weights: train with --overwrite")
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state["parameters"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self._schedule.load_state_dict(state["schedule"])
        self.taken, self.beta = state["taken"], state["beta"]
