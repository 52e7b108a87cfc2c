"""The settings of `mmoa_rag` and of the methods that train one of its agents."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.methods._agent_penalties import Penalties
from ragtrials.methods._selector_labels import Match
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.settings import Optimisation

AGENTS = ("rewriter", "selector", "generator")
"""All agents, in the order in which they act."""


@dataclass(frozen=True, slots=True)
class WarmStart:
    """What the agents are shown before they learn by themselves (appendix B).

    Attributes:
        rewrites: Where the rewriter's targets come from: "rules" over the question
            (`ragtrials.methods._rewrite_labels`), or the untrained "model" itself. The paper takes rewrites
            that a proprietary model made.
        match: When a passage is a target of the selector: it has a "word" of the answer, as the paper says,
            or the word anywhere, a "substring", as the released code does.
        shuffle: Whether candidates come in an order drawn for each question, so that the selector does not
            learn places instead of passages; else as they were found.
        examples: The first so many of the training examples are used; all if none. PPO uses all.
        agents: The agents that are shown something; all if none. Another begins as the untrained model
            answers.
    """

    rewrites: Literal["rules", "model"] = "rules"
    match: Match = "word"
    shuffle: bool = True
    examples: int | None = None
    agents: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.examples is not None and self.examples < 1:
            raise UserError(f"warm_start.examples must be at least 1, or none, not {self.examples}")
        if self.agents is not None and (not self.agents or not set(self.agents) <= set(AGENTS)):
            raise UserError(
                f"warm_start.agents names some of {', '.join(AGENTS)}: not {', '.join(self.agents)}"
            )


@dataclass(frozen=True, slots=True)
class AgentsConfig:
    """Settings.

    Attributes:
        k: Candidate passages; the rewriter's queries share them.
        agents: The agents that there are. Without a rewriter the question is searched; without a selector
            all candidates are read.
        train_agents: The agents that PPO trains; the others act with the weights that they have. All of
            `agents` if none.
        sharing: Whether the agents are one policy ("shared", as in the paper) or each has its own ("own").
        most_queries: Lines of the rewriter that are searched at most.
        give_up: With more lines than this the question is searched instead; never if none.
        blank_lines: Whether blank lines are dropped or searched ("keep", as in the released code).
        distinct: Whether a passage that two queries find is a candidate once; the paper keeps both.
        rewrite_tokens, selection_tokens, max_new_tokens: Longest output of rewriter, selector, generator.
        passage_words: Words of each passage's text that the generator reads; all if none.
        selector_words: Words of each passage's text that the selector sees; as many as the generator if none.
        examples: Training examples; all of the split if none.
        penalties: What each agent adds to the reward that they share.
        warm_start: The data of supervised fine-tuning.
        sft: Its optimisation.
        ppo: Multi-agent PPO.
    """

    k: int = 10
    agents: tuple[str, ...] = AGENTS
    train_agents: tuple[str, ...] | None = None
    sharing: Literal["shared", "own"] = "shared"
    most_queries: int = 4
    give_up: int | None = 8
    blank_lines: Literal["drop", "keep"] = "drop"
    distinct: bool = False
    rewrite_tokens: int = 100
    selection_tokens: int = 30
    max_new_tokens: int = 100
    passage_words: int | None = None
    selector_words: int | None = None
    examples: int | None = None
    penalties: Penalties = field(default_factory=Penalties)
    warm_start: WarmStart = field(default_factory=WarmStart)
    sft: Optimisation = field(default_factory=Optimisation)
    ppo: Ppo = field(default_factory=Ppo)

    def __post_init__(self) -> None:
        for name in ("k", "most_queries", "rewrite_tokens", "selection_tokens", "max_new_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("give_up", "passage_words", "selector_words", "examples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, or none, not {value}")
        known = [agent for agent in AGENTS if agent in self.agents]
        if self.agents != tuple(known) or "generator" not in known:
            raise UserError(
                f"agents are {', '.join(AGENTS)}, in this order and the generator always: "
                f"not {', '.join(self.agents)}"
            )
        if self.train_agents is not None and (
            not self.train_agents or any(agent not in self.agents for agent in self.train_agents)
        ):
            raise UserError(
                f"train_agents names agents out of {', '.join(self.agents)}: "
                f"not {', '.join(self.train_agents)}"
            )

    @property
    def learners(self) -> tuple[str, ...]:
        """The agents that PPO trains."""
        return self.agents if self.train_agents is None else self.train_agents
