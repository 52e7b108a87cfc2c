"""Self-RAG's program: when it retrieves, which segment it takes, and how a long answer grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from fakes import ScriptedResources, hotpot_folder
from self_segments import Shelf, said

from ragtrials.config import override
from ragtrials.data import Passage
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._self_config import Labels, Mix, SelfConfig
from ragtrials.methods._self_scores import Weights
from ragtrials.methods._self_tokens import (
    ALL,
    CONTINUE,
    END_PARAGRAPH,
    FULL,
    IRRELEVANT,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARAGRAPH,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.methods.self_rag import WATCHED, SelfRAG
from ragtrials.program import (
    Completion,
    Evidence,
    Generate,
    Hit,
    Message,
    Retrieve,
    Sampled,
    Token,
    Trace,
)
from ragtrials.suite import Conditions, Request
from ragtrials.trained import plan_training

QUESTION = "Where was Ann born?"
CONFIG = SelfConfig(k=2)
ONE = Passage("p1", "Ann", "Ann was born in Rome.")
OTHER = Passage("p2", "Bo", "Bo was born in Oslo.")
HITS = (Hit(ONE, 2.0), Hit(OTHER, 1.0))


def method_of(**changes: Any) -> SelfRAG:
    return SelfRAG(replace(CONFIG, **changes))


def turn(request: Any) -> tuple[Any, ...]:
    """The open turn of a request."""
    assert isinstance(request, Generate)
    *chat, last = request.messages
    assert last.role == "assistant"
    assert [m.role for m in chat] == ["user"]
    assert QUESTION in chat[0].text
    return last.content


def opened(passage: Passage) -> tuple[Any, ...]:
    text = f"{passage.title}\n{passage.text}"
    return (Token(RETRIEVAL), Token(PARAGRAPH), Evidence(text), Token(END_PARAGRAPH))


def ended(program: Any, value: Any) -> str:
    with pytest.raises(StopIteration) as end:
        program.send(value)
    return str(end.value.value)


# One segment, by hand -----------------------------------------------------------------------------------


def test_an_adaptive_answer_by_hand() -> None:
    program = method_of().answer(QUESTION)
    first = program.send(None)
    assert isinstance(first, Generate)
    assert [m.role for m in first.messages] == ["user"]
    assert (first.role, first.max_new_tokens, first.watch) == ("generator", 1, WATCHED)
    assert program.send(said(RETRIEVAL, at={0: {RETRIEVAL: 0.3, NO_RETRIEVAL: 0.7}})) == Retrieve(QUESTION, 2)
    branches = program.send(HITS)
    assert isinstance(branches, list)  # side by side, in one round
    assert [turn(request) for request in branches] == [opened(ONE), opened(OTHER)]
    assert all(r.messages[0] == first.messages[0] for r in branches)
    assert all((r.logprobs, r.watch, r.ends, r.temperature) == (True, WATCHED, (), 0) for r in branches)
    good = said(RELEVANT, "Rome", FULL, IS_USE[4])
    bad = said(IRRELEVANT, "Oslo", IS_USE[0])
    assert ended(program, [bad, good]) == "Rome"


@pytest.mark.parametrize(("p", "retrieves"), [(0.21, True), (0.2, False), (0.19, False)])
def test_the_model_wants_passages_if_its_probability_is_above_delta(p: float, retrieves: bool) -> None:
    program = method_of(delta=0.2).answer(QUESTION)
    program.send(None)
    # What else could be said does not count: the two probabilities need not add up to 1.
    request = program.send(said("x", at={0: {RETRIEVAL: 0.1 * p, NO_RETRIEVAL: 0.1 * (1 - p) + 1e-9}}))
    assert isinstance(request, Retrieve) == retrieves
    if not retrieves:
        assert turn(request) == (Token(NO_RETRIEVAL),)
        assert ended(program, said("Paris", IS_USE[4])) == "Paris"


@pytest.mark.parametrize("mode", ["always", "adaptive"])
def test_without_any_passage_it_answers_by_itself(mode: Any) -> None:
    program = method_of(mode=mode, delta=0.0).answer(QUESTION)
    request = program.send(None)
    if mode == "adaptive":
        request = program.send(said(RETRIEVAL))
    assert request == Retrieve(QUESTION, 2)
    assert turn(program.send(())) == (Token(NO_RETRIEVAL),)
    assert ended(program, said("Paris")) == "Paris"


def test_never_asks_once() -> None:
    program = method_of(mode="never").answer(QUESTION)
    assert turn(program.send(None)) == (Token(NO_RETRIEVAL),)
    assert ended(program, Completion("\n Paris \nand more")) == "Paris"


def test_the_prompt_of_the_released_checkpoints() -> None:
    program = SelfRAG(SelfRAG.PROFILES["released"]).answer(QUESTION)
    first = program.send(None)
    assert isinstance(first, Generate)
    (message,) = first.messages
    assert message == Message("plain", (f"### Instruction:\n{QUESTION}\n\n### Response:\n",))


def test_long_passages_are_cut_to_words() -> None:
    program = method_of(mode="always", passage_words=2).answer(QUESTION)
    program.send(None)
    branches: Any = program.send(HITS)
    assert turn(branches[0])[2] == Evidence("Ann\nAnn was")


# Which segment ------------------------------------------------------------------------------------------


def chosen(segments: Iterable[Completion], **changes: Any) -> str:
    found = list(segments)
    program = method_of(mode="always", **changes).answer(QUESTION)
    program.send(None)
    program.send(tuple(Hit(Passage(f"p{n}", "t", "x"), 1.0) for n in range(len(found))))
    return ended(program, found)


def scoring(answer: str, score: float) -> Completion:
    """A segment of that score under weights that leave the critic out."""
    return said(answer, logprob=log(score))


SEQUENCE = Weights(relevance=0, support=0, utility=0)


def test_open_answers_take_the_best_and_closed_ones_the_sum() -> None:
    segments = [scoring("A", 1.2), scoring("B", 1.5), scoring("A", 0.5)]
    assert chosen(segments, weights=SEQUENCE) == "B"
    assert chosen(segments, weights=SEQUENCE, aggregate="closed") == "A"


def test_of_equals_the_first_passage_counts() -> None:
    assert chosen([scoring("B", 0.5), scoring("A", 0.5)], weights=SEQUENCE) == "B"


@pytest.mark.parametrize(
    ("weights", "answer"),
    [
        (Weights(1, 0, 0, 0), "relevant"),
        (Weights(0, 1, 0, 0), "supported"),
        (Weights(0, 0, 1, 0), "useful"),
        (Weights(0, 0, 0, 1), "likely"),
    ],
)
def test_each_weight_weighs_its_own(weights: Weights, answer: str) -> None:
    segments = [
        said(RELEVANT, "relevant", NONE, IS_USE[0], logprob=-2),
        said(IRRELEVANT, "supported", FULL, IS_USE[0], logprob=-2),
        said(IRRELEVANT, "useful", NONE, IS_USE[4], logprob=-2),
        said(IRRELEVANT, "likely", NONE, IS_USE[0], logprob=-0.1),
    ]
    assert chosen(segments, weights=weights) == answer


# Modes, with an engine ----------------------------------------------------------------------------------


class Model:
    """Wants passages for questions about people alone; knows Paris by itself, and reads the rest."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, say: Callable[[Generate], Completion] | None = None) -> None:
        self.say = say or self.speak
        self.asked: list[Generate] = []

    def speak(self, request: Generate) -> Completion:
        question, parts = request.messages[0].text, request.messages[-1].content
        if request.max_new_tokens == 1:
            share = 0.7 if "Ann" in question else 0.1
            return said("x", at={0: {RETRIEVAL: share, NO_RETRIEVAL: 1 - share}})
        if parts[0] == Token(NO_RETRIEVAL):
            return said("Paris")
        return said(RELEVANT, parts[2].text.split()[0], FULL)

    def generate(self, requests: Any, seeds: Any) -> list[Completion]:
        self.asked += requests
        return [self.say(request) for request in requests]

    def score(self, requests: Any) -> list[Completion]:
        raise AssertionError


