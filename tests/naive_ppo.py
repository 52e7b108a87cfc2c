"""One step of PPO once more, as slowly and plainly as it can be written: float64, one token at a time.

Nothing of `ragtrials.training` computes here. Policies are whole weight matrices, W + alpha / r · B A where
an adapter is; every sequence is read alone, whole and without padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ragtrials.seeding import derive_seed
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.turns import Turn


def whole_weights(
    base: Mapping[str, Tensor], trained: Mapping[str, Tensor], scale: float
) -> dict[str, Tensor]:
    """The weights of a policy, by their names in the plain model.

    Args:
        base: The plain model's weights.
        trained: "actor.…" parameters: LoRA's A and B of some of them, or all weights.
        scale: alpha / r.
    """
    whole = dict(base)
    for name, value in trained.items():
        own = name.removeprefix("actor.")
        if ".lora_A." in own:
            place = own.split(".lora_A.")[0] + ".weight"
            whole[place] = base[place] + scale * trained[name.replace("lora_A", "lora_B")] @ value
        elif name.startswith("actor.") and ".lora_" not in own:
            whole[own] = value
    return whole


@dataclass
class NaivePpo:
    """The algorithm with its state.

    Attributes:
        model: A plain float64 model, whose own weights are the base.
        base: Its weights.
        trained: What is trained, float64 leaves with gradients, by the names of `ActorCritic.parameters`.
        reference: The reference's "actor.…" parameters; {} for the base.
        settings: PPO's settings; token weights and a shared, local critic.
        seed: That of the permutations.
        scale: LoRA's alpha / r.
        beta: Weight of the KL penalty.
    """

    model: Any
    base: Mapping[str, Tensor]
    trained: dict[str, Tensor]
    reference: Mapping[str, Tensor]
    settings: Ppo
    seed: int
    scale: float
    beta: float
    moments: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    updates: int = 0

    def read(
        self, turn: Turn, trained: Mapping[str, Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Log-probability, entropy and value of each token of a response."""
        weights = whole_weights(self.base, trained, self.scale)
        ids = torch.tensor([turn.prompt_ids + turn.response_ids])
        output = torch.func.functional_call(
            self.model, weights, (), {"input_ids": ids, "output_hidden_states": True, "use_cache": False}
        )
        logprobs, entropies, values = [], [], []
        for at, token in enumerate(turn.response_ids, start=len(turn.prompt_ids)):
            logits = output.logits[0, at - 1] / self.settings.temperature
            limited = self.settings.constrained and turn.allowed
            choices = list(turn.allowed) if limited else list(range(len(logits)))
            every = logits[choices] - logits[choices].logsumexp(0)
            logprobs.append(every[choices.index(token)])
            entropies.append(-(every.exp() * every).sum())
            state = output.hidden_states[-1][0, at - 1]
            if "value.weight" in trained:
                values.append(state @ trained["value.weight"] + trained["value.bias"])
        return logprobs, entropies, values

    def step(self, turns: Sequence[Turn]) -> None:
        """Look at a buffer, give credit, and learn."""
        settings = self.settings
        with torch.no_grad():
            seen = [self.read(turn, self.trained) for turn in turns]
            held = [self.read(turn, self.reference)[0] for turn in turns]
        old = [[float(x) for x in logprobs] for logprobs, _, _ in seen]
        values = [[float(x) for x in said] for _, _, said in seen]
        rewards = []
        for turn, ours, theirs in zip(turns, old, held, strict=True):
            costs = [self.beta * (a - float(b)) for a, b in zip(ours, theirs, strict=True)]
            if settings.kl_at == "end":
                costs = [0.0] * (len(costs) - 1) + [sum(costs)]
            earned = [-cost for cost in costs]
            earned[-1] += turn.reward
            rewards.append(earned)
        advantages, returns = self.credit(turns, rewards, values)
        if settings.whiten == "all":
            advantages = whitened(advantages)
        elif settings.whiten == "role":
            for role in {turn.role for turn in turns}:
                rows = [n for n, turn in enumerate(turns) if turn.role == role]
                for row, new in zip(rows, whitened([advantages[n] for n in rows]), strict=True):
                    advantages[row] = new
        for epoch in range(settings.update.epochs):
            generator = torch.Generator().manual_seed(derive_seed(self.seed, 0, epoch))
            order = torch.randperm(len(turns), generator=generator).tolist()
            for start in range(0, len(turns), settings.update.batch_size):
                places = order[start : start + settings.update.batch_size]
                self.descend(turns, places, old, values, advantages, returns)

    def credit(
        self, turns: Sequence[Turn], rewards: list[list[float]], values: list[list[float]]
    ) -> tuple[list[list[float]], list[list[float]]]:
        """Advantages by their definition, a sum over all later tokens of the trajectory."""
        gamma, lam = self.settings.gamma, self.settings.lam
        paths: dict[Any, list[tuple[int, int]]] = {}
        for row, turn in enumerate(turns):
            key = row if self.settings.credit == "turn" else ("episode", turn.episode)
            paths.setdefault(key, []).extend((row, at) for at in range(len(turn.response_ids)))
        advantages = [[0.0] * len(said) for said in values]
        returns = [[0.0] * len(said) for said in values]
        for path in paths.values():
            after = [*[values[row][at] for row, at in path][1:], 0.0]
            deltas = [
                rewards[row][at] + gamma * later - values[row][at]
                for (row, at), later in zip(path, after, strict=True)
            ]
            for t, (row, at) in enumerate(path):
                advantages[row][at] = sum((gamma * lam) ** n * d for n, d in enumerate(deltas[t:]))
                returns[row][at] = advantages[row][at] + values[row][at]
        return advantages, returns

    def descend(
        self,
        turns: Sequence[Turn],
        places: Sequence[int],
        old: list[list[float]],
        values: list[list[float]],
        advantages: list[list[float]],
        returns: list[list[float]],
    ) -> None:
        """The loss of a minibatch as a mean over its tokens, its gradient, and AdamW."""
        settings = self.settings
        losses = []
        for row in places:
            now = self.read(turns[row], self.trained)
            for t, (logprob, entropy, value) in enumerate(zip(*now, strict=True)):
                ratio, advantage = (logprob - old[row][t]).exp(), advantages[row][t]
                surrogate = ratio * advantage
                if settings.clip is not None:
                    bounded = ratio.clamp(1 - settings.clip, 1 + settings.clip) * advantage
                    surrogate = torch.minimum(surrogate, bounded)
                error = (value - returns[row][t]) ** 2
                if settings.value_clip is not None:
                    near = value.clamp(
                        values[row][t] - settings.value_clip, values[row][t] + settings.value_clip
                    )
                    error = torch.maximum(error, (near - returns[row][t]) ** 2)
                losses.append(-surrogate + settings.value_weight * error - settings.entropy_weight * entropy)
        gradients = torch.autograd.grad(
            sum(losses) / len(losses), list(self.trained.values()), allow_unused=True
        )
        found = {
            name: torch.zeros_like(weight) if gradient is None else gradient
            for (name, weight), gradient in zip(self.trained.items(), gradients, strict=True)
        }
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in found.values()))
        self.updates += 1
        with torch.no_grad():
            for name, weight in self.trained.items():
                gradient = found[name] * min(1.0, settings.update.clip / (norm + 1e-6))
                first, second = self.moments.get(name, (torch.zeros_like(weight), torch.zeros_like(weight)))
                first = 0.9 * first + 0.1 * gradient
                second = 0.999 * second + 0.001 * gradient**2
                self.moments[name] = (first, second)
                if weight.dim() > 1:
                    weight *= 1 - settings.update.learning_rate * settings.update.weight_decay
                even = first / (1 - 0.9**self.updates)
                size = (second / (1 - 0.999**self.updates)).sqrt() + 1e-8
                weight -= settings.update.learning_rate * even / size


def whitened(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Mean 0 and unbiased variance 1 over all tokens."""
    flat = [x for row in rows for x in row]
    mean = sum(flat) / len(flat)
    variance = sum((x - mean) ** 2 for x in flat) / (len(flat) - 1)
    return [[(x - mean) / math.sqrt(variance + 1e-8) for x in row] for row in rows]
