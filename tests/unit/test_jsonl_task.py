"""The task of a user's own file: how it is called, what it reads, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars
import pytest
from fakes import ScriptedResources, hotpot_folder, reply_with_a_town
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrials.checkup import examine
from ragtrials.conformance import check_task
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.planning import make_plan
from ragtrials.recording import command
from ragtrials.registry import METHODS, TASKS
from ragtrials.results import read_record
from ragtrials.runner import Folders, Outcome, run_all
from ragtrials.suite import Conditions, Request, expand, load_suite
from ragtrials.task import Task

quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
QUESTIONS = [
    {"id": n, "question": f"In which town was person {n} born?", "answers": [f"Town {n}"]} for n in range(3)
]
PASSAGES = [{"id": n, "title": f"Person {n}", "text": f"Born in Town {n}."} for n in range(5)]


def put(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def task_of(path: Path) -> Task:
    return TASKS.load(f"jsonl:{path}")(None)


def read(path: Path, *records: Any) -> list[Example]:
    return list(task_of(put(path, *records)).examples("test"))


# Reading


def test_questions_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path / "mine.jsonl",
        {"id": "a", "question": "Who?", "answers": "Ada"},
        {
            "id": 7,
            "question": "Where?",
            "answers": ["Rome", "Roma", "Rome", " "],
            "supporting": ["p1", 2, "p1"],
        },
        {"id": "c", "question": "When?", "answers": ["1815"], "supporting": None, "extra": {}},
    )
    assert found == [
        Example("a", "Who?", (("Ada",),)),
        Example("7", "Where?", (("Rome", "Roma"),), ("p1", "2"), {"blank_answers": 1}),
        Example("c", "When?", (("1815",),)),
    ]


def test_gzip_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    plain = put(tmp_path / "mine.jsonl", *QUESTIONS)
    text = plain.read_text().replace("\n", "\r\n").encode("utf-8-sig")
    (tmp_path / "other.jsonl.gz").write_bytes(gzip.compress(text))
    assert list(task_of(tmp_path / "other.jsonl.gz").examples("test")) == read(plain, *QUESTIONS)


GOOD = {"id": "a", "question": "Who?", "answers": ["Ada"]}


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([], "is empty"),
        ([GOOD, {**GOOD, "id": "b"}, GOOD], "line 3 (id 'a'): repeats the id of line 1"),
        ([{**GOOD, "id": 1}, {**GOOD, "id": "1"}], "line 2 (id '1'): repeats the id of line 1"),
        ([[GOOD]], "line 1 must be a JSON object, not list"),
        ([{**GOOD, "id": None}], "line 1: field 'id' is missing"),
        ([{**GOOD, "id": 1.5}], "field 'id' must be text, not float"),
        ([{**GOOD, "question": ""}], "line 1 (id 'a'): field 'question' is empty"),
        ([{**GOOD, "question": ["Who?"]}], "field 'question' must be text, not list"),
        ([{"id": "a", "question": "Who?"}], "line 1 (id 'a'): field 'answers' is missing"),
        ([{**GOOD, "answers": []}], "field 'answers' holds no answer"),
        ([{**GOOD, "answers": [" "]}], "field 'answers' holds no answer"),
        ([{**GOOD, "answers": [1]}], "field 'answers' must hold a text or a list of texts"),
        ([{**GOOD, "answers": {"Ada": 1}}], "field 'answers' must hold a text or a list of texts"),
        ([{**GOOD, "answers": [["Ada"], ["Bob"]]}], "field 'answers' holds lists inside a list: list the"),
        ([{**GOOD, "supporting": "p1"}], "field 'supporting' has the wrong type"),
        ([{**GOOD, "supporting": [True]}], "field 'supporting' must hold passage ids"),
        ([{**GOOD, "supporting": [""]}], "field 'supporting' must hold passage ids"),
        ([{**GOOD, "question": "\ud800"}], "lone surrogate"),
    ],
)
def test_a_wrong_question_is_named(tmp_path: Path, records: list[Any], problem: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path / "mine.jsonl", *records)
    assert problem in str(caught.value)
    assert "mine.jsonl" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_another_split_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl does not exist"):
        task_of(tmp_path / "gone.jsonl").examples("test")
    with pytest.raises(UserError, match=r"^cannot read .*Is a directory$"):
        task_of(tmp_path).examples("test")
    with pytest.raises(UserError, match="task jsonl-mine has no split 'train': use one of test"):
        task_of(put(tmp_path / "mine.jsonl", *QUESTIONS)).examples("train")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


def ends_well(path: Path) -> None:
    """Sound examples, or one line that names the file."""
    task = task_of(path)
    try:
        examples = task.examples("test")
    except UserError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
        assert path.name in str(error)  # noqa: PT017
        return
    assert examples
    assert len({example.id for example in examples}) == len(examples)
    for example in examples:
        assert example.question.strip()
        [group] = example.answers
        assert group
        assert all(alias.strip() for alias in group)
        assert all(identity.strip() for identity in example.supporting)
        assert all(0.0 <= value <= 1.0 for value in task.score(example.target, example).values())
        json.dumps([example.id, example.question, group, example.supporting], ensure_ascii=False).encode()


@given(
    changes=st.lists(
        st.dictionaries(st.sampled_from(["id", "question", "answers", "supporting"]), JSON, max_size=2),
        max_size=3,
    ),
    prefix=st.sampled_from(["", "\ufeff", "\n"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@quickly
def test_any_value_in_any_field_ends_well(
    tmp_path: Path, changes: list[dict[str, Any]], prefix: str, end: str
) -> None:
    records = [{**GOOD, "id": number, **change} for number, change in enumerate(changes)]
    path = tmp_path / "any.jsonl"
    path.write_bytes((prefix + "".join(json.dumps(record) + end for record in records)).encode())
    ends_well(path)


@given(content=st.binary(max_size=40) | st.text('[]{}",:\\\n\t\r 1a', max_size=40).map(str.encode))
@quickly
def test_any_bytes_end_well(tmp_path: Path, content: bytes) -> None:
    for name, data in (("any.jsonl", content), ("cut.jsonl.gz", gzip.compress(content)[: len(content) + 9])):
        (tmp_path / name).write_bytes(data)
        ends_well(tmp_path / name)


# Naming


def test_a_file_becomes_a_task_of_its_own(tmp_path: Path) -> None:
    path = put(tmp_path / "my questions.jsonl", *QUESTIONS)
    task = task_of(path)
    assert (task.name, task.file, task.available_offline()) == ("jsonl-my_questions", path, True)
    assert "my questions.jsonl" in task.card.title
    assert str(tmp_path) not in str(task.card)
    assert check_task(task) == []


def test_gold_passages_of_a_file_are_not_looked_for_without_a_corpus(tmp_path: Path) -> None:
    path = put(tmp_path / "mine.jsonl", *({**question, "supporting": ["p1"]} for question in QUESTIONS))
    assert check_task(task_of(path)) == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("jsonl", "task jsonl reads a file of yours: write jsonl:FILE, e.g. -t jsonl:questions.jsonl"),
        ("jsonl:", "task jsonl reads a file of yours: write jsonl:FILE, e.g. -t jsonl:questions.jsonl"),
        ("jsnl:q.jsonl", "unknown task 'jsnl'; did you mean 'jsonl'?"),
        ("nq:q.jsonl", "task nq reads no file of yours: write nq instead of nq:q.jsonl"),
    ],
)
def test_a_wrong_name_is_one_line(name: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        ScriptedResources(None, None).task(name)
    assert str(caught.value) == problem


def test_a_method_reads_no_file() -> None:
    with pytest.raises(UserError, match="method vanilla_rag reads no file: write vanilla_rag instead of"):
        METHODS.load("vanilla_rag:x")


def test_the_card_alone_is_no_task_but_can_be_shown() -> None:
    alone = TASKS.load("jsonl")(None)
    assert not alone.available_offline()
    with pytest.raises(UserError, match="write jsonl:FILE"):
        alone.examples("test")
    assert not [finding for finding in examine(None) if "jsonl" in finding.text]


def test_two_files_of_one_name_are_two_tasks(tmp_path: Path) -> None:
    resources = ScriptedResources(None, None)
    one, other = (
        resources.task(f"jsonl:{put(tmp_path / folder / 'q.jsonl', question)}")
        for folder, question in (("a", QUESTIONS[0]), ("b", QUESTIONS[1]))
    )
    assert one.name == other.name
    assert resources.task(f"jsonl:{tmp_path / 'a' / 'q.jsonl'}") is one
    assert resources.examples(one, "test") != resources.examples(other, "test")


# Running


@pytest.fixture
def here(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with questions and passages; no data folder."""
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "questions.jsonl", *QUESTIONS)
    put(tmp_path / "passages.jsonl", *PASSAGES)
    return tmp_path


