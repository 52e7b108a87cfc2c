"""MMOA-RAG: rewriter, selector and generator are one model that learns by multi-agent PPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.method import Paper
from ragtrials.methods._agents import CooperatingAgents
from ragtrials.methods._agents_config import AgentsConfig
from ragtrials.methods._agents_profiles import PROFILES


class MmoaRag(CooperatingAgents):
    """Rewrite, retrieve, select, answer; three agents in one model, trained together by PPO."""

    name = "mmoa_rag"
    PROFILES: ClassVar[Mapping[str, AgentsConfig]] = PROFILES
    paper = Paper(
        title="Improving Retrieval-Augmented Generation through Multi-Agent Reinforcement Learning",
        url="arXiv:2501.15228",
        reported={
            "hotpotqa/f1": 0.4829,
            "hotpotqa/em": 0.3615,
            "twowiki/f1": 0.4640,
            "twowiki/em": 0.4152,
            "ambigqa/f1": 0.4859,
            "ambigqa/em": 0.3475,
        },
        deviations=(
            "our own prompt wording, one turn for each agent; the answer stands without asterisks",
            "rewrites of the warm start come from rules or the model itself, not from a proprietary model",
            "selected passages are numbered anew for the generator, as in the released code; Table 5 "
            "shows their old numbers",
            "the shared reward is the task's main score, F1 on the paper's tasks; yes and no count as there",
            "losses are means over a minibatch, not each micro-batch; none is left out for a large ratio",
            "PPO goes on with the warm start's adapter against a frozen copy of it; the released code merges "
            "it and starts a new one",
            "an agent that is not trained (train_agents) acts greedily while the others learn",
            "the laptop profile has 3 candidates, cut to 60 words (selector: 30), and LoRA on 6 layers",
        ),
    )