QUESTIONS = [("ann", QUESTION), ("capital", "What is the capital of France?")]


def answers(model: Model | None = None, **changes: Any) -> list[Trace]:
    return Driver(Shelf("Ann", "Bo"), model or Model()).run(method_of(**changes).answer, QUESTIONS)


def told(traces: list[Trace]) -> list[tuple[str, int]]:
    return [(trace.answer, trace.cost.retrieval_calls) for trace in traces]


def test_adaptive_differs_from_always_and_from_never() -> None:
    assert told(answers()) == [("Ann", 1), ("Paris", 0)]
    assert told(answers(mode="always")) == [("Ann", 1), ("Ann", 1)]
    assert told(answers(mode="never")) == [("Paris", 0), ("Paris", 0)]


def test_the_ends_of_delta_are_always_and_never() -> None:
    assert told(answers(delta=0.0)) == told(answers(mode="always"))
    assert told(answers(delta=1.1)) == told(answers(mode="never"))
    assert told(answers(delta=0.05)) == told(answers(mode="always"))


def test_branches_are_one_round_and_cost_a_call_each() -> None:
    adaptive, plain = answers()
    assert [step.round for step in adaptive.steps] == [0, 1, 2, 2]
    assert adaptive.cost.llm_calls == 3
    assert plain.cost.llm_calls == 2


