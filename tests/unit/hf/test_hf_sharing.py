"""Samples of one prompt: it is read once, and nothing else changes."""

from __future__ import annotations

import functools
import shutil

import pytest
from tiny_engine import QUESTIONS, load

from ragtrials.program import Generate, user

torch = pytest.importorskip("torch")

TIMES = (4, 1, 3, 1, 2, 1, 4)
"""How often each question is asked."""


def samples(**options):
    settings = {"max_new_tokens": 9, "temperature": 0.9, "logprobs": True} | options
    return [
        Generate((user(question),), **settings)
        for question, times in zip(QUESTIONS, TIMES, strict=True)
        for _ in range(times)
    ]


def generate(engine, asked):
    return engine.generate(asked, [100 + number for number in range(len(asked))])


@pytest.fixture
def alone(folder, monkeypatch):
    """Engines that read every row by itself."""

    def make(**options):
        engine = load(folder, **options)
        monkeypatch.setattr(engine._prefill, "read", lambda *_: {})
        return engine

    return make


def passes(engine, monkeypatch):
    """Records (rows, columns) of every pass through the model."""
    seen = []
    forward = engine.model.forward

    @functools.wraps(forward)  # generate looks at its parameters
    def spy(*args, **kwargs):
        seen.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", spy)
    return seen


@pytest.mark.parametrize("size", [1, 4, 5, 16])
@pytest.mark.parametrize(
    "options", [{}, {"top_p": 0.7, "temperature": 1.5}, {"stop": ("e",), "allowed": ("see", "Paris")}]
)
def test_samples_are_those_of_prompts_read_one_by_one(folder, alone, size, options):
    found = generate(load(folder, batch_size=size), samples(**options))
    expected = generate(alone(batch_size=size), samples(**options))
    for one, two in zip(found, expected, strict=True):
        assert one.token_ids == two.token_ids
        assert one.prompt_ids == two.prompt_ids
        assert (one.text, one.finish) == (two.text, two.finish)
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)
    assert len({completion.token_ids for completion in found}) > len(QUESTIONS)


def test_a_prompt_is_read_once_in_a_batch(folder, monkeypatch):
    engine = load(folder, batch_size=6)
    asked = [
        Generate((user(q),), max_new_tokens=3, temperature=1.0) for q in ["Where?"] * 4 + [QUESTIONS[1]] * 2
    ]
    seen = passes(engine, monkeypatch)
    found = generate(engine, asked)
    longest = max(len(completion.prompt_ids) for completion in found)
    assert seen[:2] == [(2, longest - 1), (6, 1)]  # two prompts up to their last token, then six rows
    assert set(seen[2:]) <= {(6, 1)}


def test_positions_and_masks_of_a_shared_prompt_skip_its_padding(folder, monkeypatch):
    engine = load(folder, batch_size=6)
    seen = []
    forward = engine.model.forward

    @functools.wraps(forward)
    def spy(*args, **kwargs):
        seen.append((kwargs["attention_mask"], kwargs["position_ids"]))
        return forward(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", spy)
    asked = [
        Generate((user(q),), max_new_tokens=2, temperature=1.0) for q in ["Where?"] * 3 + [QUESTIONS[1]] * 2
    ]
    generate(engine, asked)
    assert len(seen) >= 2
    for mask, positions in seen[:2]:
        assert mask.min() == 0  # the short prompt is padded
        for row, real in zip(positions, mask.sum(dim=1).tolist(), strict=True):
            assert row[-1] == real - 1


@pytest.mark.parametrize(
    ("options", "questions"),
    [
        ({"temperature": 0.0}, ["Where?"] * 4),  # evaluation stays bit for bit what it was
        ({"temperature": 1.0}, QUESTIONS[:4]),  # nothing to share
    ],
)
def test_nothing_is_shared_without_need(folder, monkeypatch, options, questions):
    engine = load(folder, batch_size=4)
    seen = passes(engine, monkeypatch)
    found = generate(engine, [Generate((user(q),), max_new_tokens=2, **options) for q in questions])
    assert seen[0] == (4, max(len(completion.prompt_ids) for completion in found))


def test_equal_prompts_are_neighbours_whatever_the_order(folder, monkeypatch):
    engine = load(folder, batch_size=4)
    seen = passes(engine, monkeypatch)
    words = ["aa", "bb", "cc"] * 4  # of one length
    found = generate(engine, [Generate((user(q),), max_new_tokens=1, temperature=1.0) for q in words])
    length = len(found[0].prompt_ids)
    assert seen == [(1, length - 1), (4, 1)] * 3


def test_a_cache_that_cannot_be_expanded_is_not_shared(folder, alone, monkeypatch):
    from ragtrials.llm import prefill

    monkeypatch.setattr(prefill, "_SELECTABLE", ())
    engine = load(folder)
    assert generate(engine, samples()) == generate(alone(), samples())
    seen = passes(engine, monkeypatch)
    generate(engine, samples())
    assert {rows for rows, _ in seen} == {4}  # 16 rows in batches of 4: it is not tried again


def test_a_model_without_a_cache_argument_is_not_shared(folder):
    from ragtrials.llm.prefill import SharedPrefill

    class Recurrent:
        def forward(self, input_ids, attention_mask):
            raise AssertionError("is not called")

    ids = torch.ones(2, 3, dtype=torch.long)
    assert SharedPrefill(Recurrent()).read([(1, 1, 1)] * 2, ids, ids) == {}


def test_a_prompt_of_one_token_has_nothing_to_share(engine):
    ids = torch.ones(2, 1, dtype=torch.long)
    assert engine._prefill.read([(1,)] * 2, ids, ids) == {}


def test_a_sliding_window_shares_too(folder, monkeypatch, tmp_path):
    from transformers import MistralConfig, MistralForCausalLM

    copy = shutil.copytree(folder, tmp_path / "sliding")
    size = len(load(folder).tokenizer)
    config = MistralConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        sliding_window=16,
        eos_token_id=3,
        pad_token_id=0,
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        MistralForCausalLM(config).save_pretrained(copy)
    engine = load(copy)
    seen = passes(engine, monkeypatch)
    found = generate(engine, samples())
    assert (1, len(found[0].prompt_ids) - 1) in seen
    monkeypatch.setattr(engine._prefill, "read", lambda *_: {})
    for one, two in zip(found, generate(engine, samples()), strict=True):
        assert one.token_ids == two.token_ids
        assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5)
