"""The settings of `self_rag`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.methods._self_scores import Weights
from ragtrials.training.settings import Optimisation


@dataclass(frozen=True, slots=True)
class Labels:
    """Where reflection labels come from (§3.2.1).

    Attributes:
        labeller: Who labels what the critic learns from. "rules": what gold answers, gold passages and the
            untrained model's own answers say (`ragtrials.methods._self_rules`). "model": an instruction-tuned
            model is asked; the paper asks GPT-4.
        model: The model that is asked, as `--model` takes it; the untrained model itself if none.
        retrieve, relevance, support, utility: How many labels of each kind are made for the critic, of
            training examples, passages and answers drawn at random; all if none.
        critic: Whether a critic is trained on these labels and labels the generator's data. Without one the
            labeller labels them itself.
        reuse: Whether the generator's data take these labels where there are any, and the critic's where
            there are none. The paper takes the critic's everywhere; a small critic calls what is rare by
            the commoner label.
    """

    labeller: Literal["rules", "model"] = "rules"
    model: str | None = None
    retrieve: int | None = None
    relevance: int | None = None
    support: int | None = None
    utility: int | None = None
    critic: bool = True
    reuse: bool = False

    def __post_init__(self) -> None:
        for name in ("retrieve", "relevance", "support", "utility"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"labels.{name} must be at least 1, or none, not {value}")
        if self.model is not None and self.labeller != "model":
            raise UserError("labels.model is asked under labels.labeller=model alone")


@dataclass(frozen=True, slots=True)
class Mix:
    """Which rows the generator is trained on (appendix A.1).

    Attributes:
        unretrieved: Share of the rows without retrieval that are kept.
        partial: How often a relevant passage that supports the answer in part is taken, if none does fully.
        unsupported: Likewise a relevant passage that does not support it, if none of the others was taken;
            after that it is an irrelevant one. Where there is no irrelevant one, the best there is.
    """

    unretrieved: float = 0.4
    partial: float = 0.7
    unsupported: float = 0.25

    def __post_init__(self) -> None:
        for name in ("unretrieved", "partial", "unsupported"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"mix.{name} must be in [0, 1], not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class SelfConfig:
    """Settings.

    Attributes:
        k: Passages of a retrieval; each is read by itself.
        mode: "adaptive" retrieves if the model wants to; "always" and "never" do not ask it.
        delta: Under "adaptive", it retrieves if p(Retrieval) / (p(Retrieval) + p(No Retrieval)) is above it.
            Under decoding "long" it decides in every mode whether more passages follow a segment.
        weights: What the parts of a segment's score weigh.
        decoding: "short" answers in one segment, "long" in several, by a beam over segments.
        beam: Under "long", answers that are followed.
        depth: Under "long", segments of an answer at most.
        aggregate: "best" takes the answer from the passage with the highest score; "closed" adds up the
            scores of equal answers, for tasks that choose among given answers.
        prompt: "chat" is the model's own chat template, "released" the form of the released checkpoints.
        max_new_tokens: Longest segment.
        passage_words: Words of each passage's text that are shown; all if none.
        shots: Few-shot examples that the untrained model is shown when rules ask what it knows.
        examples: Training examples; all of the split if none.
        labels: Where reflection labels come from.
        mix: Which rows the generator is trained on.
        critic, generator: Optimisation of the two.
    """

    k: int = 5
    mode: Literal["adaptive", "always", "never"] = "adaptive"
    delta: float = 0.2
    weights: Weights = field(default_factory=Weights)
    decoding: Literal["short", "long"] = "short"
    beam: int = 2
    depth: int = 7
    aggregate: Literal["best", "closed"] = "best"
    prompt: Literal["chat", "released"] = "chat"
    max_new_tokens: int = 100
    passage_words: int | None = None
    shots: int = 0
    examples: int | None = None
    labels: Labels = field(default_factory=Labels)
    mix: Mix = field(default_factory=Mix)
    critic: Optimisation = field(default_factory=Optimisation)
    generator: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        for name in ("k", "beam", "depth", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.shots < 0:
            raise UserError(f"shots must be at least 0, not {self.shots}")
        for name in ("passage_words", "examples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, or none, not {value}")
        if self.decoding == "long" and self.aggregate == "closed":
            raise UserError("aggregate=closed adds up whole answers: set decoding=short")
