"""BGM: a bridge selects passages for a fine-tuned generator, and learns by PPO from its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.method import Paper
from ragtrials.methods._agents import CooperatingAgents
from ragtrials.methods._agents_config import AgentsConfig
from ragtrials.methods._agents_profiles import variant


class Bgm(CooperatingAgents):
    """Retrieve, select, answer; the selector is trained by PPO, the generator by SFT alone."""

    name = "bgm"
    roles = ("selector", "generator")
    PROFILES: ClassVar[Mapping[str, AgentsConfig]] = variant(
        agents=("selector", "generator"), train_agents=("selector",), sharing="own"
    )
    paper = Paper(
        title="Bridging the Preference Gap between Retrievers and LLMs",
        url="arXiv:2401.06954",
        # As re-run by MMOA-RAG on Llama-3-8B-Instruct (arXiv:2501.15228, Table 1).
        reported={"hotpotqa/f1": 0.4454, "twowiki/f1": 0.4329, "ambigqa/f1": 0.4576},
        deviations=(
            "settings of MMOA-RAG, whose baseline it is: its selector prompt and its penalty for ill-formed "
            "selections",
            "warm start on selections by the words of the answer; the paper searches silver passages",
            "bridge and generator are one model with an adapter each; the paper's generator is not trained",
            "a passage is named once; the paper's bridge may repeat one",
            "the selector is trained by itself; MMOA-RAG's scripts evaluate the jointly trained one here",
        ),
    )
