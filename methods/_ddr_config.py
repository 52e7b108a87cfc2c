"""The settings of `rag_ddr` and of what is derived from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.methods._ddr_documents import Fill
from ragtrials.training.settings import Optimisation


@dataclass(frozen=True, slots=True)
class Draws:
    """How an agent's output is perturbed (§3.2; the released settings are the defaults).

    Attributes:
        temperatures: Temperatures of the generator's draws.
        draws: Draws at each temperature, with documents and as many without.
        top_p: Nucleus of all draws.
        max_new_tokens: Longest draw.
        refiner_temperature: Temperature of the generator where the refiner's effect is measured; 0 is
            greedy.
    """

    temperatures: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    draws: int = 5
    top_p: float = 0.8
    max_new_tokens: int = 100
    refiner_temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperatures or min(self.temperatures) <= 0:
            raise UserError("rollout.temperatures must be above 0, and at least one")
        if self.draws < 1 or self.max_new_tokens < 1 or self.refiner_temperature < 0:
            raise UserError(
                "rollout.draws and rollout.max_new_tokens must be at least 1, refiner_temperature at least 0"
            )


@dataclass(frozen=True, slots=True)
class DdrConfig:
    """Settings.

    Attributes:
        k: Documents that the generator reads at most.
        candidates: Passages that are retrieved and judged at most.
        need: Passages that are judged at a time; judging ends when so many are kept.
        shots: Few-shot examples from the training split, shown without passages, to the generator alone.
        fill: What makes up for too few kept documents at evaluation: "none", "official" (the first
            retrieved ones, perhaps twice) or "unique".
        training_fill: The same in training.
        max_new_tokens: Longest answer.
        verdict_tokens: Longest verdict.
        passage_words: Words of each passage's text that are shown; all if None.
        examples: Training examples; all of the split if None.
        development: Held-out examples that pick the best step; 0 keeps the last step.
        rounds: How often both agents are trained, each time from where they are.
        train_agents: The agents that are trained, always the generator first (§3.3).
        objective: "dpo" on pairs, or "sft" on the better one of each pair.
        reward: "task" is the task's main score, "official" the released code's, for the sets it knows.
        rollout: The draws.
        beta: DPO's tie to the reference.
        generator: Optimisation of the generator.
        refiner: Optimisation of the refiner.
    """

    k: int = 5
    candidates: int = 100
    need: int = 5
    shots: int = 0
    fill: Fill = "none"
    training_fill: Fill = "official"
    max_new_tokens: int = 32
    verdict_tokens: int = 32
    passage_words: int | None = None
    examples: int | None = None
    development: int = 0
    rounds: int = 1
    train_agents: tuple[str, ...] = ("generator", "refiner")
    objective: Literal["dpo", "sft"] = "dpo"
    reward: Literal["task", "official"] = "task"
    rollout: Draws = field(default_factory=Draws)
    beta: float = 0.1
    generator: Optimisation = field(default_factory=Optimisation)
    refiner: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        for name in ("k", "candidates", "need", "max_new_tokens", "verdict_tokens", "rounds"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("passage_words", "examples"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UserError(f"{name} must be at least 1 or none, not {value}")
        if unknown := [name for name in self.train_agents if name not in ("generator", "refiner")]:
            raise UserError(f"train_agents: there is no agent {unknown[0]!r}, only generator and refiner")
        if not self.train_agents:
            raise UserError("train_agents is empty: name generator, refiner or both")
        if self.development < 0 or self.shots < 0 or not self.beta > 0:
            raise UserError("development and shots must be at least 0 and beta above 0")
