"""The ready settings of `self_rag`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ragtrials.methods._self_config import Labels, Mix, SelfConfig
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation

# Appendix B and the released scripts, for Llama-2-7B: generator 3 epochs, 128 rows a step, learning rate
# 2e-5, linear, warm-up 0.03; critic 3 epochs, 16 rows, 2e-5, cosine, warm-up 0.01. All weights are tuned
# there; an adapter takes a learning rate ten times as high. PopQA reads ten passages, other sets five; delta
# 0.2, weights 1, 1, 0.5; 100 new tokens.
_ADAPTER = Lora(r=64, alpha=128, targets=ALL_LINEAR)
PAPER = SelfConfig(
    labels=Labels(retrieve=12594, relevance=19317, support=11181, utility=3831),
    critic=Optimisation(
        lora=_ADAPTER,
        learning_rate=2e-4,
        schedule="cosine",
        warmup=0.01,
        epochs=3,
        batch_size=16,
        micro_batch=2,
        gradient_checkpointing=True,
        save_steps=200,
    ),
    generator=Optimisation(
        lora=_ADAPTER,
        learning_rate=2e-4,
        warmup=0.03,
        epochs=3,
        batch_size=128,
        micro_batch=2,
        gradient_checkpointing=True,
        save_steps=100,
    ),
)
# The released checkpoints as they are: `ragtrials eval self_rag TASK --model DIR --profile released`.
RELEASED = replace(PAPER, prompt="released")
# A 135M model on two cores, on the passages that `sft` reads. Rows without retrieval all stay: they are few.
# One row in five is of a question that is known without passages, so p([Retrieval]) lies about 0.75 for all:
# between 0.57 and 0.85 for geo_pop's training questions, a quarter of them below 0.7. Hence its delta.
_SMALL = Optimisation(
    lora=Lora(r=16, alpha=32, targets=ALL_LINEAR),
    learning_rate=1e-3,
    warmup=0.1,
    batch_size=8,
    micro_batch=8,
    save_steps=10,
)
LAPTOP = SelfConfig(
    k=3,
    delta=0.7,
    max_new_tokens=16,
    passage_words=60,
    shots=4,
    examples=160,
    labels=Labels(relevance=80, support=80, utility=60, reuse=True),
    mix=Mix(unretrieved=1.0),
    critic=_SMALL,
    generator=replace(_SMALL, epochs=2),
)
SMOKE = replace(
    LAPTOP,
    k=2,
    delta=PAPER.delta,
    max_new_tokens=4,
    passage_words=20,
    shots=1,
    examples=4,
    labels=Labels(relevance=2, support=2, utility=2),
    critic=Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=4, micro_batch=2, save_steps=1),
    generator=Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=4, micro_batch=2, save_steps=1),
)
PROFILES: Mapping[str, SelfConfig] = {
    "paper": PAPER,
    "released": RELEASED,
    "laptop": LAPTOP,
    "smoke": SMOKE,
}