# Several segments ---------------------------------------------------------------------------------------

ENDS = (RETRIEVAL, NO_RETRIEVAL)


def long_of(**changes: Any) -> SelfRAG:
    return method_of(**{"mode": "always", "decoding": "long", "weights": SEQUENCE} | changes)


def begun(**changes: Any) -> tuple[Any, list[Generate]]:
    """A program before its first segments, with their requests."""
    program: Any = long_of(**changes).answer(QUESTION)
    assert program.send(None) == Retrieve(QUESTION, 2)
    return program, program.send(HITS)


def test_a_long_answer_by_hand() -> None:
    """Two drafts are kept, each goes on with each passage, and the products of scores decide."""
    program, first = begun()
    assert [turn(r) for r in first] == [opened(ONE), opened(OTHER)]
    assert all(r.ends == ENDS for r in first)
    a = said(RELEVANT, "A.", RETRIEVAL, logprob=-0.1, first=10)
    b = said(RELEVANT, "B.", RETRIEVAL, logprob=-0.3, first=20)
    second = program.send([a, b])
    # The ids are those that were sampled, without the [Retrieval] that the next passage brings itself.
    kept_a, kept_b = Sampled((10, 11), "A."), Sampled((20, 21), "B.")
    assert [turn(r) for r in second] == [
        (*opened(ONE), kept_a, *opened(ONE)),
        (*opened(ONE), kept_a, *opened(OTHER)),
        (*opened(OTHER), kept_b, *opened(ONE)),
        (*opened(OTHER), kept_b, *opened(OTHER)),
    ]
    # exp(-.1 - 1), exp(-.1 - .9), exp(-.3 - .2), exp(-.3 - 1): the weaker beginning has the best end.
    ends = [
        said(word, IS_USE[4], logprob=p) for word, p in (("C.", -1), ("D.", -0.9), ("E.", -0.2), ("F.", -1))
    ]
    assert ended(program, ends) == "B. E."


