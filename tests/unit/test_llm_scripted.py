from __future__ import annotations

import time

import pytest

from ragtrials.errors import RunFailure
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.program import Engine, Evidence, Generate, Score, Step, system, user

CHAT = (system("Be brief."), user("Passage: ", Evidence("Paris is big."), " Why?"))


def test_a_function_answers_each_request():
    engine: Engine = ScriptedEngine(lambda request: f"{request.role} says {request.messages[-1].text}")
    first, second = engine.generate([Generate((user("a"),)), Generate((user("b"),), role="judge")], [1, 2])
    assert first.text == "generator says a"
    assert second.text == "judge says b"
    assert engine.generate([], []) == []


def test_tokens_are_words():
    (completion,) = ScriptedEngine(["a river in France"]).generate([Generate(CHAT)], [0])
    assert (len(completion.prompt_ids), len(completion.token_ids), completion.finish) == (7, 4, "stop")
    cost = Step(0, Generate(CHAT), completion).cost
    assert (cost.llm_calls, cost.prompt_tokens, cost.completion_tokens) == (1, 7, 4)


def test_replies_by_role_and_in_turn():
    by_role = ScriptedEngine({"writer": "w", "judge": "j"})
    replies = by_role.generate([Generate(CHAT, role="judge"), Generate(CHAT, role="writer")], [0, 0])
    assert [reply.text for reply in replies] == ["j", "w"]
    with pytest.raises(RunFailure, match="no reply for the role 'generator'"):
        by_role.generate([Generate(CHAT)], [0])
    in_turn = ScriptedEngine(["one", "two"])
    assert [r.text for r in in_turn.generate([Generate(CHAT)] * 2, [0, 0])] == ["one", "two"]
    with pytest.raises(RunFailure, match="has 2 replies"):
        in_turn.generate([Generate(CHAT)], [0])


def test_stop_strings_and_length_end_a_reply():
    engine = ScriptedEngine(lambda _: "one two\nthree four")
    stopped, cut = engine.generate(
        [Generate(CHAT, stop=("four", "\n")), Generate(CHAT, max_new_tokens=3)], [0, 0]
    )
    assert (stopped.text, stopped.finish) == ("one two", "stop")
    assert (cut.text, len(cut.token_ids), cut.finish) == ("one two three", 3, "length")


def test_logprobs_where_they_are_asked_for():
    engine = ScriptedEngine(lambda _: "one two", log_probability=-0.5)
    without, with_them = engine.generate([Generate(CHAT), Generate(CHAT, logprobs=True)], [0, 0])
    assert without.logprobs is None
    assert with_them.logprobs == (-0.5, -0.5)


def test_scores():
    request = Score(CHAT, "a b c")
    (scored,) = ScriptedEngine([]).score([request])
    assert (scored.text, scored.logprobs, scored.finish) == ("a b c", (-1.0, -1.0, -1.0), "scored")
    assert Step(0, request, scored).cost.prompt_tokens == 7 + 3


def test_seeds_are_counted():
    with pytest.raises(ValueError, match="zip"):
        ScriptedEngine(["a"]).generate([Generate(CHAT)], [])


def test_it_is_cheap():
    engine = ScriptedEngine(lambda _: "Paris")
    requests = [Generate((user("Which river flows through the capital of France?"),))] * 2000
    start = time.perf_counter()
    engine.generate(requests, range(2000))
    assert (time.perf_counter() - start) / 2000 < 50e-6
