"""The fair control of RAG-DDR: the same rollouts, but fine-tuning on the better answer of each pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ragtrials.methods._ddr import DataRewards
from ragtrials.methods._ddr_config import DdrConfig
from ragtrials.methods._ddr_profiles import CARD, variant


class RejectionSft(DataRewards):
    """RAG-DDR's data without its loss: what is worse than the chosen answer is not looked at.

    Rejection sampling as a baseline of preference learning; not an experiment of the paper.
    """

    name = "rejection_sft"
    PROFILES: ClassVar[Mapping[str, DdrConfig]] = variant(objective="sft")
    paper = CARD
