"""Rewrite-Retrieve-Read: a rewriter learns by PPO from what a fine-tuned reader makes of its queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.method import Paper
from ragtrials.methods._agents import CooperatingAgents
from ragtrials.methods._agents_config import AgentsConfig
from ragtrials.methods._agents_profiles import variant


class RewriteRetrieveRead(CooperatingAgents):
    """Rewrite, retrieve, answer; the rewriter is trained by PPO, the reader by SFT alone."""

    name = "rewrite_retrieve_read"
    roles = ("rewriter", "generator")
    PROFILES: ClassVar[Mapping[str, AgentsConfig]] = variant(
        agents=("rewriter", "generator"), train_agents=("rewriter",), sharing="own"
    )
    paper = Paper(
        title="Query Rewriting for Retrieval-Augmented Large Language Models",
        url="arXiv:2305.14283",
        # As re-run by MMOA-RAG on Llama-3-8B-Instruct (arXiv:2501.15228, Table 1).
        reported={"hotpotqa/f1": 0.4632, "twowiki/f1": 0.4417, "ambigqa/f1": 0.4592},
        deviations=(
            "settings of MMOA-RAG, whose baseline it is: its penalty for many queries instead of the hit and "
            "form terms of the original reward",
            "rewriter and reader are one model with an adapter each; the original has a T5 before a frozen "
            "reader",
            "warm start on rewrites by rules, not by a proprietary model",
            "the rewriter is trained by itself; MMOA-RAG's scripts evaluate the jointly trained one here",
        ),
    )
