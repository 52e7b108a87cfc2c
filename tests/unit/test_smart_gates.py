"""Who decides whether SmartRAG retrieves, and what may be set. Oracles 33 and 34 of specs/smart_rag.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

import pytest
from fakes import ScriptedResources, hotpot_folder
from smart_episodes import CONFIG, forever, kinds, method_of, run_with

from ragtrials.config import override
from ragtrials.errors import UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._smart_actions import ANSWER, SEARCH
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Generate, Retrieve, Score, Trace, assistant
from ragtrials.suite import Conditions, Request
from ragtrials.trained import plan_training

# The threshold (oracles 33 and 34) ------------------------------------------------------------------------

QUESTIONS = [f"Where was person {n} born?" for n in range(40)]


class Undecided(ScriptedEngine):
    """Gives each tag a probability that depends on the question; searches 0, 1/40, 2/40, …

    Args:
        swapped: Whether the two tags are mistaken for each other.
    """

    def __init__(self, swapped: bool = False) -> None:
        super().__init__(lambda request: " x")
        self.swapped = swapped
        self.scored: list[Score] = []

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        self.scored += requests
        found = []
        for request in requests:
            p = int(request.messages[0].text.split("person ")[1].split()[0]) / len(QUESTIONS)
            wanted = ANSWER if self.swapped else SEARCH
            p = p if request.continuation == wanted else 1 - p
            halves = (log(p) / 4, log(p) * 3 / 4) if p else (-float("inf"), 0.0)  # a tag of two tokens
            found.append(Completion(request.continuation, (1, 2), (3,), halves, "scored"))
        return found


def searched_by(threshold: float, swapped: bool = False) -> set[str]:
    engine = Undecided(swapped)
    traces = run_with(method_of(threshold=threshold), (), QUESTIONS, engine)
    assert {request.continuation for request in engine.scored} == {SEARCH}
    assert {request.role for request in engine.scored} == {"policy"}
    return {trace.example_id for trace in traces if trace.cost.retrieval_calls}


THRESHOLDS = (-0.1, 0.0, 0.11, 0.31, 0.51, 0.79, 0.974, 1.0)


def sweep_is_sound(swapped: bool = False) -> bool:
    """The likelier a search the longer it is kept, and ever fewer are."""
    kept = [searched_by(threshold, swapped) for threshold in THRESHOLDS]
    wanted = [{q for n, q in enumerate(QUESTIONS) if n / len(QUESTIONS) > t} for t in THRESHOLDS]
    return kept == wanted and all(b <= a for a, b in pairwise(kept))


def test_a_higher_threshold_searches_less() -> None:
    assert sweep_is_sound()
    assert len(searched_by(-0.1)) == len(QUESTIONS)
    assert searched_by(1.0) == set()


def test_tags_that_are_mistaken_for_each_other_are_noticed() -> None:
    assert not sweep_is_sound(swapped=True)


def test_the_probability_is_that_of_the_free_prompt_and_the_tag_is_written_then() -> None:
    engine = Undecided()
    (low, high) = run_with(method_of(threshold=0.5), (), [QUESTIONS[1], QUESTIONS[-1]], engine)
    assert kinds(low) == ["score", "generate"]
    assert kinds(high) == ["score", "generate", "retrieve", "generate"]  # at the quota nothing is decided
    (free, *_) = run_with(method_of(), [f"{ANSWER} x"], [QUESTIONS[1]])
    assert low.steps[0].request.messages == free.steps[0].request.messages  # type: ignore[union-attr]
    tags = [step.request.messages[-1] for step in (*low.generations, *high.generations)]  # type: ignore[union-attr]
    assert tags == [assistant(ANSWER), assistant(SEARCH), assistant(ANSWER)]
    assert [step.request.query for step in high.steps if isinstance(step.request, Retrieve)] == ["x"]


# The other gates ------------------------------------------------------------------------------------------


def searches(trace: Trace) -> int:
    return trace.cost.retrieval_calls


@pytest.mark.parametrize("quota", [0, 1, 3])
def test_always_and_never(quota: int) -> None:
    (always,) = run_with(method_of(gate="always", quota=quota), forever)
    assert searches(always) == quota
    (never,) = run_with(method_of(gate="never", quota=quota), forever)
    assert kinds(never) == ["generate"]
    request = never.generations[0].request
    assert isinstance(request, Generate)
    assert request.messages[-1] == assistant(ANSWER)


def test_always_searches_what_the_policy_writes_behind_the_tag() -> None:
    (trace,) = run_with(method_of(gate="always"), [" Ann Lee birthplace", " Zermatt"])
    assert [s.request.query for s in trace.steps if isinstance(s.request, Retrieve)] == ["Ann Lee birthplace"]
    assert trace.answer == "Zermatt"
    tags = [step.request.messages[-1] for step in trace.generations]  # type: ignore[union-attr]
    assert tags == [assistant(SEARCH), assistant(ANSWER)]


def random_searches(rate: float, quota: int = 1, questions: int = 400) -> dict[str, int]:
    asked = [f"question {n}" for n in range(questions)]
    traces = run_with(method_of(gate="random", rate=rate, quota=quota), lambda request: " x", asked)
    return {trace.example_id: searches(trace) for trace in traces}


def test_the_random_gate_keeps_its_rate_and_a_higher_rate_keeps_all_of_a_lower_one() -> None:
    rates = (0.0, 0.2, 0.5, 0.8, 1.0)
    found = [random_searches(rate) for rate in rates]
    for rate, one in zip(rates, found, strict=True):
        assert sum(one.values()) / len(one) == pytest.approx(rate, abs=0.0 if rate in (0, 1) else 0.07)
    for lower, higher in pairwise(found):
        assert all(lower[question] <= higher[question] for question in lower)
    assert random_searches(0.5) == found[2]  # nothing but the question decides


def test_the_random_gate_draws_each_decision_anew() -> None:
    found = random_searches(0.5, quota=2)
    counts = [list(found.values()).count(n) / len(found) for n in (0, 1, 2)]
    assert counts == pytest.approx([0.5, 0.25, 0.25], abs=0.07)


# Settings -------------------------------------------------------------------------------------------------


def test_one_checkpoint_serves_gates_and_thresholds(tmp_path: Path) -> None:
    resources = ScriptedResources(hotpot_folder(tmp_path), ScriptedEngine({}))
    request = Request("x", "smart_rag", "hotpotqa", Conditions(profile="smoke"))

    def training_of(*changes: str) -> str:
        method = SmartRAG(override(CONFIG, changes))
        return plan_training(request, method, resources.task("hotpotqa"), resources).spec.id

    trained = training_of()
    for changes in (["threshold=0.3"], ["gate=always"], ["gate=never"], ["gate=random", "rate=0.1"]):
        assert training_of(*changes) == trained
    for changes in (["alpha=0.3"], ["quota=2"], ["ppo.gamma=0.9"], ["warm_up.label_mode=all"]):
        assert training_of(*changes) != trained


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["k=0"], "k must be at least 1, not 0"),
        (["action_tokens=0"], "action_tokens must be at least 1, not 0"),
        (["quota=-1"], "quota must be at least 0, not -1"),
        (["shots=-1"], "shots must be at least 0, not -1"),
        (["passage_words=0"], "passage_words must be at least 1, or none, not 0"),
        (["examples=0"], "examples must be at least 1, or none, not 0"),
        (["rate=1.5"], r"rate must be in \[0, 1\], not 1.5"),
        (["rate=-0.1"], r"rate must be in \[0, 1\], not -0.1"),
        (["gate=always", "threshold=0.5"], "threshold is the policy's: .* gate=always"),
        (["gate=sometimes"], "gate.*sometimes"),
        (["ppo.credit=turn"], "ppo.credit must be episode"),
        (["warm_up.samples=0"], "warm_up.samples must be at least 1, not 0"),
        (["warm_up.samples=3", "warm_up.temperature=0"], "warm_up.temperature must be above 0 for 3 samples"),
        (["warm_up.examples=0"], "warm_up.examples must be at least 1, or none, not 0"),
        (["warm_up.label_mode=skrr"], "label_mode.*skrr"),
    ],
)
def test_a_bad_setting_is_one_line(changes: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        override(CONFIG, changes)
    assert len(str(error.value).splitlines()) == 1
