"""MMOA-RAG and its relatives: pipeline, rewards, warm start, and what PPO is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import build_tiny_model
from toy_training import toy_run

from ragtrials.config import override
from ragtrials.data import Example, Passage
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods import _agents
from ragtrials.program import Generate, Hit, Retrieve, Trace
from ragtrials.registry import METHODS
from ragtrials.training.episodes import Judgement
from ragtrials.training.report import StageReport

QUESTION = "Who was older, Ada Byron or Alan Turing?"
EXAMPLES = [
    Example("q1", QUESTION, (("Ada Byron", "Ada Lovelace"),)),
    Example("q2", "Where was Grace Hopper born?", (("New York",),)),
]
PASSAGES = [
    Passage("p0", "Ada Byron", "Ada Byron was born in 1815."),
    Passage("p1", "Alan Turing", "Alan Turing was born in 1912."),
    Passage("p2", "Grace Hopper", "Grace Hopper was born in New York."),
    Passage("p3", "Charles Babbage", "Charles Babbage was born in London."),
]


class Library:
    """Finds passages by how many words of the query are in them."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def search(self, queries: Sequence[str], k: int, example_ids: Any = None) -> list[list[Hit]]:
        def score(query: str, passage: Passage) -> int:
            return len(set(query.lower().split()) & set(f"{passage.title} {passage.text}".lower().split()))

        return [
            [Hit(p, float(score(q, p))) for p in sorted(PASSAGES, key=lambda p: -score(q, p))[:k]]
            for q in queries
        ]


def method_of(name: str = "mmoa_rag", profile: str = "smoke", **changes: Any) -> Any:
    kind = METHODS.load(name)
    return kind(replace(kind.PROFILES[profile], **({"k": 4, "passage_words": None} | changes)))


def run_with(method: Any, replies: Any, examples: Sequence[Example] = EXAMPLES[:1]) -> list[Trace]:
    questions = [(example.id, example.question) for example in examples]
    return Driver(Library(), ScriptedEngine(replies)).run(method.answer, questions)


REPLIES = {
    "rewriter": "Ada Byron born\nAlan Turing born",
    "selector": "Document2,Document0",
    "generator": "Ada Byron",
}


def roles_of(trace: Trace) -> list[str]:
    return [step.request.role for step in trace.generations]  # type: ignore[union-attr]


# The pipeline ------------------------------------------------------------------------------------------


def test_each_query_contributes_its_share_and_the_generator_reads_the_selection_in_its_order() -> None:
    (trace,) = run_with(method_of(distinct=False, selection_tokens=12, rewrite_tokens=20), REPLIES)
    assert roles_of(trace) == ["rewriter", "selector", "generator"]
    searches = [step.request for step in trace.steps if isinstance(step.request, Retrieve)]
    assert searches == [Retrieve("Ada Byron born", 2), Retrieve("Alan Turing born", 2)]
    selecting, reading = (step.request.messages for step in trace.generations[1:])  # type: ignore[union-attr]
    shown = selecting[-1].text
    assert shown.index("Document0: Ada Byron") < shown.index("Document2: Alan Turing")
    assert reading[0].text.index("[1] Alan Turing") < reading[0].text.index("[2] Ada Byron")
    assert "[3]" not in reading[0].text
    assert trace.answer == "Ada Byron"
    assert (trace.cost.retrieval_calls, trace.cost.passages, trace.cost.llm_calls) == (2, 4, 3)


def test_distinct_candidates_stand_once() -> None:
    def shown(distinct: bool) -> int:
        replies = REPLIES | {"rewriter": "Ada Byron\nAda Byron born"}
        (trace,) = run_with(method_of(distinct=distinct, rewrite_tokens=20), replies)
        return trace.generations[1].request.messages[-1].text.count("Document0: ") + (  # type: ignore[union-attr]
            trace.generations[1].request.messages[-1].text.count("Document3: ")  # type: ignore[union-attr]
        )

    assert shown(False) == 2
    assert shown(True) == 1


def test_an_empty_selection_is_answered_from_what_the_model_knows() -> None:
    (trace,) = run_with(method_of(), REPLIES | {"selector": ""})
    reading = "".join(message.text for message in trace.generations[2].request.messages)  # type: ignore[union-attr]
    assert "from what you know" in reading
    assert not any(passage.text in reading for passage in PASSAGES)


def test_the_selector_may_only_name_the_documents_that_it_sees() -> None:
    (trace,) = run_with(method_of(distinct=False, rewrite_tokens=20), REPLIES)
    selecting = trace.generations[1].request
    assert isinstance(selecting, Generate)
    assert "Document3" in selecting.allowed
    assert not any("4" in text for text in selecting.allowed)


