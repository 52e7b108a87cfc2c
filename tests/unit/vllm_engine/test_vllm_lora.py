"""Trained weights by role in vLLM: adapters of unequal ranks over one model."""

from __future__ import annotations

import pytest
from tiny import build_tiny_model
from tiny_adapters import assert_same, moved_adapter
from tiny_engine import QUESTIONS, requests

from ragtrials.llm.models import resolve_model
from ragtrials.program import Score, user


@pytest.fixture(scope="module")
def engines(tmp_path_factory, both):
    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", with_bos=True)
    base, adapters = resolve_model(str(folder)), tmp_path_factory.mktemp("adapters")
    first = moved_adapter(base, adapters / "one", r=4)
    every = ("q_proj", "v_proj", "gate_proj", "down_proj")
    other = moved_adapter(base, adapters / "two", seed=2, r=12, targets=every, last_layers=1)
    return both(folder, policies={"rewriter": first, "selector": other, "generator": first})


def test_each_role_is_answered_by_its_own_weights(engines):
    hf, vllm = engines
    asked = [
        one
        for role in ("rewriter", "selector", "base", "generator")
        for one in requests(role=role, logprobs=True)
    ]
    seeds = range(len(asked))
    expected, found = hf.generate(asked, seeds), vllm.generate(asked, seeds)
    assert_same(found, expected)
    n = len(QUESTIONS)
    first, other, plain, again = (found[at : at + n] for at in range(0, 4 * n, n))
    assert [c.token_ids for c in first] == [c.token_ids for c in again]
    for one, two, three in zip(first, other, plain, strict=True):
        assert one.logprobs != pytest.approx(two.logprobs, abs=1e-2)
        assert one.logprobs != pytest.approx(three.logprobs, abs=1e-2)
        assert two.logprobs != pytest.approx(three.logprobs, abs=1e-2)


def test_each_role_scores_with_its_own_weights(engines):
    hf, vllm = engines
    asked = [
        Score((user(q),), " the Seine", role=role)
        for q in QUESTIONS
        for role in ("rewriter", "selector", "x")
    ]
    assert_same(vllm.score(asked), hf.score(asked))
