"""RAG-DDR: both agents of a RAG system learn by DPO from what their outputs do to the final answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.methods._ddr import DataRewards
from ragtrials.methods._ddr_config import DdrConfig
from ragtrials.methods._ddr_profiles import CARD, PROFILES


class RagDdr(DataRewards):
    """Refine the retrieved passages, then answer; generator and refiner trained by data rewards."""

    name = "rag_ddr"
    PROFILES: ClassVar[Mapping[str, DdrConfig]] = PROFILES
    paper = CARD
