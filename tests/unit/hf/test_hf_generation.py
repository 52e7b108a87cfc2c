"""Generated ids: those of a plain call, whatever is batched with them, sampled by seed, from allowed tokens."""

from __future__ import annotations

import itertools
import random

import pytest
from tiny_engine import load, requests, run

from ragtrials.errors import UserError
from ragtrials.program import Generate, user

torch = pytest.importorskip("torch")


def reference(engine, request):
    """What a plain `model.generate` on this one prompt gives: the new ids."""
    ids = engine.tokenizer.apply_chat_template(
        [{"role": "user", "content": request.messages[0].text}],
        add_generation_prompt=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        out = engine.model.generate(
            **ids, max_new_tokens=request.max_new_tokens, do_sample=False, pad_token_id=0, eos_token_id=3
        )
    return tuple(out[0, ids["input_ids"].shape[1] :].tolist())


def test_greedy_ids_are_those_of_a_plain_generate_call(engine):
    asked = requests()
    for request, completion in zip(asked, run(engine, asked), strict=True):
        assert completion.token_ids == reference(engine, request)
        ids = engine.tokenizer.apply_chat_template(
            [{"role": "user", "content": request.messages[0].text}], add_generation_prompt=True
        )["input_ids"]
        assert completion.prompt_ids == tuple(ids)
        assert completion.logprobs is None


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.9, "top_p": 0.8, "logprobs": True}, {"stop": ("e",)}]
)
def test_results_depend_neither_on_batch_size_nor_on_order(folder, engine, options):
    asked = requests(**options)
    seeds = [101 + i for i in range(len(asked))]
    expected = engine.generate(asked, seeds)
    assert (
        len({completion.token_ids for completion in expected}) > 4
    )  # the questions do get different answers
    for size in (1, 2, 7):
        engine_of_size = load(folder, batch_size=size)
        order = list(range(len(asked)))
        random.Random(size).shuffle(order)
        shuffled = engine_of_size.generate([asked[i] for i in order], [seeds[i] for i in order])
        for i, completion in zip(order, shuffled, strict=True):
            assert completion.token_ids == expected[i].token_ids
            assert completion.text == expected[i].text
            assert completion.finish == expected[i].finish
            if options.get("logprobs"):
                assert completion.logprobs == pytest.approx(expected[i].logprobs, abs=1e-4)


def test_nothing_asked_nothing_done(engine):
    assert engine.generate([], []) == []
    assert engine.score([]) == []


def test_every_request_needs_its_seed(engine):
    with pytest.raises(ValueError, match="shorter"):
        engine.generate(requests(), [1])


def test_requests_with_different_settings_come_back_in_order(engine):
    asked = [
        Generate((user("Where?"),), max_new_tokens=3),
        Generate((user("Where?"),), max_new_tokens=5, temperature=1.0),
        Generate((user("Who?"),), max_new_tokens=3),
        Generate((user("Where?"),), max_new_tokens=4, logprobs=True),
    ]
    together = engine.generate(asked, [7, 7, 7, 7])
    alone = [engine.generate([request], [7])[0] for request in asked]
    assert [c.token_ids for c in together] == [c.token_ids for c in alone]
    assert together[3].logprobs is not None
    assert len(together[3].logprobs) == len(together[3].token_ids)


def test_prompts_are_batched_by_length_whatever_their_order(engine, monkeypatch):
    batches = []
    generate = engine.model.generate

    def spy(input_ids, **kwargs):
        batches.append([tuple(row) for row in input_ids.tolist()])
        return generate(input_ids, **kwargs)

    monkeypatch.setattr(engine.model, "generate", spy)
    asked = requests()
    run(engine, asked)
    first = batches.copy()
    batches.clear()
    run(engine, asked[::-1])
    assert batches == first
    pad = engine.tokenizer.pad_token_id
    lengths = [len(row) - row.count(pad) for batch in first for row in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert [len(batch) for batch in first] == [4, 3]


def test_sampling_follows_the_seed_alone(engine):
    request = Generate((user("Where?"),), max_new_tokens=8, temperature=1.0)
    results = engine.generate([request] * 6, [1, 2, 1, 3, 2, 1])
    ids = [completion.token_ids for completion in results]
    assert ids[0] == ids[2] == ids[5]
    assert ids[1] == ids[4]
    assert len({ids[0], ids[1], ids[3]}) == 3
    assert engine.generate([request], [2])[0].token_ids == ids[1]


def test_sampled_tokens_are_distributed_as_the_model_says(engine):
    request = Generate((user("Where?"),), max_new_tokens=1, temperature=2.0)
    n = 2000
    prompt = engine.generate([request], [0])[0].prompt_ids
    with torch.inference_mode():
        expected = (engine.model(torch.tensor([prompt])).logits[0, -1] / 2.0).softmax(-1)
    drawn = [c.token_ids[0] for c in load_many(engine, request, n)]
    counts = torch.bincount(torch.tensor(drawn), minlength=len(expected)).float()
    likely = expected > 5 / n
    chi2 = ((counts - n * expected) ** 2 / (n * expected))[likely].sum().item()
    freedom = int(likely.sum())
    assert freedom > 20
    assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5


def load_many(engine, request, n):
    old = engine.settings
    engine.settings = type(old)(old.dtype, old.device, 500, old.max_prompt_tokens)
    try:
        return engine.generate([request] * n, range(n))
    finally:
        engine.settings = old


def test_allowed_limits_the_tokens_to_those_of_the_strings(engine):
    allowed = ("yes", " no", "1, 2")
    ids = set(
        itertools.chain.from_iterable(
            engine.tokenizer(text, add_special_tokens=False).input_ids for text in allowed
        )
    )
    ids.add(engine.tokenizer.eos_token_id)
    asked = requests(allowed=allowed) + requests(allowed=allowed, temperature=3.0)
    results = run(engine, asked)
    assert {token for completion in results for token in completion.token_ids} <= ids
    assert len({completion.token_ids for completion in results}) > 3


def test_each_request_has_its_own_allowed_strings(engine):
    asked = [Generate((user("Where?"),), max_new_tokens=4, allowed=(word,)) for word in ("a", "b", "c")]
    for word, completion in zip("abc", run(engine, asked), strict=True):
        assert set(completion.text) <= {word}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0: give 1 or more"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(engine, options, message):
    with pytest.raises(UserError, match=message):
        run(engine, [Generate((user("q"),), **options)])