def request(
    *options: str, method: str = "vanilla_rag", task: str = "jsonl:questions.jsonl", **conditions: Any
) -> Request:
    return Request("suite", method, task, Conditions(profile="smoke", **conditions), options)


def go(here: Path, *requests: Request, reply: Callable[..., str] = reply_with_a_town) -> list[Outcome]:
    resources = ScriptedResources(None, ScriptedEngine(reply))
    return run_all(requests, resources, Folders(here / "results", here / "runs"))


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.folder is not None, outcome.message
    return polars.read_parquet(outcome.folder / "predictions.parquet").to_dicts()


def test_a_run_on_files_of_ones_own(here: Path) -> None:
    (outcome,) = go(here, request("shots=0", corpus=str(here / "passages.jsonl")))
    assert outcome.status == "done", outcome.message
    assert outcome.folder is not None
    record = read_record(outcome.folder / "run.json")
    assert outcome.folder.parent == here / "results" / "suite" / "jsonl-questions"
    assert (record.task, record.corpus, record.main_metric) == ("jsonl-questions", "passages", "f1")
    assert record.scores["f1"].mean == record.scores["acc"].mean == 1.0
    assert record.retrieval == {"answer_recall": 1.0}
    assert str(here) not in (outcome.folder / "run.json").read_text()
    assert record.command == (
        "ragtrials run --method vanilla_rag --task jsonl:questions.jsonl --corpus passages.jsonl "
        "--profile smoke -o shots=0"
    )


