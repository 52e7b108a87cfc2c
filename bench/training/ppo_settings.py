"""The settings of PPO: what is sampled, how credit is given, and how far a step may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.training.kl import KlControl
from ragtrials.training.settings import Optimisation


@dataclass(frozen=True, slots=True)
class Critic:
    """What estimates the return of a state. MMOA-RAG's paper writes a model of its own and leaves open what
    it sees; its released code has a linear head on the actor, which sees what the agent sees.

    Attributes:
        weights: "shared" is a linear head on the actor's last hidden states; "adapter" has a LoRA adapter of
            its own under the head; "model" a model of its own, tuned as the actor is.
        observation: "local" shows it the agent's own prompt and response; "central" also, in front of
            these, the prompts and responses of the agents before it in the episode.
    """

    weights: Literal["shared", "adapter", "model"] = "shared"
    observation: Literal["local", "central"] = "local"


@dataclass(frozen=True, slots=True)
class Ppo:
    """Proximal policy optimisation (Schulman et al. 2017) with a penalty for leaving the reference.

    Attributes:
        steps: PPO steps: each samples a buffer of episodes and learns from it. With 0 nothing is learnt,
            which is how the start is evaluated.
        questions: Episodes in a buffer.
        temperature: Of sampling. Probabilities of policy and reference are taken under it, too.
        top_p: Nucleus of sampling. Below 1 the ratio is biased: probabilities are of the whole distribution.
        gamma: Discount of later rewards, per token.
        lam: Lambda of the generalised advantage estimate.
        credit: "turn": every response is a trajectory of its own with its own reward (MMOA-RAG). "episode":
            all turns of a question are one trajectory, so that an early turn earns what comes later.
        whiten: Advantages get mean 0 and variance 1 over all tokens of a buffer, over those of each role, or
            not at all.
        clip: How far the ratio of probabilities may leave 1 before the gradient ends; None switches it off.
        value_clip: The same for values; None switches it off.
        value_weight: Weight of the critic's loss (MMOA-RAG's alpha; its code halves the loss once more).
        entropy_weight: Weight of an entropy bonus.
        weigh: What weighs the same in a loss: each "token", each "turn", or each "role".
        kl: How the weight of the penalty is controlled.
        kl_at: The penalty comes at every "token" or, summed up, at the "end" of a response.
        constrained: Probabilities of a constrained choice are taken over the allowed tokens alone, which is
            what it is sampled from; otherwise over the whole vocabulary.
        critic: The critic.
        update: How a buffer is learnt from: `epochs` passes over its turns, `batch_size` turns for an
            optimiser step, `micro_batch` of them at once; `save_steps` counts PPO steps, and schedule and
            warm-up run over all of these.
    """

    steps: int = 100
    questions: int = 128
    temperature: float = 1.0
    top_p: float = 1.0
    gamma: float = 1.0
    lam: float = 0.95
    credit: Literal["turn", "episode"] = "turn"
    whiten: Literal["all", "role", "none"] = "all"
    clip: float | None = 0.2
    value_clip: float | None = 0.2
    value_weight: float = 0.1
    entropy_weight: float = 0.0
    weigh: Literal["token", "turn", "role"] = "token"
    kl: KlControl = field(default_factory=KlControl)
    kl_at: Literal["token", "end"] = "token"
    constrained: bool = True
    critic: Critic = field(default_factory=Critic)
    update: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        if self.steps < 0 or self.questions < 1:
            raise UserError("ppo.steps must be at least 0 and ppo.questions at least 1")
        if not self.temperature > 0:
            raise UserError(f"ppo.temperature must be above 0, not {self.temperature}: PPO needs samples")
        for name in ("gamma", "lam"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"ppo.{name} must be in [0, 1], not {getattr(self, name)}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"ppo.top_p must be above 0 and at most 1, not {self.top_p}")
        for name in ("clip", "value_clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"ppo.{name} must be above 0, or none, not {value}")
        if self.value_weight < 0 or self.entropy_weight < 0:
            raise UserError("ppo.value_weight and ppo.entropy_weight must be at least 0")
        if self.update.lora.dropout:
            raise UserError("ppo.update.lora.dropout must be 0: sampling and learning have to see one policy")
        if self.critic.weights == "adapter" and self.update.tuning == "full":
            raise UserError("ppo.critic.weights=adapter needs ppo.update.tuning=lora: take shared or model")
