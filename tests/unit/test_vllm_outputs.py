"""What vLLM is asked and how its answers are read, without vLLM."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ragtrials.errors import UserError
from ragtrials.llm.batches import Job
from ragtrials.llm.decoding import Decoding
from ragtrials.llm.prompts import Prompt
from ragtrials.llm.vllm_outputs import answered, check_possible, generating, scores, scoring
from ragtrials.program import Generate, user


@dataclass(frozen=True)
class Logprob:
    logprob: float


@dataclass(frozen=True)
class Output:
    token_ids: list[int]
    logprobs: list[dict[int, Logprob]] | None = None
    finish_reason: str | None = "length"


def decoding(**options):
    return Decoding.of(Generate((user("?"),), **options))


def position(**logprobs):
    """`position(t5=-1.0)`: token 5 has the log-probability -1."""
    return {int(name[1:]): Logprob(value) for name, value in logprobs.items()}


JOB = Job(0, Prompt((1, 2, 3)), seed=7)


def test_greedy_decoding_is_asked_for_plainly():
    asked = generating(JOB, decoding(max_new_tokens=9, top_p=0.5), ends=[4, 5], watched=[])
    assert asked == {
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": None,
        "max_tokens": 9,
        "stop": [],
        "detokenize": False,
        "stop_token_ids": [4, 5],
        "ignore_eos": True,
        "allowed_token_ids": None,
        "logprobs": None,
        "logprob_token_ids": None,
    }


def test_a_sample_is_asked_for_with_its_seed():
    asked = generating(Job(0, Prompt((1,)), seed=2**63 + 5), decoding(temperature=0.7, top_p=0.9), [], [])
    assert (asked["temperature"], asked["top_p"], asked["seed"]) == (0.7, 0.9, 5)


def test_stop_strings_need_text():
    asked = generating(JOB, decoding(stop=("\n", "")), [], [])
    assert asked["stop"] == ["\n"]
    assert asked["detokenize"]


def test_a_limited_choice_names_its_ids():
    job = Job(0, Prompt((1,)), allowed=(3, 8))
    assert generating(job, decoding(allowed=("yes",)), [3], [])["allowed_token_ids"] == [3, 8]


@pytest.mark.parametrize(
    ("options", "watched", "expected"),
    [
        ({"logprobs": True}, [], (0, None)),
        ({"watch": ("[A]",)}, [9], (None, [9])),
        ({"logprobs": True, "watch": ("[A]",)}, [9], (None, [9])),
    ],
)
def test_the_chosen_token_comes_with_watched_ones(options, watched, expected):
    asked = generating(JOB, decoding(**options), [], watched)
    assert (asked["logprobs"], asked["logprob_token_ids"]) == expected


def test_an_answer_without_probabilities():
    found = answered(Output([5, 6]), decoding(), [])
    assert (found.tokens, found.stopped_at, found.logprobs, found.seen) == ((5, 6), None, None, ())


def test_an_ended_answer_keeps_its_end():
    assert answered(Output([5, 6], finish_reason="stop"), decoding(), []).stopped_at == 2


def test_probabilities_are_found_by_id_and_not_by_rank():
    output = Output([5, 9], [position(t1=-0.1, t5=-2.0), position(t9=-3.0, t1=-0.2)])
    assert answered(output, decoding(logprobs=True), []).logprobs == (-2.0, -3.0)


def test_watched_tokens_stand_in_the_requests_order():
    output = Output([5, 9], [position(t5=-1.0, t8=-4.0, t9=-5.0), position(t9=-2.0, t8=-6.0)])
    found = answered(output, decoding(watch=("[A]", "[B]")), [9, 8])
    assert found.seen == ((-5.0, -4.0), (-2.0, -6.0))
    assert found.logprobs is None


def test_a_watched_token_without_a_number_is_no_zero():
    with pytest.raises(KeyError):
        answered(Output([5], [position(t5=-1.0)]), decoding(watch=("[A]",)), [9])


def test_missing_positions_are_seen():
    with pytest.raises(ValueError, match="shorter"):
        answered(Output([5, 6], [position(t5=-1.0)]), decoding(logprobs=True), [])


def test_a_continuation_is_read_but_for_its_last_token():
    job = Job(0, Prompt((1, 2)), continuation=(5, 6, 7))
    assert scoring(job)["prompt_logprobs"] == 0
    assert scoring(job)["logprob_token_ids"] == [7]
    read = [None, position(t2=-9.0), position(t5=-1.0, t3=0.0), position(t6=-2.0)]
    assert scores(job, read, Output([4], [position(t4=-0.5, t7=-3.0)])) == (-1.0, -2.0, -3.0)


def test_a_continuation_of_one_token_needs_no_read_probabilities():
    job = Job(0, Prompt((1, 2)), continuation=(7,))
    assert scoring(job)["prompt_logprobs"] is None
    assert scores(job, None, Output([7], [position(t7=-3.0)])) == (-3.0,)


@pytest.mark.parametrize("options", [{"temperature": 1.0}, {"temperature": 0.0}])
def test_probabilities_are_possible_where_vllm_has_them(options):
    check_possible(decoding(logprobs=True, watch=("[A]",), **options))
    check_possible(decoding(temperature=0.7))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"temperature": 0.7, "logprobs": True}, "at temperature 0 and 1 alone, not at 0.7: use --engine hf"),
        ({"temperature": 2.0, "watch": ("[A]",)}, "at temperature 0 and 1 alone, not at 2.0"),
        ({"temperature": 0.005}, "at temperature 0.01 or more, not at 0.005"),
    ],
)
def test_what_vllm_would_answer_otherwise_is_refused(options, problem):
    with pytest.raises(UserError, match=problem) as caught:
        check_possible(decoding(**options))
    assert "\n" not in str(caught.value)