@pytest.mark.parametrize(
    ("agents", "asked", "searched"),
    [
        (("selector", "generator"), ["selector", "generator"], [QUESTION]),
        (("rewriter", "generator"), ["rewriter", "generator"], ["Ada Byron born", "Alan Turing born"]),
        (("generator",), ["generator"], [QUESTION]),
    ],
)
def test_agents_can_be_left_out(agents: tuple[str, ...], asked: list[str], searched: list[str]) -> None:
    (trace,) = run_with(method_of(agents=agents, rewrite_tokens=20), REPLIES)
    assert roles_of(trace) == asked
    assert [s.request.query for s in trace.steps if isinstance(s.request, Retrieve)] == searched


def test_the_relatives_have_the_agents_of_their_papers() -> None:
    assert roles_of(run_with(method_of("rewrite_retrieve_read"), REPLIES)[0]) == ["rewriter", "generator"]
    assert roles_of(run_with(method_of("bgm"), REPLIES)[0]) == ["selector", "generator"]


# Rewards ------------------------------------------------------------------------------------------------


def judged(method: Any, replies: dict[str, str], reward: float, folder: Path, model: Path) -> Judgement:
    run = toy_run(folder, model, EXAMPLES, lambda answer, example: reward)
    (trace,) = run_with(method, replies)
    found: Judgement = method._judge(run)(trace, EXAMPLES[0])
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


SIX = "\n".join(f"query number {n}" for n in range(6))
LONG = " ".join(["word"] * 31)


@pytest.mark.parametrize(
    ("profile", "rewards"), [("paper", (-0.1, -0.6, -0.1)), ("official", (0.4, -0.6, -0.6))]
)
def test_oracle_7_one_shared_reward_and_a_penalty_for_each(
    tmp_path: Path, model: Path, profile: str, rewards: tuple[float, ...]
) -> None:
    replies = {"rewriter": SIX, "selector": "Document0,Document0", "generator": LONG}
    method = method_of(profile=profile)
    found = judged(method, replies, 0.4, tmp_path, model)
    assert found.reward == 0.4
    assert found.rewards == pytest.approx(rewards)
    assert found.scalars["selector/penalised"] == 1.0
    assert found.scalars["rewriter/queries"] == 4.0
    assert (found.scalars["selector/selected"], found.scalars["selector/empty"]) == (1.0, 0.0)


@pytest.mark.parametrize(("reward", "selected"), [(1.0, "Document5"), (0.4, "Document0")])
def test_oracle_6_the_case_study_has_no_penalty(
    tmp_path: Path, model: Path, reward: float, selected: str
) -> None:
    method = method_of(profile="paper", k=10)
    replies = REPLIES | {"selector": selected.replace("5", "1")}
    assert judged(method, replies, reward, tmp_path, model).rewards == (reward,) * 3


# Warm start ---------------------------------------------------------------------------------------------


