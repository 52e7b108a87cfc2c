"""The settings of `smart_rag`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.methods._smart_rewards import Correctness
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.settings import Optimisation


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The data of supervised fine-tuning before PPO (appendix A.2, as far as it is known).

    Attributes:
        label_mode: Which first action a training question is shown with. "skr" (self-knowledge): an answer
            if the untrained model answers it without retrieval, else a search. "random": drawn by question.
            "all": both, so that PPO alone learns the decision.
        known_by: The score that says whether the untrained model's answer is right.
        samples: Answers that the untrained model gives to a question: a greedy one, or so many drawn ones,
            of which more than half have to be right.
        temperature: Of drawn ones.
        balance: Whether as many answers as searches are shown first; the larger part loses rows.
        queries: What a search is shown with: queries by "rules" over the question
            (`ragtrials.methods._rewrite_labels`), what the untrained "model" writes, or the "question". The
            paper takes queries that GPT-3.5 wrote.
        observations: Answers from observations are shown for "all" questions, or for those alone whose
            observation has a "hit".
        examples: The first so many of the training examples are used; all if none. PPO uses all.
    """

    label_mode: Literal["skr", "random", "all"] = "skr"
    known_by: Literal["em", "acc"] = "em"
    samples: int = 1
    temperature: float = 0.7
    balance: bool = True
    queries: Literal["rules", "model", "question"] = "rules"
    observations: Literal["all", "hit"] = "all"
    examples: int | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UserError(f"warm_up.samples must be at least 1, not {self.samples}")
        if self.samples > 1 and not self.temperature > 0:
            raise UserError(f"warm_up.temperature must be above 0 for {self.samples} samples")
        if self.examples is not None and self.examples < 1:
            raise UserError(f"warm_up.examples must be at least 1, or none, not {self.examples}")


@dataclass(frozen=True, slots=True)
class SmartConfig:
    """Settings.

    Attributes:
        quota: How often a question may retrieve (N). When it is used up the policy has to answer.
        k: Passages of a retrieval.
        alpha: What a retrieval costs, in units of the reward: EM + F1, which is 2 at most.
        malformed: What an action without a tag earns.
        correct: What an answer earns: "em_f1", or "em" alone; "auto" is EM + F1, but EM where the task
            chooses among given answers.
        strict: Whether a tag in other case or spacing is malformed.
        gate: Who decides whether to retrieve. "policy" does; "always" and "never" are controls, and "random"
            is one that retrieves at a given rate, each with the same policy for queries and answers.
        threshold: If set, and the policy decides, it retrieves if p([Search]) is above it, with a request of
            its own for that probability; if none, it does what it writes.
        rate: Share of the decisions that the random gate takes for a retrieval.
        shots: Few-shot examples that the untrained model is shown when it is asked what it knows.
        passage_words: Words of each passage's text that an observation shows; all if none.
        action_tokens: Longest action.
        examples: Training examples; all of the split if none.
        warm_up: The data of supervised fine-tuning.
        sft: Its optimisation.
        ppo: PPO.
    """

    quota: int = 1
    k: int = 4
    alpha: float = 0.2
    malformed: float = -1.0
    correct: Correctness = "auto"
    strict: bool = False
    gate: Literal["policy", "always", "never", "random"] = "policy"
    threshold: float | None = None
    rate: float = 0.5
    shots: int = 0
    passage_words: int | None = None
    action_tokens: int = 50
    examples: int | None = None
    warm_up: WarmUp = field(default_factory=WarmUp)
    sft: Optimisation = field(default_factory=Optimisation)
    ppo: Ppo = field(default_factory=Ppo)

    def __post_init__(self) -> None:
        for name in ("k", "action_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("quota", "shots"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be at least 0, not {getattr(self, name)}")
        for name in ("passage_words", "examples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, or none, not {value}")
        if not 0 <= self.rate <= 1:
            raise UserError(f"rate must be in [0, 1], not {self.rate}")
        if self.threshold is not None and self.gate != "policy":
            raise UserError(f"threshold is the policy's: it decides nothing under gate={self.gate}")
        if self.ppo.credit != "episode":
            raise UserError("ppo.credit must be episode: a search earns nothing but what its answer earns")
