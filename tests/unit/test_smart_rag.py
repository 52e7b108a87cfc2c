"""SmartRAG's program: what is asked, where an episode ends, and what it earns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dataset_files import LAYOUTS, write_split
from smart_episodes import ONE, OTHER, QUESTION, Shelf, forever, kinds, method_of, run_with

from ragtrials.data import Example
from ragtrials.driver import Driver
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._smart_actions import ANSWER, SEARCH
from ragtrials.methods._smart_observations import NOTHING
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Generate, Retrieve, assistant
from ragtrials.registry import TASKS

# By hand ------------------------------------------------------------------------------------------------


def test_an_episode_by_hand() -> None:
    program = method_of(quota=2, k=3).answer(QUESTION)
    first = program.send(None)
    assert isinstance(first, Generate)
    assert (first.role, first.stop, first.max_new_tokens, first.temperature) == ("policy", ("\n",), 50, 0)
    assert program.send(Completion(f"{SEARCH} Ann Lee birthplace")) == Retrieve("Ann Lee birthplace", 3)
    second = program.send(ONE)
    assert isinstance(second, Generate)
    assert program.send(Completion(f"{SEARCH} Zermatt")) == Retrieve("Zermatt", 3)
    third = program.send(OTHER)
    assert isinstance(third, Generate)
    assert third.messages[-1] == assistant(ANSWER)
    with pytest.raises(StopIteration) as end:
        program.send(Completion("  Zermatt "))
    assert end.value.value == "Zermatt"

    prompts = [request.messages for request in (first, second, third)]
    assert [[m.role for m in chat] for chat in prompts] == [["user"], ["user"], ["user", "assistant"]]
    texts = [chat[0].text for chat in prompts]
    opening, form = texts[0].split(f"\n\nQuestion: {QUESTION}")
    observed = "\n\nObservation: Ann Lee: Ann Lee was born in Zermatt."
    assert texts == [
        f"{opening}\n\nQuestion: {QUESTION}{found}{form}"
        for found in ("", observed, f"{observed}\n\nObservation: Bo Li: Bo Li was born in Oslo.")
    ]
    assert (ANSWER in form, SEARCH in form) == (True, True)
    assert "birthplace" not in "".join(texts)  # earlier actions are not in the prompt


def test_an_answer_ends_the_episode_without_a_search() -> None:
    (trace,) = run_with(method_of(), [f"{ANSWER} Zermatt"])
    assert (trace.answer, kinds(trace)) == ("Zermatt", ["generate"])
    assert trace.cost.retrieval_calls == 0


# The quota ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quota", [0, 1, 2, 3])
@pytest.mark.parametrize("strict", [False, True])
def test_a_policy_that_searches_for_ever_has_to_answer_at_the_quota(quota: int, strict: bool) -> None:
    (trace,) = run_with(method_of(quota=quota, strict=strict), forever)
    assert kinds(trace) == ["generate", "retrieve"] * quota + ["generate"]
    *free, forced = [step.request for step in trace.generations]
    assert all(isinstance(r, Generate) and r.messages[-1].role == "user" for r in free)
    assert isinstance(forced, Generate)
    assert forced.messages[-1] == assistant(ANSWER)
    assert forced.messages[0].text.count("Observation: ") == quota
    assert trace.answer == f"{SEARCH} again"  # what it wrote is the answer, whatever it is


@pytest.mark.parametrize("quota", [1, 2, 3])
def test_below_the_quota_the_policy_may_answer_or_go_on(quota: int) -> None:
    replies = [f"{SEARCH} a", f"{ANSWER} b"] if quota > 1 else [f"{SEARCH} a", " b"]
    (trace,) = run_with(method_of(quota=quota), replies)
    assert (trace.answer, kinds(trace)) == ("b", ["generate", "retrieve", "generate"])


# What can go wrong in an action ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "answer", "steps"),
    [
        (["Zermatt"], "Zermatt", 1),
        ([""], "", 1),
        ([f"{ANSWER}"], "", 1),
        ([f"{SEARCH} Ann Lee", "Answer: Zermatt"], "Answer: Zermatt", 3),
    ],
)
def test_a_malformed_action_ends_the_episode_with_its_text(
    replies: list[str], answer: str, steps: int
) -> None:
    (trace,) = run_with(method_of(quota=2), replies)
    assert (trace.answer, len(trace.steps)) == (answer, steps)


def test_other_case_is_malformed_in_the_official_preset_alone() -> None:
    replies = ["[answer]Zermatt"]
    assert run_with(method_of(), replies)[0].answer == "Zermatt"
    assert run_with(method_of(strict=True), replies)[0].answer == "[answer]Zermatt"
    strict = {name: config.strict for name, config in SmartRAG.PROFILES.items()}
    assert strict == {"paper": False, "official": True, "laptop": False, "smoke": False}


def test_a_query_without_words_is_searched_and_costs() -> None:
    method, shelf = method_of(), Shelf(())
    engine = ScriptedEngine([SEARCH, " Zermatt"])
    (trace,) = Driver(shelf, engine).run(method.answer, [("q", QUESTION)])
    assert shelf.asked == [""]
    assert (trace.answer, trace.cost.retrieval_calls) == ("Zermatt", 1)


def test_an_empty_observation_is_shown_and_the_episode_goes_on() -> None:
    method, engine = method_of(quota=2), ScriptedEngine([f"{SEARCH} a", f"{ANSWER} b"])
    (trace,) = Driver(Shelf(()), engine).run(method.answer, [("q", QUESTION)])
    request = trace.generations[1].request
    assert isinstance(request, Generate)
    assert f"\n\nObservation: {NOTHING}\n\n" in request.messages[0].text
    assert (trace.answer, trace.cost.retrieval_calls, trace.cost.passages) == ("b", 1, 0)
    judged = judge_of(method)(trace, example("b"))
    assert judged.rewards == (-method.config.alpha, 2.0)


# The reward -----------------------------------------------------------------------------------------------


def example(*aliases: str) -> Example:
    return Example("q", QUESTION, (aliases,))


def judge_of(method: SmartRAG, task: str = "geo_pop", data: Path | None = None) -> Any:
    """The judge under a real task's scores."""
    found = TASKS.load(task)(data)
    return method._judge(SimpleNamespace(scores=found.score, choices=found.choices))  # type: ignore[arg-type]


