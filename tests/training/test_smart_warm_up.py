"""What SmartRAG's policy is shown before PPO. Oracle 29 of specs/smart_rag.md, and every switch of §3.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from smart_library import COMPARED, EXAMPLES, FOUND, KNOWN, SEVERAL, Library, Mute
from tiny import build_tiny_model
from toy_training import toy_run

from ragtrials.data import Example
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods import _smart_warm_up
from ragtrials.methods._smart_actions import ANSWER, SEARCH, given_tag
from ragtrials.methods._smart_config import SmartConfig, WarmUp
from ragtrials.methods._smart_warm_up import Labels, WarmUpData, balanced, joined
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Engine, Evidence, Generate, Score
from ragtrials.training.rows import Demonstration
from ragtrials.training.run import TrainRun


def knows_half(request: Generate) -> str:
    """The untrained model: right about even numbers, and always sure."""
    number = int(request.messages[-1].text.split("Person")[1].split()[0])
    return f"Town{number}" if number % 2 == 0 else "Atlantis"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"), hidden=32)


@pytest.fixture
def warm_up(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes the rows of a warm-up: (rows, run, library)."""
    shown: list[Demonstration] = []
    monkeypatch.setattr(_smart_warm_up, "sft", lambda run, stage, role, rows, settings: shown.extend(rows))

    def rows_of(
        asked: Sequence[Example] = EXAMPLES,
        respond: Callable[[Generate], str] = knows_half,
        engine: Engine | None = None,
        library: Library | None = None,
        config: SmartConfig = SmartRAG.PROFILES["smoke"],
        quota: int = 1,
        **settings: Any,
    ) -> tuple[list[Demonstration], TrainRun, Library]:
        shown.clear()
        library = library or Library()
        run = toy_run(
            tmp_path / str(len(list(tmp_path.iterdir()))),
            model,
            asked,
            lambda answer, example: float(answer in example.aliases),
            engine=engine or ScriptedEngine(respond),
            retriever=library,
        )
        changed = replace(config, quota=quota, warm_up=WarmUp(**settings))
        WarmUpData(run, "policy", changed, ()).train(SmartRAG(changed).answer)
        return list(shown), run, library

    return rows_of


def said(row: Demonstration) -> str:
    """The whole reply of a row, the part that the prompt gives included."""
    last = row.messages[-1]
    return (last.text if last.role == "assistant" else "") + str(row.completion)


def question_of(row: Demonstration) -> str:
    return row.messages[0].text.split("\n\nQuestion: ")[1].split("\n")[0]


def observed(row: Demonstration) -> int:
    return row.messages[0].text.count("\n\nObservation: ")


def ids_of(rows: Sequence[Demonstration], tag: str, observations: int = 0) -> list[str]:
    """The examples of rows of a kind, in order."""
    by_question = {e.question: e.id for e in (*EXAMPLES, COMPARED, SEVERAL)}
    return [
        by_question[question_of(r)] for r in rows if said(r).startswith(tag) and observed(r) == observations
    ]


# What every row holds (29) --------------------------------------------------------------------------------


@pytest.mark.parametrize("label_mode", ["skr", "random", "all"])
@pytest.mark.parametrize("observations", ["all", "hit"])
@pytest.mark.parametrize("queries", ["rules", "question"])
def test_every_reply_has_one_tag_and_an_observation_is_answered(
    warm_up: Any, label_mode: str, observations: str, queries: str
) -> None:
    rows, _, _ = warm_up(label_mode=label_mode, observations=observations, queries=queries)
    assert {observed(row) for row in rows} == {0, 1}
    for row in rows:
        reply = said(row)
        assert reply.count("[") == 1
        assert reply.startswith((f"{SEARCH} ", f"{ANSWER} "))
        assert reply == " ".join(reply.split())
        assert row.role == "policy"
        if reply.startswith(SEARCH):
            assert observed(row) == 0
        if observed(row):
            assert reply.startswith(ANSWER)
            assert given_tag(Generate(row.messages)) == ANSWER  # the quota is used up


def test_no_gold_answer_is_in_a_prompt_but_from_what_was_found(warm_up: Any) -> None:
    rows, _, _ = warm_up(label_mode="all")
    for row in rows:
        plain = [part for m in row.messages for part in m.content if not isinstance(part, Evidence)]
        assert not any(gold in "".join(map(str, plain)) for gold in ("Town", "Ville"))


