"""RAG-DDR's ablation that trains the generator alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.methods._ddr import DataRewards
from ragtrials.methods._ddr_config import DdrConfig
from ragtrials.methods._ddr_profiles import CARD, variant


class DdrGen(DataRewards):
    """RAG-DDR with an untrained refiner (Table 3, "only the generation module")."""

    name = "ddr_gen"
    PROFILES: ClassVar[Mapping[str, DdrConfig]] = variant(train_agents=("generator",))
    paper = CARD
