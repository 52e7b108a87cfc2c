"""The ready settings of `rag_ddr` and of what is derived from it, and the paper's card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragtrials.method import Paper
from ragtrials.methods._ddr_config import DdrConfig, Draws
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation

CARD = Paper(
    title="RAG-DDR: Optimizing Retrieval-Augmented Generation Using Differentiable Data Rewards",
    url="arXiv:2410.13509",
    reported={},
    deviations=(
        "our own prompt wording; the refiner sees a passage's title, and the generator numbered passages",
        "trained on the training part of the evaluated task; the paper mixes ten other datasets",
        "the reward is the task's main score (reward=official gives the released code's for its sets)",
        "answers in the refiner's rollouts are as long as at evaluation; the released code allows 100 tokens",
        "no presence penalty; one BOS where the released code has two",
        "a pair's draws are seeded by its question; the released code draws from one stream",
        "prompts of training are those of evaluation; the released code drops exemplars and shortens more",
        "the laptop profile judges 3 passages, samples 8 answers and trains LoRA on a third of the layers",
    ),
)

# Released scripts (`train_gen`, `train_kr`), Llama-3-8B-Instruct: r 8, alpha 32 on q and v (3,407,872
# numbers), lr 5e-5 falling to 0 without warm-up, clip 1.0, one epoch; 8 pairs a step for the generator, 32
# for the refiner. Their dropout of 0.1 had no effect, as trl switches it off. Beta 0.1.
_PAPER = DdrConfig(
    generator=Optimisation(
        lora=Lora(r=8, alpha=32), learning_rate=5e-5, batch_size=8, micro_batch=1, save_steps=100
    ),
    refiner=Optimisation(
        lora=Lora(r=8, alpha=32), learning_rate=5e-5, batch_size=32, micro_batch=2, save_steps=50
    ),
)
_THIRD = Lora(r=16, alpha=32, targets=ALL_LINEAR, last_layers=10)
# A small model answers in sentences unless it is shown how, so that hardly a draw would be right: with
# examples in the prompt it starts where vanilla_rag is. Few steps need a high learning rate.
_LAPTOP = DdrConfig(
    k=3,
    candidates=3,
    need=3,
    shots=4,
    training_fill="none",
    verdict_tokens=4,
    passage_words=60,
    examples=64,
    rollout=Draws(temperatures=(0.6, 1.0), draws=2, top_p=0.95, max_new_tokens=16, refiner_temperature=0.0),
    generator=Optimisation(
        lora=_THIRD, learning_rate=1e-3, warmup=0.1, epochs=2, batch_size=4, micro_batch=2, save_steps=5
    ),
    refiner=Optimisation(
        lora=_THIRD, learning_rate=1e-3, warmup=0.1, batch_size=8, micro_batch=4, save_steps=5
    ),
)
_SMOKE = replace(
    _LAPTOP,
    k=2,
    candidates=2,
    need=2,
    shots=1,
    max_new_tokens=8,
    examples=6,
    rollout=Draws(temperatures=(1.0,), draws=2, top_p=1.0, max_new_tokens=8, refiner_temperature=0.0),
    generator=Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=2, micro_batch=1, save_steps=1),
    refiner=Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=2, micro_batch=1, save_steps=1),
)
PROFILES: Mapping[str, DdrConfig] = {"paper": _PAPER, "laptop": _LAPTOP, "smoke": _SMOKE}


def variant(**changes: Any) -> dict[str, DdrConfig]:
    """All profiles with some settings changed."""
    return {name: replace(config, **changes) for name, config in PROFILES.items()}
