"""How weights are changed: the settings that supervised fine-tuning and DPO share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ragtrials.errors import UserError

ATTENTION = ("q_proj", "v_proj")
"""The projections that LoRA's paper adapts (Hu et al. 2021, §4.2), and peft's default for Llama."""
ALL_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""Every linear map of a Llama block."""


@dataclass(frozen=True, slots=True)
class Lora:
    """A low-rank adapter (Hu et al. 2021): W + alpha / r · B A, with B zero at the start.

    Attributes:
        r: Rank.
        alpha: Scale; the update is multiplied by alpha / r.
        dropout: On the adapter's input, while training. DPO switches it off (trl does, as its reference
            needs the same computation).
        targets: Names of the linear maps that get an adapter.
        last_layers: Adapt only so many layers, counted from the output; all by default. The gradient
            then ends there, which saves about a third of the time at half of the layers.
    """

    r: int = 8
    alpha: int = 32
    dropout: float = 0.0
    targets: tuple[str, ...] = ATTENTION
    last_layers: int | None = None

    def __post_init__(self) -> None:
        if self.r < 1 or self.alpha < 1 or not 0 <= self.dropout < 1:
            raise UserError("lora.r and lora.alpha must be at least 1, lora.dropout in [0, 1)")
        if not self.targets:
            raise UserError('lora.targets is empty: name linear maps, e.g. "q_proj,v_proj"')
        if self.last_layers is not None and self.last_layers < 1:
            raise UserError(f"lora.last_layers must be at least 1 (or none for all), not {self.last_layers}")


@dataclass(frozen=True, slots=True)
class Optimisation:
    """One pass of AdamW (0.9, 0.999, 1e-8) over training rows.

    Attributes:
        tuning: "lora" trains an adapter, "full" all weights.
        lora: The adapter.
        learning_rate: At its highest.
        schedule: How it falls afterwards: to 0 by a line or a cosine, or not at all.
        warmup: Share of the steps in which it rises from 0.
        epochs: Times that every row is seen.
        batch_size: Rows per optimiser step.
        micro_batch: Rows per forward pass, a divisor of `batch_size`; the gradient is accumulated. It
            decides memory and speed, not the result.
        weight_decay: On all weights but biases and norms.
        clip: Largest norm of the gradient.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, a third slower.
        save_steps: Optimiser steps between two savings, which is what a kill can cost.
    """

    tuning: Literal["lora", "full"] = "lora"
    lora: Lora = field(default_factory=Lora)
    learning_rate: float = 5e-5
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    warmup: float = 0.0
    epochs: int = 1
    batch_size: int = 8
    micro_batch: int = 4
    weight_decay: float = 0.0
    clip: float = 1.0
    gradient_checkpointing: bool = False
    save_steps: int = 50

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "micro_batch", "save_steps"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.batch_size % self.micro_batch:
            raise UserError(
                f"micro_batch ({self.micro_batch}) must divide batch_size ({self.batch_size}) without a rest"
            )
        if not self.learning_rate > 0 or not self.clip > 0:
            raise UserError("learning_rate and clip must be above 0")
        if not self.weight_decay >= 0:
            raise UserError(f"weight_decay must be at least 0, not {self.weight_decay}")
        if not 0 <= self.warmup < 1:
            raise UserError(f"warmup is a share of the steps, in [0, 1), not {self.warmup}")

    def steps(self, rows: int) -> int:
        """Optimiser steps over so many rows; the last one of an epoch may have fewer than `batch_size`."""
        return -(-rows // self.batch_size) * self.epochs
