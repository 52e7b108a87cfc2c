"""RA-DIT's fine-tuning of the language model: every passage makes a training instance of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ragtrials.method import Paper
from ragtrials.methods._reader import LAPTOP, SMOKE, FineTunedReader, ReaderConfig
from ragtrials.training.settings import Optimisation


class RaDit(FineTunedReader):
    """Retrieve-then-read, with a reader fine-tuned on gold answers under one passage at a time.

    The reader learns to use a passage that helps, and to answer from memory under one that does not.
    """

    name = "ra_dit"
    PROFILES: ClassVar[Mapping[str, ReaderConfig]] = {
        # Learning rate, schedule and batch as published (§3, from memory and not verified): 500 steps of 64.
        "paper": ReaderConfig(
            k=3,
            mode="per_doc",
            examples=10_667,
            sft=Optimisation(
                tuning="full",
                learning_rate=1e-5,
                schedule="cosine",
                warmup=0.4,
                batch_size=64,
                micro_batch=2,
                gradient_checkpointing=True,
                save_steps=100,
            ),
        ),
        # A third of the questions of `sft`, for as many instances and steps.
        "laptop": replace(LAPTOP, mode="per_doc", examples=40),
        "smoke": replace(SMOKE, mode="per_doc", examples=4),
    }
    paper = Paper(
        title="RA-DIT: Retrieval-Augmented Dual Instruction Tuning",
        url="arXiv:2310.01352",
        reported={},
        deviations=(
            "the language model alone is tuned, not the retriever, as in RAG-DDR's RA-DIT row",
            "the training part of the evaluated task instead of 20 instruction sets",
            "at evaluation the passages stand in one prompt; the paper averages the predictions under each",
        ),
    )
