"""Self-RAG's training: who labels what, and rows that begin as evaluation's branches do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import build_tiny_model
from toy_training import Recorder, toy_run

from ragtrials.data import Example, Passage
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.llm.build import load_engine
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._self_config import Labels, Mix
from ragtrials.methods._self_labels import CRITIC, Inquiry, by_critic
from ragtrials.methods._self_tokens import ALL, FULL, IS_REL, IS_USE, NO_RETRIEVAL, RETRIEVAL
from ragtrials.methods.self_rag import SelfRAG
from ragtrials.program import Completion, Generate, Hit
from ragtrials.training import stages
from ragtrials.training.run import TrainRun

EXAMPLES = [
    Example(f"q{n}", f"Where was person {n} born?", ((f"Town {n}",),), supporting=(f"p{n}",))
    for n in range(6)
]
BUDGET = 200  # too little for the longest passages


class Library:
    """The passage of the person that is asked for, and the next person's."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, found: int = 2) -> None:
        self.found = found

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        return [[Hit(self.passage(q, n), 1.0) for n in range(min(k, self.found))] for q in queries]

    def passage(self, query: str, offset: int) -> Passage:
        n = (int(query.split()[3]) + offset) % 6
        return Passage(f"p{n}", f"Person {n}", f"Person {n} was born in Town {n}. " * (1 + 5 * n))


