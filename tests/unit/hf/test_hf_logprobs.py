"""Log-probabilities of what was generated and of what is scored."""

from __future__ import annotations

import functools

import pytest
from tiny_engine import QUESTIONS, load, run

from ragtrials.program import Generate, Score, user

torch = pytest.importorskip("torch")


def teacher_forced(engine, completion):
    """The log-probability of each new token, from one plain forward pass."""
    ids = torch.tensor([completion.prompt_ids + completion.token_ids])
    with torch.inference_mode():
        logprobs = engine.model(ids).logits[0].log_softmax(-1)
    start = len(completion.prompt_ids) - 1
    return [logprobs[start + i, token].item() for i, token in enumerate(completion.token_ids)]


def test_logprobs_are_those_of_a_scored_continuation(engine):
    for temperature in (0.0, 1.0):
        (completion,) = engine.generate(
            [Generate((user("Where?"),), max_new_tokens=6, temperature=temperature, logprobs=True)], [3]
        )
        assert completion.logprobs == pytest.approx(teacher_forced(engine, completion), abs=1e-4)


def test_logprobs_stand_under_the_sampling_temperature_whatever_is_allowed(engine):
    common = {"max_new_tokens": 1, "logprobs": True, "temperature": 2.0}
    (completion,) = engine.generate([Generate((user("Where?"),), allowed=("a",), top_p=0.5, **common)], [0])
    with torch.inference_mode():
        logits = engine.model(torch.tensor([completion.prompt_ids])).logits[0, -1]
    expected = (logits / 2.0).log_softmax(-1)[completion.token_ids[0]].item()
    assert completion.logprobs == pytest.approx([expected], abs=1e-4)


@pytest.mark.parametrize("size", [1, 3, 7])
def test_scores_are_teacher_forced_logprobs(folder, engine, size):
    continuations = ["Paris", " the Seine, a river", "", "1", "漢字", "no", "yes yes yes yes yes"]
    asked = [Score((user(q),), c) for q, c in zip(QUESTIONS, continuations, strict=True)]
    results = load(folder, batch_size=size).score(asked)
    for request, completion in zip(asked, results, strict=True):
        assert completion.text == request.continuation
        assert completion.finish == "scored"
        assert engine.tokenizer.decode(completion.token_ids) == request.continuation
        assert completion.logprobs == pytest.approx(teacher_forced(engine, completion), abs=1e-4)


def test_positions_count_from_the_first_real_token(engine, monkeypatch):
    seen = []
    forward = engine.model.forward

    @functools.wraps(forward)  # generate looks at its parameters
    def spy(*args, **kwargs):
        seen.append((kwargs["attention_mask"], kwargs["position_ids"]))
        return forward(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", spy)
    engine.score([Score((user(QUESTIONS[2]),), "yes"), Score((user("Where?"),), "no")])
    run(engine, [Generate((user(q),), max_new_tokens=1) for q in QUESTIONS[1:3]])
    assert len(seen) == 2
    for mask, positions in seen:
        assert mask.min() == 0  # one row is padded
        for row, real in zip(positions, mask.sum(dim=1).tolist(), strict=True):
            assert row[-real:].tolist() == list(range(real))


def test_only_the_continuations_logits_are_computed(engine, monkeypatch):
    seen = []
    forward = engine.model.forward

    def spy(*args, **kwargs):
        output = forward(*args, **kwargs)
        seen.append(tuple(output.logits.shape[:2]))
        return output

    monkeypatch.setattr(engine.model, "forward", spy)
    engine.score([Score((user(QUESTIONS[2]),), "yes"), Score((user("Where?"),), "no")])
    assert [shape[0] for shape in seen] == [2]
    assert seen[0][1] <= 6