def test_a_finished_draft_competes_with_those_that_go_on() -> None:
    program, _ = begun()
    short = said("A.", IS_USE[4], logprob=-0.5)
    second = program.send([short, said("B.", RETRIEVAL, logprob=-0.1)])
    assert len(second) == 2  # of the one that goes on alone
    assert ended(program, [said("C.", logprob=-1), said("D.", logprob=-1)]) == "A."
    program, _ = begun()
    program.send([short, said("B.", RETRIEVAL, logprob=-0.1)])
    assert ended(program, [said("C.", logprob=-0.3), said("D.", logprob=-1)]) == "B. C."


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_the_beam_is_as_wide_as_it_is_said(beam: int) -> None:
    program, _ = begun(beam=beam)
    second = program.send([said("A.", RETRIEVAL), said("B.", RETRIEVAL)])
    assert len(second) == 2 * min(beam, 2)
    if beam == 3:
        third = program.send([said(str(n), RETRIEVAL, logprob=-n) for n in range(4)])
        assert len(third) == 6


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_depth_ends_a_draft_that_wants_to_go_on(depth: int) -> None:
    engine = Model(lambda request: said("again.", RETRIEVAL))
    (trace,) = Driver(Shelf("Ann", "Bo"), engine).run(long_of(depth=depth, beam=1).answer, [("q", QUESTION)])
    assert trace.answer == " ".join(["again."] * depth)
    assert trace.cost.llm_calls == 2 * depth
    assert trace.cost.retrieval_calls == 1
    assert len({step.round for step in trace.steps}) == 1 + depth


@pytest.mark.parametrize(
    ("p", "more"),
    [
        ({RETRIEVAL: 0.3, NO_RETRIEVAL: 0.7}, True),
        ({RETRIEVAL: 0.1, NO_RETRIEVAL: 0.9}, False),
        ({RETRIEVAL: 0.1, CONTINUE: 0.2, NO_RETRIEVAL: 0.7}, True),
    ],
)
def test_no_retrieval_behind_a_segment_is_held_against_delta(p: dict[str, float], more: bool) -> None:
    program, _ = begun(beam=1)
    wish = said("A.", NO_RETRIEVAL, at={1: p}, first=10)
    (following, *others) = program.send([wish, said("B.", logprob=-5)])
    if more:  # as if it had said [Retrieval]
        assert turn(following) == (*opened(ONE), Sampled((10,), "A."), *opened(ONE))
        assert len(others) == 1
    else:  # the segment goes on behind its own ids
        assert turn(following) == (*opened(ONE), Sampled((10, 11), "A."))
        assert not others
        assert following.max_new_tokens == CONFIG.max_new_tokens - 2
        assert following.ends == ENDS
        assert ended(program, [said("And so.", IS_USE[4])]) == "A. And so."


def test_what_follows_no_retrieval_belongs_to_the_segment() -> None:
    """Its score is of all its tokens, and its ids are all kept when another passage follows."""
    program, _ = begun(beam=1, delta=1.5)
    program.send([said("A.", NO_RETRIEVAL, logprob=-1, first=10), said("B.", logprob=-0.8)])
    second = program.send([said("C.", "D.", RETRIEVAL, logprob=-0.1, first=12)])
    # exp(-(2 + .3) / 5) = exp(-.46) is more than exp(-.8)
    assert turn(second[0]) == (*opened(ONE), Sampled((10, 11, 12, 13), "A. C. D."), *opened(ONE))


def test_no_retrieval_for_ever_ends_with_the_tokens() -> None:
    engine = Model(lambda request: said("no", NO_RETRIEVAL))
    method = long_of(max_new_tokens=6, delta=1.5, beam=1)
    (trace,) = Driver(Shelf("Ann"), engine).run(method.answer, [("q", QUESTION)])
    assert [r.max_new_tokens for r in engine.asked] == [6, 4, 2]
    assert trace.answer == "no no no"


def test_a_standing_no_retrieval_is_not_asked_twice() -> None:
    """The rest may end without any mark: what ended the first half has ended nothing any more."""
    program, _ = begun(delta=1.5, beam=1)
    program.send([said("A.", NO_RETRIEVAL), said("B.", logprob=-5)])
    assert ended(program, [said("C.")]) == "A. C."


def test_a_segment_that_the_length_ended_is_the_last() -> None:
    program, _ = begun()
    assert ended(program, [replace(said("A.", "and"), finish="length"), said("B.", logprob=-3)]) == "A. and"