def config_of(**changes: Any) -> Any:
    return replace(
        SelfRAG.PROFILES["smoke"], passage_words=None, mix=Mix(unretrieved=1.0), **{"shots": 0} | changes
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


class Labelling:
    """An engine that answers as its script says, knows even persons by itself, and notes what it is asked."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, reply: Callable[[Generate], str] = lambda request: "yes") -> None:
        self.asked: list[Generate] = []
        self.reply = reply

    def generate(self, requests: Sequence[Generate], seeds: Any) -> list[Completion]:
        self.asked += requests
        return [self.answer(request) for request in requests]

    def answer(self, request: Generate) -> Completion:
        if request.watch:  # the critic: its last choice is likeliest
            return Completion("", (1,), (1,), watched=(tuple(float(n) for n in range(len(request.watch))),))
        if request.allowed:
            return Completion(self.reply(request))
        number = int(request.messages[-1].text.split("person ")[1].split()[0])
        return Completion(f"Town {number}" if number % 2 == 0 else "nowhere")

    def score(self, requests: Any) -> list[Completion]:
        raise AssertionError


def run_of(
    folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch, engine: Any, found: int = 2
) -> tuple[TrainRun, Recorder]:
    """A training whose optimisation is left out, with what it would be given."""
    recorder = Recorder()
    monkeypatch.setattr(stages, "_optimise", recorder)
    run = toy_run(
        folder,
        model,
        EXAMPLES,
        engine=engine,
        retriever=Library(found),
        max_prompt_tokens=BUDGET,
        tokens=ALL,
    )
    return run, recorder


def roles(recorder: Recorder) -> dict[str, int]:
    found = [role for role, _ in recorder.rows]
    return {role: found.count(role) for role in dict.fromkeys(found)}


# Who labels ---------------------------------------------------------------------------------------------


def test_rules_label_for_the_critic_and_it_for_the_generator(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Labelling()
    run, recorder = run_of(tmp_path, model, monkeypatch, engine)
    SelfRAG(config_of(labels=Labels())).train(run)
    # Of six questions a need, two passages with two labels each, gold's utility and a wrong answer's.
    assert roles(recorder) == {"critic": 6 * 5 + 6 + 3, "generator": 6}
    assert run.statistics["critic"] == {
        NO_RETRIEVAL: 3,
        RETRIEVAL: 3,
        IS_REL[0]: 6,
        FULL: 6,
        IS_REL[1]: 6,
        "[No support / Contradictory]": 6,
        IS_USE[4]: 6,
        IS_USE[0]: 3,
    }
    # The scripted critic finds the last label likeliest: retrieve, irrelevant, utility 5.
    assert run.statistics["generator"]["irrelevant"] == 6
    assert not [r for r in engine.asked if r.allowed]
    assert {r.role for r in engine.asked if r.watch} == {CRITIC}
    assert all(r.max_new_tokens == 1 for r in engine.asked if r.watch)


def test_without_a_critic_rules_label_the_rows(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Labelling()
    run, recorder = run_of(tmp_path, model, monkeypatch, engine)
    SelfRAG(config_of(labels=Labels(critic=False))).train(run)
    assert roles(recorder) == {"generator": 6}
    assert run.statistics == {
        "generator": {
            "unretrieved": 3,
            "unretrieved_left_out": 0,
            "fully": 3,
            "partially": 0,
            "unsupported": 0,
            "irrelevant": 0,
            "unlabelled": 0,
        }
    }
    assert {r.role for r in engine.asked} == {"labeller"}


@pytest.mark.parametrize("critic", [True, False])
def test_a_model_labels(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, critic: bool) -> None:
    """It is asked in words, of which one is allowed; where a reply says none of them there is no label."""

    def reply(request: Generate) -> str:
        if "5" in request.allowed:
            return "4"
        return (
            "fully"
            if "fully" in request.allowed
            else "yes"
            if "person 1" in request.messages[0].text
            else "?"
        )

    engine, other, names = Labelling(), Labelling(reply), []
    run, recorder = run_of(tmp_path, model, monkeypatch, engine)

    def load_other(name: str) -> Any:
        names.append(name)
        return other

    run._around = replace(run._around, load_other=load_other)
    SelfRAG(config_of(labels=Labels(labeller="model", model="stronger", critic=critic))).train(run)
    assert set(names) == {"stronger"}
    assert run.statistics["labeller"] == {"model": "stronger"}
    assert all(r.allowed and r.role == "labeller" for r in other.asked)
    assert not [r for r in engine.asked if r.allowed]
    if critic:
        assert run.statistics["critic"]["unread"] > 0
        assert (
            roles(recorder)["critic"]
            == sum(run.statistics["critic"].values()) - run.statistics["critic"]["unread"]
        )
    else:
        assert not engine.asked  # nothing is looked up that no label needs
        assert run.statistics["generator"]["fully"] == 1
        assert run.statistics["generator"]["unlabelled"] == 5


@pytest.mark.parametrize("reuse", [False, True])
def test_few_labels_of_each_kind_and_the_critic_for_the_rest(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, reuse: bool
) -> None:
    engine = Labelling()
    run, recorder = run_of(tmp_path, model, monkeypatch, engine)
    labels = Labels(retrieve=5, relevance=4, support=2, utility=1, reuse=reuse)
    SelfRAG(config_of(labels=labels)).train(run)
    assert roles(recorder) == {"critic": 12, "generator": 6}
    assert sum(run.statistics["critic"].values()) == 12
    asked = [r for r in engine.asked if RETRIEVAL in r.watch]
    assert len(asked) == (1 if reuse else 6)
    # The scripted critic would have all questions retrieve.
    unretrieved = run.statistics["critic"][NO_RETRIEVAL] if reuse else 0
    kept = run.statistics["generator"]["unretrieved"] + run.statistics["generator"]["unretrieved_left_out"]
    assert kept == unretrieved


def test_a_labelling_model_that_is_not_there_is_known_before_the_first_rollout(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Labelling()
    run, _ = run_of(tmp_path, model, monkeypatch, engine)

    def describe_other(name: str) -> Any:
        raise UserError(f"no model {name}")

    run._around = replace(run._around, describe_other=describe_other)
    with pytest.raises(UserError, match="no model stronger"):
        SelfRAG(config_of(labels=Labels(labeller="model", model="stronger"))).train(run)
    assert not engine.asked
    assert not (tmp_path / "rollouts").exists()


def test_the_untrained_model_labels_if_none_is_named(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Labelling(
        lambda request: "5" if "5" in request.allowed else "fully" if "fully" in request.allowed else "yes"
    )
    run, _ = run_of(tmp_path, model, monkeypatch, engine)
    SelfRAG(config_of(labels=Labels(labeller="model", critic=False))).train(run)
    assert run.statistics["generator"]["fully"] == 6
    assert {r.role for r in engine.asked} == {"labeller"}


def test_a_critic_says_the_likeliest_of_its_kind(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = run_of(tmp_path, model, monkeypatch, Labelling())
    passage = Library().passage(EXAMPLES[0].question, 0)
    inquiries = [
        Inquiry("retrieve", EXAMPLES[0]),
        Inquiry("relevance", EXAMPLES[0], passage=passage),
        Inquiry("support", EXAMPLES[0], "x", passage),
        Inquiry("utility", EXAMPLES[0], "x"),
    ]
    assert by_critic(run, None)("labels", inquiries) == [
        RETRIEVAL,
        IS_REL[1],
        "[No support / Contradictory]",
        IS_USE[4],
    ]


# What is left ---------------------------------------------------------------------------------------------


def test_all_known_and_none_known(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels(critic=False)
    for name, answer, expected in (
        ("all", lambda e: e.target, {"unretrieved": 6}),
        ("none", lambda e: "nowhere", {"fully": 6}),
    ):
        replies = {e.question: answer(e) for e in EXAMPLES}
        engine = ScriptedEngine(
            lambda r, known=replies: next(a for q, a in known.items() if q in r.messages[-1].text)
        )
        run, recorder = run_of(tmp_path / name, model, monkeypatch, engine)
        SelfRAG(config_of(labels=labels)).train(run)
        assert {k: v for k, v in run.statistics["generator"].items() if v} == expected
        assert len(recorder.rows) == 6


def test_no_rows_are_one_line(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Labelling(lambda request: "")
    run, _ = run_of(tmp_path / "a", model, monkeypatch, silent)
    labels = Labels(labeller="model", critic=False)
    with pytest.raises(UserError, match="training toy: stage generator has nothing to train on") as caught:
        SelfRAG(config_of(labels=labels)).train(run)
    assert "\n" not in str(caught.value)
    run, _ = run_of(tmp_path / "b", model, monkeypatch, silent)
    with pytest.raises(UserError, match="training toy: stage critic has nothing to train on"):
        SelfRAG(config_of(labels=replace(labels, critic=True))).train(run)


def test_nothing_found_leaves_rows_of_what_is_known(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, recorder = run_of(tmp_path, model, monkeypatch, Labelling(), found=0)
    SelfRAG(config_of(labels=Labels(critic=False))).train(run)
    assert len(recorder.rows) == 3
    assert run.statistics["generator"]["unlabelled"] == 3


# Rows to the token ----------------------------------------------------------------------------------------


def test_rows_begin_as_the_branches_of_evaluation(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompt, passage and tags of a row are the ids of a branch's prompt, shortened alike."""
    run, recorder = run_of(tmp_path, model, monkeypatch, Labelling())
    config = config_of(labels=Labels(critic=False))
    SelfRAG(config).train(run)
    engine = load_engine(
        str(model), dtype="float32", device="cpu", batch_size=8, max_prompt_tokens=BUDGET, tokens=ALL
    )
    asked = [(e.id, e.question) for e in EXAMPLES]
    begun: dict[str, set[tuple[int, ...]]] = {}
    cut = 0
    for mode in ("always", "never"):
        for trace in Driver(Library(), engine).run(SelfRAG(replace(config, mode=mode)).answer, asked):
            for step in trace.generations:
                assert isinstance(step.result, Completion)
                begun.setdefault(mode, set()).add(step.result.prompt_ids)
                cut += step.result.dropped_tokens > 0
    assert cut  # the comparison covers shortened prompts
    close = run.encoder.prompts.token_id("</paragraph>")
    bare = run.encoder.prompts.token_id(NO_RETRIEVAL)
    modes = []
    for _, row in recorder.rows:
        ids = row["input_ids"]
        mode, last = ("always", close) if close in ids else ("never", bare)
        modes.append(mode)
        assert tuple(ids[: ids.index(last) + 1]) in begun[mode]
    assert sorted(set(modes)) == ["always", "never"]