# Labels ---------------------------------------------------------------------------------------------------


def test_skr_shows_an_answer_to_what_the_model_knows_and_a_query_to_the_rest(warm_up: Any) -> None:
    rows, run, _ = warm_up(label_mode="skr", balance=False)
    assert set(ids_of(rows, ANSWER)) == KNOWN
    assert set(ids_of(rows, SEARCH)) == {e.id for e in EXAMPLES} - KNOWN
    assert ids_of(rows, ANSWER, 1) == [e.id for e in EXAMPLES]
    assert len(rows) == 2 * len(EXAMPLES)  # two rows for a question
    assert run.statistics["warm_up"] == {
        "examples": 12,
        "answers": 6,
        "searches": 6,
        "answers_from_observations": 12,
        "known": 0.5,
    }


def test_the_target_is_the_first_alias_with_the_blank_behind_the_tag(warm_up: Any) -> None:
    rows, _, _ = warm_up(label_mode="all")
    first = [row for row in rows if question_of(row) == EXAMPLES[0].question]
    assert sorted((row.completion, observed(row)) for row in first) == [
        (" Town0", 1),
        (f"{ANSWER} Town0", 0),
        (f"{SEARCH} Person0 born", 0),
    ]


def test_all_shows_both(warm_up: Any) -> None:
    rows, run, _ = warm_up(label_mode="all", respond=None, engine=Mute())
    everything = [e.id for e in EXAMPLES]
    kinds = [ids_of(rows, ANSWER), ids_of(rows, SEARCH), ids_of(rows, ANSWER, 1)]
    assert kinds == [everything] * 3
    assert "known" not in run.statistics["warm_up"]


def test_random_labels_ask_nobody_and_fall_to_both_sides(warm_up: Any) -> None:
    many = [Example(f"q{n}", f"Where was Person{n} born?", ((f"Town{n}",),)) for n in range(200)]
    run = warm_up(many, engine=Mute(), label_mode="random", balance=False)[1]
    statistics = run.statistics["warm_up"]
    assert statistics["answers"] + statistics["searches"] == 200
    assert statistics["answers"] == pytest.approx(100, abs=25)
    again = warm_up(many, engine=Mute(), label_mode="random", balance=False)[1]
    assert again.statistics == run.statistics


def test_what_is_known_may_be_read_from_containment(warm_up: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        TrainRun, "scores", lambda self, answer, example: {"em": 0.0, "acc": float(example.target in answer)}
    )
    assert warm_up(balance=False)[1].statistics["warm_up"]["known"] == 0.0
    assert warm_up(balance=False, known_by="acc")[1].statistics["warm_up"]["known"] == 0.5


# More than one answer of the untrained model --------------------------------------------------------------


