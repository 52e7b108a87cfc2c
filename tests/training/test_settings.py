"""Settings that make no sense are refused with one line that names them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ragtrials.config import override
from ragtrials.errors import UserError
from ragtrials.methods._reader import EvidenceMix, ReaderConfig
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation


@dataclass(frozen=True)
class Config:
    sft: Optimisation = field(default_factory=Optimisation)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("sft.micro_batch=3", r"micro_batch \(3\) must divide batch_size \(8\) without a rest"),
        ("sft.micro_batch=16", r"micro_batch \(16\) must divide batch_size \(8\)"),
        ("sft.batch_size=0", "batch_size must be at least 1, not 0"),
        ("sft.epochs=0", "epochs must be at least 1"),
        ("sft.save_steps=0", "save_steps must be at least 1"),
        ("sft.learning_rate=0", "learning_rate and clip must be above 0"),
        ("sft.learning_rate=nan", "learning_rate and clip must be above 0"),
        ("sft.clip=0", "learning_rate and clip must be above 0"),
        ("sft.warmup=1", r"warmup is a share of the steps, in \[0, 1\), not 1"),
        ("sft.warmup=nan", "warmup is a share"),
        ("sft.weight_decay=-0.1", "weight_decay must be at least 0"),
        ("sft.weight_decay=nan", "weight_decay must be at least 0"),
        ("sft.tuning=qlora", "sft.tuning"),
        ("sft.schedule=step", "sft.schedule"),
        ("sft.lora.r=0", "lora.r and lora.alpha must be at least 1"),
        ("sft.lora.dropout=1", "lora.dropout in"),
        ("sft.lora.targets=", "lora.targets is empty"),
        ("sft.lora.last_layers=0", "lora.last_layers must be at least 1"),
    ],
)
def test_a_bad_setting_is_named(option: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        override(Config(), [option])
    assert "\n" not in str(caught.value)


def test_options_reach_the_adapter() -> None:
    changed = override(Config(), ["sft.lora.targets=q_proj, k_proj", "sft.lora.last_layers=none"])
    assert changed.sft.lora == Lora(targets=("q_proj", "k_proj"))


def test_a_llama_block_has_seven_linear_maps() -> None:
    assert len(set(ALL_LINEAR)) == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be at least 1, not 0"),
        ({"examples": 0}, "examples must be at least 1"),
        ({"low_rank": 0}, "low_rank must be at least 1"),
        ({"development": -1}, "development must be at least 0"),
    ],
)
def test_a_bad_reader_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(ReaderConfig(), **changes)


@pytest.mark.parametrize("weights", [(0.0, 0.0, 0.0), (-1.0, 2.0, 0.0)])
def test_weights_of_evidence_must_be_some(weights: tuple[float, float, float]) -> None:
    with pytest.raises(UserError, match="evidence_mix: weights must be at least 0"):
        EvidenceMix(*weights)


def test_evidence_is_drawn_by_its_weights() -> None:
    drawn = [EvidenceMix(2, 1, 1).draw(0, f"q{i}") for i in range(4000)]
    assert 1880 < drawn.count("top") < 2120
    assert 900 < drawn.count("low") < 1100
    assert [EvidenceMix(1, 0, 0).draw(i) for i in range(50)] == ["top"] * 50
    assert [EvidenceMix(0, 1, 0).draw(i) for i in range(50)] == ["low"] * 50
    assert [EvidenceMix(0, 0, 1).draw(i) for i in range(50)] == ["random"] * 50