class Stages:
    """Stands in for the trainers: keeps what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sft: list[tuple[str, Any, list[Any]]] = []
        self.ppo: list[tuple[dict[str, Any], Any]] = []
        monkeypatch.setattr(_agents, "sft", self._sft)
        monkeypatch.setattr(_agents, "ppo", self._ppo)

    def _sft(self, run: Any, stage: str, roles: Any, rows: Any, settings: Any) -> None:
        self.sft.append((stage, roles, list(rows)))

    def _ppo(self, run: Any, stage: str, policies: Any, answer: Callable[..., Any], *rest: Any) -> None:
        self.ppo.append((dict(policies), rest[-1]))


def trained(method: Any, folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> Stages:
    stages = Stages(monkeypatch)
    method.train(toy_run(folder, model, EXAMPLES, retriever=Library(), **how))
    return stages


def test_the_warm_start_shows_every_agent_its_own_prompt_and_the_right_output(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = method_of(warm_start=override(method_of().config.warm_start, ["shuffle=false"]))
    stages = trained(method, tmp_path, model, monkeypatch)
    ((stage, roles, rows),) = stages.sft
    assert (stage, roles) == ("sft", ("rewriter", "selector", "generator"))
    assert sorted(row.role for row in rows) == sorted([*roles, *roles])
    outputs = {role: [row.completion for row in rows if row.role == role] for role in roles}
    assert outputs["rewriter"][0] == "Ada Byron\nAlan Turing"
    # Whole words of the answer: "Ada" and "Byron"; for the other question "New" and "York".
    assert outputs["selector"] == ["Document0", "Document0"]
    assert outputs["generator"] == ["Ada Byron", "New York"]
    # With the taught outputs as replies, evaluation asks for the very same.
    replies = {row.messages: row.completion for row in rows}
    traces = run_with(replace_limits(method), lambda request: replies[request.messages], EXAMPLES)
    assert [trace.answer for trace in traces] == ["Ada Byron", "New York"]
    assert sum(len(trace.generations) for trace in traces) == len(rows)


def replace_limits(method: Any) -> Any:
    return type(method)(replace(method.config, rewrite_tokens=50, selection_tokens=50, max_new_tokens=50))


def test_shuffled_candidates_are_labelled_where_they_stand(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = trained(method_of(), tmp_path, model, monkeypatch).sft[0][2]
    selections = [row for row in rows if row.role == "selector"]
    for row, title in zip(selections, ("Ada Byron", "Grace Hopper"), strict=True):
        assert f"{row.completion}: {title}\n" in row.messages[-1].text


def test_rewrites_can_come_from_the_model_itself(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = override(method_of().config.warm_start, ["rewrites=model", "examples=1"])
    engine = ScriptedEngine(lambda request: "one\n\ntwo" if request.role == "rewriter" else "no")
    method = method_of(warm_start=settings)
    rows = trained(method, tmp_path, model, monkeypatch, engine=engine).sft[0][2]
    assert [row.completion for row in rows if row.role == "rewriter"] == ["one\ntwo"]


def test_only_some_agents_can_be_shown_something(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = override(method_of().config.warm_start, ["agents=selector"])
    done = trained(method_of(warm_start=settings, sharing="own"), tmp_path, model, monkeypatch)
    assert [(stage, {row.role for row in rows}) for stage, _, rows in done.sft] == [
        ("sft-selector", {"selector"})
    ]


def test_the_reader_of_the_relatives_is_fine_tuned_in_every_profile() -> None:
    for name in ("rewrite_retrieve_read", "bgm"):
        for config in METHODS.load(name).PROFILES.values():
            assert config.warm_start.agents is None
            assert (config.sharing, len(config.train_agents)) == ("own", 1)


@pytest.mark.parametrize(
    ("changes", "stages", "policies", "learners"),
    [
        ({}, ["sft"], {"shared": ("rewriter", "selector", "generator")}, 3),
        (
            {"train_agents": ("selector", "generator")},
            ["sft"],
            {"shared": ("rewriter", "selector", "generator")},
            2,
        ),
        (
            {"agents": ("selector", "generator")},
            ["sft"],
            {"shared": ("selector", "generator")},
            2,
        ),
        (
            {"sharing": "own", "train_agents": ("generator",)},
            ["sft-rewriter", "sft-selector", "sft-generator"],
            {"generator": ("generator",)},
            1,
        ),
    ],
)
def test_ablations_by_configuration(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    stages: list[str],
    policies: dict[str, tuple[str, ...]],
    learners: int,
) -> None:
    done = trained(method_of(**changes), tmp_path, model, monkeypatch)
    assert [stage for stage, _, _ in done.sft] == stages
    ((played, learning),) = done.ppo
    assert played == policies
    assert len(learning) == learners


# The real stages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mmoa_rag", "rewrite_retrieve_read", "bgm"])
def test_a_whole_training_on_a_tiny_model(tmp_path: Path, model: Path, name: str) -> None:
    """Oracle 12: B questions give one turn for each agent that learns."""
    method = method_of(name)
    run = toy_run(
        tmp_path, model, EXAMPLES * 2, lambda answer, example: float("e" in answer), retriever=Library()
    )
    method.train(run)
    report = run.report()
    learning = report.stages[-1]
    questions = method.config.ppo.steps * method.config.ppo.questions
    assert isinstance(learning, StageReport)
    assert (learning.kind, learning.role) == ("ppo", "+".join(method.config.learners))
    # A selector is not asked where nothing was found, which does not happen here.
    assert learning.rows == questions * len(method.config.learners)
    assert learning.rollouts.llm_calls == questions * len(method.config.agents)
    assert set(run.policies) == set(method.roles)
    assert len(run.statistics["ppo"]["reward"]) == method.config.ppo.steps


# Settings -----------------------------------------------------------------------------------------------


def test_the_paper_profile_has_table_6() -> None:
    ppo = METHODS.load("mmoa_rag").PROFILES["paper"].ppo
    assert (ppo.gamma, ppo.lam, ppo.clip, ppo.value_weight, ppo.top_p) == (1.0, 0.95, 0.2, 0.1, 0.9)
    assert (ppo.kl.init, ppo.kl.floor, ppo.questions) == (0.2, 0.06, 128)
    assert (ppo.update.learning_rate, ppo.update.schedule) == (2e-5, "cosine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"agents": ("selector",)}, "the generator always"),
        ({"agents": ("selector", "rewriter", "generator")}, "in this order"),
        ({"agents": ("planner", "generator")}, "agents are rewriter, selector, generator"),
        ({"agents": ("selector", "generator"), "train_agents": ("rewriter",)}, "train_agents names agents"),
        ({"train_agents": ()}, "train_agents names agents"),
        ({"give_up": 0}, "give_up must be at least 1, or none"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        method_of(**changes)