class Drawing:
    """Answers each question in turn from a row of verdicts: 1 is right."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, verdicts: Mapping[int, str]) -> None:
        self.verdicts = verdicts
        self.requests: list[Generate] = []
        self.seeds: list[int] = []

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        found, turn = [], Counter[int]()
        for request in requests:
            number = int(request.messages[-1].text.split("Person")[1].split()[0])
            right = self.verdicts[number][turn[number]] == "1"
            turn[number] += 1
            found.append(Completion(f"Ville{number}" if right else "Atlantis", (1,), (2,)))
        self.requests += requests
        self.seeds += seeds
        return found

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        raise AssertionError


@pytest.mark.parametrize(
    ("verdicts", "known"),
    [
        ({0: "1", 1: "0"}, {"q0"}),
        ({0: "10", 1: "11"}, {"q1"}),  # half is not more than half
        ({0: "101", 1: "001"}, {"q0"}),
        ({0: "1100", 1: "1101"}, {"q1"}),
    ],
)
def test_more_than_half_of_the_answers_have_to_be_right(
    warm_up: Any, verdicts: dict[int, str], known: set[str]
) -> None:
    engine = Drawing(verdicts)
    samples = len(verdicts[0])
    rows, _, _ = warm_up(EXAMPLES[:2], engine=engine, samples=samples, temperature=0.8, balance=False)
    assert set(ids_of(rows, ANSWER)) == known
    assert len(engine.requests) == 2 * samples
    assert {request.temperature for request in engine.requests} == {0.0 if samples == 1 else 0.8}
    if samples > 1:
        assert len(set(engine.seeds)) == 2 * samples  # each draw is one of its own


# Balance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "size"), [({0, 2, 4}, 3), ({0, 1, 2, 3, 4, 5, 6, 7, 8}, 3)])
def test_balance_leaves_as_many_answers_as_queries(warm_up: Any, right: set[int], size: int) -> None:
    def respond(request: Generate) -> str:
        number = int(request.messages[-1].text.split("Person")[1].split()[0])
        return f"Town{number}" if number in right else ""

    rows, run, _ = warm_up(respond=respond)
    answered, searched = set(ids_of(rows, ANSWER)), set(ids_of(rows, SEARCH))
    assert len(answered) == len(searched) == size
    assert answered <= {f"q{n}" for n in right}
    assert searched.isdisjoint({f"q{n}" for n in right})
    assert ids_of(rows, ANSWER, 1) == [e.id for e in EXAMPLES]  # of these none is lost
    assert run.statistics["warm_up"]["known"] == len(right) / 12


@pytest.mark.parametrize("known", [True, False])
def test_where_one_side_is_empty_the_other_stays(warm_up: Any, known: bool) -> None:
    rows, _, _ = warm_up(
        respond=lambda request: (
            f"Town{request.messages[-1].text.split('Person')[1].split()[0]}" if known else "?"
        )
    )
    assert (len(ids_of(rows, ANSWER)), len(ids_of(rows, SEARCH))) == ((12, 0) if known else (0, 12))


def test_what_balance_keeps_is_drawn() -> None:
    labels = Labels([f"a{n}" for n in range(50)], [f"s{n}" for n in range(10)])
    kept = [balanced(labels, seed) for seed in range(40)]
    assert all(sorted(one.searched) == sorted(labels.searched) for one in kept)
    assert all(len(one.answered) == 10 and set(one.answered) <= set(labels.answered) for one in kept)
    assert len(Counter(i for one in kept for i in one.answered)) == 50  # nobody is left out for ever
    assert balanced(labels, 3) == kept[3]


# Queries --------------------------------------------------------------------------------------------------


def test_the_question_itself_may_be_the_query(warm_up: Any) -> None:
    rows, _, library = warm_up(queries="question", label_mode="all")
    assert [row.completion for row in rows if said(row).startswith(SEARCH)] == [
        f"{SEARCH} {e.question}" for e in EXAMPLES
    ]
    assert library.asked == [e.question for e in EXAMPLES]


def test_the_model_s_queries_and_the_question_where_it_writes_none(warm_up: Any) -> None:
    def respond(request: Generate) -> str:
        asked = request.messages[-1].text.split("\n\n")[-1]
        assert asked in {e.question for e in EXAMPLES}
        return "" if "Person3 " in asked or "Person5 " in asked else f"  birthplace of {asked.split()[2]}\nx"

    rows, run, library = warm_up(respond=respond, queries="model", label_mode="all")
    assert library.asked[:4] == [
        *(f"birthplace of Person{n}" for n in range(3)),
        "Where was Person3 born?",
    ]
    assert f"{SEARCH} birthplace of Person2" in [row.completion for row in rows]
    assert run.statistics["warm_up"]["empty_queries"] == 2
    assert run.statistics["warm_up"]["searches"] == 12


def test_skr_and_the_model_s_queries_are_both_in_the_statistics(warm_up: Any) -> None:
    def respond(request: Generate) -> str:
        return knows_half(request) if request.messages[0].role == "system" else ""

    run = warm_up(respond=respond, queries="model")[1]
    assert {"known": 0.5, "empty_queries": 12}.items() <= run.statistics["warm_up"].items()


@pytest.mark.parametrize(
    ("queries", "most", "expected"),
    [
        (["a b"], 1, ("a b",)),
        (["Walla Walla state"], 1, ("Walla Walla state",)),
        (["Ada Byron older", "Alan Turing older"], 2, ("Ada Byron older", "Alan Turing older")),
        (["Ada Byron older", "Alan Turing older"], 1, ("Ada Byron older Alan Turing",)),
        (["a x", "b x", "c x"], 2, ("a x", "b x c")),
        (["a x", "Walla Walla x"], 1, ("a x Walla Walla",)),
        (["a"], 3, ("a",)),
    ],
)
def test_queries_beyond_the_quota_are_put_into_the_last(
    queries: list[str], most: int, expected: tuple[str, ...]
) -> None:
    assert joined(queries, most) == expected


# Observations ---------------------------------------------------------------------------------------------


def test_answers_may_be_shown_where_the_observation_has_them_alone(warm_up: Any) -> None:
    rows, run, _ = warm_up(observations="hit", balance=False)
    assert set(ids_of(rows, ANSWER, 1)) == FOUND  # by an alias that is not the target
    assert run.statistics["warm_up"]["answers_from_observations"] == len(FOUND)
    assert run.statistics["warm_up"]["searches"] == 6  # a query is shown whatever it finds


def test_only_the_words_that_are_shown_are_looked_at(warm_up: Any) -> None:
    config = replace(SmartRAG.PROFILES["smoke"], passage_words=3)  # "Person0 was born"
    assert ids_of(warm_up(observations="hit", config=config)[0], ANSWER, 1) == []


# A larger quota -------------------------------------------------------------------------------------------


def replies(rows: Sequence[Demonstration]) -> list[tuple[int, str, bool]]:
    return [(observed(row), said(row), row.messages[-1].role == "assistant") for row in rows]


def test_another_query_follows_where_an_observation_lacks_the_answer(warm_up: Any) -> None:
    rows, run, library = warm_up(
        [COMPARED], engine=Mute(), library=Library({"Turing": "1912.", "Byron": "1815."}), quota=3,
        label_mode="all",
    )  # fmt: skip
    assert library.asked == ["Ada Byron", "Alan Turing"]
    assert replies(rows) == [
        (0, f"{ANSWER} Ada Byron", False),
        (0, f"{SEARCH} Ada Byron", False),
        (1, f"{SEARCH} Alan Turing", False),
        (2, f"{ANSWER} Ada Byron", False),  # there are no more queries, but the quota is not used up
    ]
    assert run.statistics["warm_up"] == {
        "examples": 1,
        "answers": 1,
        "searches": 2,
        "answers_from_observations": 1,
    }


def test_at_the_quota_the_tag_is_given(warm_up: Any) -> None:
    rows, _, _ = warm_up(
        [COMPARED], engine=Mute(), library=Library({"Turing": "1912."}), quota=2, label_mode="all"
    )
    assert replies(rows)[-1] == (2, f"{ANSWER} Ada Byron", True)


def test_no_query_follows_where_the_answer_was_found(warm_up: Any) -> None:
    library = Library({"Byron": "Ada Byron came in 1815."})
    rows, _, _ = warm_up([COMPARED], engine=Mute(), library=library, quota=2, label_mode="all")
    assert library.asked == ["Ada Byron"]
    assert replies(rows)[-1] == (1, f"{ANSWER} Ada Byron", False)


def test_a_later_query_is_shown_even_if_the_first_is_not(warm_up: Any) -> None:
    rows, _, _ = warm_up(
        [COMPARED],
        respond=lambda request: "Ada Byron",  # known: an answer comes first
        library=Library({"Turing": "1912."}),
        quota=2,
    )
    assert [text for _, text, _ in replies(rows)] == [
        f"{ANSWER} Ada Byron",
        f"{SEARCH} Alan Turing",
        f"{ANSWER} Ada Byron",
    ]


def test_several_answers_are_all_shown(warm_up: Any) -> None:
    rows, _, _ = warm_up([SEVERAL], engine=Mute(), label_mode="all")
    answers = [row.completion for row in rows if said(row).startswith(ANSWER)]
    assert answers == [f"{ANSWER} Kansas; Virginia", " Kansas; Virginia"]


# How many -------------------------------------------------------------------------------------------------


def test_the_first_training_examples_are_used(warm_up: Any) -> None:
    rows, run, _ = warm_up(label_mode="all", examples=5)
    assert ids_of(rows, SEARCH) == [e.id for e in EXAMPLES[:5]]
    assert run.statistics["warm_up"]["examples"] == 5