def test_gold_passages_are_those_of_the_given_corpus(here: Path) -> None:
    golds: list[list[Any]] = [[0], [1, "gone"], []]
    put(here / "questions.jsonl", *({**q, "supporting": g} for q, g in zip(QUESTIONS, golds, strict=True)))
    found = go(
        here,
        request("shots=0", corpus="passages.jsonl"),
        request("shots=0", corpus="passages.jsonl", retriever="oracle"),
    )
    assert [[row["gold_recall"] for row in rows(outcome)] for outcome in found] == [[1.0, 0.5, None]] * 2
    assert [row["passages"] for row in rows(found[1])] == [1, 1, 0]


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (request("shots=0"), "task jsonl-questions has no corpus of its own: name one with --corpus"),
        (request(corpus="passages.jsonl"), "task jsonl-questions has no training part .*: set -o shots=0$"),
        (request("shots=0", corpus="gone.tsv"), "--corpus gone.tsv: no such file"),
        (request("shots=0", task="jsonl:gone.jsonl", corpus="passages.jsonl"), r"gone\.jsonl does not exist"),
        (request("shots=0", split="train", corpus="passages.jsonl"), "has no split 'train': use one of test"),
    ],
)
def test_what_is_missing_is_told_before_anything_runs(here: Path, asked: Request, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        go(here, asked)


def test_a_corpus_without_any_gold_passage_is_told_to_the_oracle(here: Path) -> None:
    (outcome,) = go(here, request("shots=0", corpus="passages.jsonl", retriever="oracle"))
    assert outcome.status == "refused"
    assert "none of the 3 questions names a supporting passage of the corpus passages" in outcome.message


def test_a_method_that_never_retrieves_needs_no_corpus(here: Path) -> None:
    without = make(here, request("shots=0", method="no_retrieval"))
    unread = make(here, request("shots=0", method="no_retrieval", corpus="gone.jsonl"))
    assert without.spec == unread.spec


def make(here: Path, asked: Request, data: Path | None = None) -> Any:
    return make_plan(asked, ScriptedResources(data, ScriptedEngine(reply_with_a_town)))


def test_a_suite_takes_files_and_leaves_missing_ones_out(here: Path) -> None:
    suite = here / "mine.toml"
    suite.write_text(
        'name = "mine"\ndescription = "my files"\n[conditions]\nprofile = "smoke"\n'
        'corpus = "passages.jsonl"\n[[runs]]\nmethods = ["vanilla_rag"]\noptional = true\n'
        'tasks = ["jsonl:questions.jsonl", "jsonl:gone.jsonl"]\noptions = { shots = 0 }\n'
    )
    found = go(here, *expand(load_suite(str(suite)), {}))
    assert [outcome.status for outcome in found] == ["done", "left out"]


# Another corpus for a task that has one


def test_a_given_corpus_takes_the_place_of_the_tasks_own(here: Path) -> None:
    data = hotpot_folder(here / "data")
    own, given = (
        make(here, request(task="hotpotqa", corpus=corpus), data) for corpus in (None, "passages.jsonl")
    )
    assert own.spec.retriever["corpus"] == "hotpotqa-dev-pool"
    assert given.spec.retriever["corpus"] == "passages"
    assert own.spec == replace(given.spec, retriever=own.spec.retriever)  # the same questions, comparable
    assert all(example.supporting for example in own.examples)
    assert not any(example.supporting for example in given.examples)  # so that no gold recall is counted
    with pytest.raises(
        UserError, match="the oracle retriever knows the gold passages of task hotpotqa in its"
    ):
        make(here, request(task="hotpotqa", corpus="passages.jsonl", retriever="oracle"), data)


def test_corpora_of_one_name_are_kept_apart(here: Path) -> None:
    put(here / "other" / "passages.jsonl", *PASSAGES[:2])
    put(here / "hotpotqa-dev-pool.jsonl", *PASSAGES[:2])
    resources = ScriptedResources(hotpot_folder(here / "data"), ScriptedEngine(reply_with_a_town))
    task = resources.task("hotpotqa")
    found = [
        resources.retriever(Conditions(corpus=corpus), task).signature["corpus_digest"]
        for corpus in ("passages.jsonl", "other/passages.jsonl", "hotpotqa-dev-pool.jsonl", None)
    ]
    assert len(set(found)) == 3
    assert found[1] == found[2]


@pytest.mark.parametrize(
    ("corpus", "words"),
    [
        ("/home/me/my passages.tsv.gz", "--corpus 'my passages.tsv.gz'"),
        ("wiki18-100w", "--corpus wiki18-100w"),
    ],
)
def test_a_command_names_files_without_their_folder(corpus: str, words: str) -> None:
    written = command(request(task="jsonl:/home/me/q.jsonl", corpus=corpus))
    assert "/home" not in written
    assert words in written
    assert "--task jsonl:q.jsonl" in written


def test_a_task_that_was_published_without_passages_can_search_others(here: Path) -> None:
    claim = {"id": 1, "claim": "Rome is old.", "label": "SUPPORTS", "evidence": []}
    put(here / "data" / "fever" / "dev.jsonl", claim)
    asked = request("shots=0", task="fever", corpus="passages.jsonl")
    assert make(here, asked, here / "data").spec.retriever["corpus"] == "passages"
    with pytest.raises(UserError, match="task fever has no corpus of its own: name one with --corpus"):
        make(here, request("shots=0", task="fever"), here / "data")
