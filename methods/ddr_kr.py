"""RAG-DDR's ablation that trains the refiner alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.methods._ddr import DataRewards
from ragtrials.methods._ddr_config import DdrConfig
from ragtrials.methods._ddr_profiles import CARD, variant


class DdrKr(DataRewards):
    """RAG-DDR with an untrained generator (Table 3, "only the knowledge refinement module")."""

    name = "ddr_kr"
    PROFILES: ClassVar[Mapping[str, DdrConfig]] = variant(train_agents=("refiner",))
    paper = CARD