@pytest.mark.parametrize("mode", ["never", "adaptive"])
def test_a_long_answer_without_passages_keeps_its_lines(mode: Any) -> None:
    program: Any = method_of(mode=mode, delta=2.0, decoding="long").answer(QUESTION)
    request = program.send(None)
    if mode == "adaptive":
        request = program.send(said(RETRIEVAL))
    assert turn(request) == (Token(NO_RETRIEVAL),)
    assert ended(program, Completion("\nFirst.\nSecond. ")) == "First.\nSecond."


def test_scores_multiply_with_the_critic() -> None:
    program, _ = begun(weights=Weights(), beam=1)
    program.send([said(RELEVANT, "A.", FULL, RETRIEVAL), said(IRRELEVANT, "B.", RETRIEVAL, logprob=-0.1)])
    assert ended(program, [said(RELEVANT, "C."), said(IRRELEVANT, "D.")]) == "A. C."
    assert exp(-0.2) + 1 + 1 > exp(-0.1)  # why A is followed


# Settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SelfConfig(k=0), "k must be at least 1, not 0"),
        (lambda: SelfConfig(beam=0), "beam must be at least 1, not 0"),
        (lambda: SelfConfig(depth=0), "depth must be at least 1, not 0"),
        (lambda: SelfConfig(max_new_tokens=0), "max_new_tokens must be at least 1, not 0"),
        (lambda: SelfConfig(shots=-1), "shots must be at least 0, not -1"),
        (lambda: SelfConfig(passage_words=0), "passage_words must be at least 1, or none, not 0"),
        (lambda: SelfConfig(examples=0), "examples must be at least 1, or none, not 0"),
        (
            lambda: SelfConfig(decoding="long", aggregate="closed"),
            "aggregate=closed adds up whole answers: set decoding=short",
        ),
        (lambda: Labels(retrieve=0), "labels.retrieve must be at least 1, or none, not 0"),
        (lambda: Labels(utility=-1), "labels.utility must be at least 1, or none, not -1"),
        (lambda: Labels(model="x"), "labels.model is asked under labels.labeller=model alone"),
        (lambda: Mix(partial=1.5), r"mix.partial must be in \[0, 1\], not 1.5"),
        (lambda: Mix(unretrieved=-0.1), r"mix.unretrieved must be in \[0, 1\], not -0.1"),
        (lambda: override(CONFIG, ["mode=sometimes"]), "mode"),
        (lambda: override(CONFIG, ["labels.labeller=people"]), "labels.labeller"),
    ],
)
def test_wrong_settings_are_one_line(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_settings_by_option() -> None:
    config = override(CONFIG, ["weights.support=0.5", "labels.labeller=model", "delta=0"])
    assert (config.weights.support, config.labels.labeller, config.delta) == (0.5, "model", 0.0)


def test_one_checkpoint_serves_what_training_does_not_look_at(tmp_path: Path) -> None:
    resources = ScriptedResources(hotpot_folder(tmp_path), ScriptedEngine({}))
    request = Request("x", "self_rag", "hotpotqa", Conditions(profile="smoke"))

    def training_of(*changes: str) -> str:
        method = SelfRAG(override(SelfRAG.PROFILES["smoke"], changes))
        return plan_training(request, method, resources.task("hotpotqa"), resources).spec.id

    trained = training_of()
    for changes in (
        ["mode=always"],
        ["mode=never"],
        ["delta=0.5"],
        ["weights.relevance=0", "weights.support=0", "weights.utility=0"],
        ["decoding=long", "beam=3", "depth=2"],
        ["aggregate=closed"],
    ):
        assert training_of(*changes) == trained
    for changes in (["k=3"], ["max_new_tokens=9"], ["labels.critic=false"], ["mix.partial=1"]):
        assert training_of(*changes) != trained


def test_all_tokens_are_asked_for_and_two_roles_trained() -> None:
    assert SelfRAG(CONFIG).tokens == ALL
    assert len(set(ALL)) == 15
    assert SelfRAG.trained_roles(CONFIG) == ("critic", "generator")
    assert SelfRAG.trained_roles(replace(CONFIG, labels=Labels(critic=False))) == ("generator",)