def judged(replies: Sequence[str], *aliases: str, **changes: Any) -> Any:
    method = method_of(alpha=0.2, malformed=-1.0, **changes)
    (trace,) = run_with(method, replies)
    return judge_of(method)(trace, example(*aliases))


@pytest.mark.parametrize(
    ("replies", "aliases", "rewards"),
    [
        ([f"{ANSWER} the zermatt"], ["Zermatt"], [2.0]),
        ([f"{ANSWER} Oslo"], ["Zermatt"], [0.0]),
        ([f"{SEARCH} q", " Zermatt"], ["Oslo", "Zermatt"], [-0.2, 2.0]),
        ([f"{SEARCH} q", " John Quincy Adams"], ["John Adams"], [-0.2, 0.8]),
        (["Zermatt"], ["Zermatt"], [-1.0]),
    ],
)
def test_what_an_episode_earns(replies: list[str], aliases: list[str], rewards: list[float]) -> None:
    found = judged(replies, *aliases)
    assert found.rewards == pytest.approx(tuple(rewards))
    assert found.reward == pytest.approx(sum(rewards))


def test_what_the_log_tells_of_an_episode() -> None:
    searched = judged([f"{SEARCH} q", f"{SEARCH} q", " Zermatt"], "Zermatt", quota=2)
    assert searched.scalars == {
        "f1": 1.0,
        "searched": 1.0,
        "searches": 2.0,
        "malformed": 0.0,
        "f1/searched": 1.0,
    }
    direct = judged(["Zermatt"], "Zermatt")
    assert direct.scalars == {
        "f1": 1.0,
        "searched": 0.0,
        "searches": 0.0,
        "malformed": 1.0,
        "f1/unsearched": 1.0,
    }
    forced = judged([f" {SEARCH} q"], "Zermatt", quota=0)
    assert (forced.rewards, forced.scalars["searches"], forced.scalars["malformed"]) == ((0.0,), 0.0, 0.0)


@pytest.mark.parametrize(("strict", "rewards"), [(False, (2.0,)), (True, (-1.0,))])
def test_other_case_costs_under_the_official_preset_alone(strict: bool, rewards: tuple[float, ...]) -> None:
    assert judged(["[answer] Zermatt"], "Zermatt", strict=strict).rewards == rewards


@pytest.mark.parametrize(
    ("task", "near", "correct"), [("fever", "supports it", 1.0), ("strategyqa", "yes it is", 1.0)]
)
def test_where_a_task_chooses_em_alone_counts(tmp_path: Path, task: str, near: str, correct: float) -> None:
    layout = LAYOUTS[task]
    write_split(tmp_path, task, layout.reported, [layout.record(0)])
    found = TASKS.load(task)(tmp_path)
    (asked,) = found.examples(layout.reported)
    assert asked.target in found.choices
    method = method_of()
    for said, reward in ((asked.target, correct), (near, 0.0)):
        assert found.score(said, asked)["f1"] > 0
        (trace,) = run_with(method, [f"{ANSWER} {said}"])
        assert judge_of(method, task, tmp_path)(trace, asked).rewards == (reward,)


def test_only_tasks_of_given_answers_choose() -> None:
    choosing = {name: TASKS.load(name).choices for name in TASKS.names() if TASKS.load(name).choices}
    assert choosing == {
        "fever": ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"),
        "strategyqa": ("yes", "no"),
    }
