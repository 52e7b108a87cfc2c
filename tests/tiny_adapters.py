"""Adapters as training leaves them, with every weight moved, and what it means that two engines agree."""

from __future__ import annotations

import pytest

from ragtrials.llm.loading import load_tokenizer
from ragtrials.training import weights
from ragtrials.training.settings import Lora, Optimisation


def moved_adapter(base, folder, *, seed=1, by=0.3, **lora):
    """Write an adapter of a resolved model; it trains the embeddings of the model's added tokens, too."""
    import torch

    model = weights.load_trainable(base, None, Optimisation(lora=Lora(**lora)), "float32", "cpu", 0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(by * torch.randn(weight.shape, generator=generator))
    weights.save_weights(model, load_tokenizer(base), base, folder)
    return folder


def assert_same(found, expected, close=2e-4):
    """All of the completions but the last digits of their log-probabilities in float32."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for name in ("text", "token_ids", "prompt_ids", "finish", "dropped_tokens", "marks"):
            assert getattr(one, name) == getattr(other, name), name
        if other.logprobs is None:
            assert one.logprobs is None
        else:
            assert one.logprobs == pytest.approx(other.logprobs, abs=close)
        assert len(one.watched) == len(other.watched)
        for row, expected_row in zip(one.watched, other.watched, strict=True):
            assert row == pytest.approx(expected_row, abs=close)
