"""What smoke profiles share: they show that a training runs, in seconds."""

from __future__ import annotations

from ragtrials.training.settings import Lora, Optimisation

SMOKE_UPDATE = Optimisation(lora=Lora(r=4), learning_rate=1e-3, batch_size=4, micro_batch=2, save_steps=1)
