"""RetRobust's fine-tuning: a reader that has seen bad evidence as often as good one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from ragtrials.method import Paper
from ragtrials.methods._reader import LAPTOP, SMOKE, EvidenceMix, FineTunedReader, ReaderConfig
from ragtrials.training.settings import Lora, Optimisation

THIRDS = EvidenceMix(1 / 3, 1 / 3, 1 / 3)


class RetRobust(FineTunedReader):
    """Retrieve-then-read, with a reader fine-tuned under top, low-ranked and random evidence."""

    name = "ret_robust"
    PROFILES: ClassVar[Mapping[str, ReaderConfig]] = {
        # §4 and the released settings: QLoRA r 64, alpha 16, 5 epochs, 2e-4 linear, about 1,000 examples
        # (single hop), one passage, a third of each kind of evidence.
        "paper": ReaderConfig(
            k=1,
            examples=1000,
            evidence_mix=THIRDS,
            sft=Optimisation(
                lora=Lora(r=64, alpha=16, dropout=0.1, targets=("q_proj", "k_proj", "v_proj", "o_proj")),
                learning_rate=2e-4,
                warmup=0.03,
                epochs=5,
                batch_size=16,
                micro_batch=2,
                save_steps=50,
            ),
        ),
        "laptop": replace(LAPTOP, evidence_mix=THIRDS),
        "smoke": replace(SMOKE, evidence_mix=THIRDS, low_rank=3),
    }
    paper = Paper(
        title="Making Retrieval-Augmented Language Models Robust to Irrelevant Context",
        url="arXiv:2310.01558",
        reported={},
        deviations=(
            "answers are learnt directly, without the paper's self-ask decompositions",
            "random evidence is what was found for another training question",
            "LoRA on unquantised weights; the paper quantises them to 4 bits",
        ),
    )
