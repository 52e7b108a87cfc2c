from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from fakes import ScriptedResources, hotpot_folder, hotpot_record, reply_with_a_town

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.planning import make_plan
from ragtrials.recording import command
from ragtrials.results import read_record
from ragtrials.runner import Folders, Outcome, run_all
from ragtrials.suite import Conditions, Request


@pytest.fixture
def data(tmp_path: Path, fresh_cache: Path) -> Path:
    return hotpot_folder(tmp_path / "data")


def request(method: str = "vanilla_rag", *options: str, **conditions: object) -> Request:
    chosen = Conditions(profile="smoke", chunk=2, **conditions)  # type: ignore[arg-type]
    return Request("suite", method, "hotpotqa", chosen, options)


def go(tmp_path: Path, data: Path, *requests: Request, **options: object) -> list[Outcome]:
    resources = ScriptedResources(data, options.pop("engine", ScriptedEngine(reply_with_a_town)))
    folders = Folders(tmp_path / "results", tmp_path / "runs")
    return run_all(requests, resources, folders, **options)  # type: ignore[arg-type]


def test_a_run_writes_a_record_and_predictions(tmp_path: Path, data: Path) -> None:
    (outcome,) = go(tmp_path, data, request())
    assert outcome.status == "done"
    assert outcome.folder is not None
    record = read_record(outcome.folder / "run.json")
    assert record == outcome.record
    assert (record.n, record.sample, record.retriever, record.corpus) == (
        6,
        "all 6",
        "bm25",
        "hotpotqa-dev-pool",
    )
    assert record.scores["em"].mean == record.scores["f1"].mean == 1.0
    assert record.cost["retrieval_calls"] == 1.0
    assert record.cost["passages"] == 2.0
    frame = polars.read_parquet(outcome.folder / "predictions.parquet")
    assert frame.columns[:2] == ["id", "prediction"]
    expected = {
        "em",
        "f1",
        "acc",
        "retrieval_calls",
        "passages",
        "llm_calls",
        "prompt_tokens",
        "completion_tokens",
    }
    assert expected | {"flags", "gold_recall", "answer_recall"} <= set(frame.columns)
    assert frame["prediction"].to_list() == [f"Town {i}" for i in range(6)]


def test_no_text_of_the_data_and_no_place_stands_in_a_record(tmp_path: Path, data: Path) -> None:
    (outcome,) = go(tmp_path, data, request())
    assert outcome.folder is not None
    text = (outcome.folder / "run.json").read_text()
    assert str(tmp_path) not in text
    assert "born" not in text
    frame = polars.read_parquet(outcome.folder / "predictions.parquet")
    assert not [name for name in frame.columns if name in ("question", "answer", "gold", "passages_text")]
    # The texts are kept where nothing is committed.
    assert "born" in next((tmp_path / "runs").rglob("chunk-00000.jsonl")).read_text()


def test_a_finished_run_is_not_done_again(tmp_path: Path, data: Path) -> None:
    go(tmp_path, data, request())
    engine = ScriptedEngine(lambda _: pytest.fail("the model was asked again"))
    (outcome,) = go(tmp_path, data, request(), engine=engine)
    assert outcome.status == "already done"


def test_overwrite_does_it_again(tmp_path: Path, data: Path) -> None:
    go(tmp_path, data, request())
    (outcome,) = go(tmp_path, data, request(), engine=ScriptedEngine(lambda _: "no"), overwrite=True)
    assert outcome.status == "done"
    assert outcome.record is not None
    assert outcome.record.scores["em"].mean == 0.0


def test_a_run_that_broke_answers_only_what_is_missing(tmp_path: Path, data: Path) -> None:
    asked = []

    def breaks(question: object) -> str:
        asked.append(question)
        if len(asked) > 4:
            raise RunFailure("power cut")
        return reply_with_a_town(question)  # type: ignore[arg-type]

    (outcome,) = go(tmp_path, data, request(), engine=ScriptedEngine(breaks))
    assert (outcome.status, outcome.record) == ("failed", None)
    assert "power cut" in outcome.message
    again: list[object] = []

    def counts(question: object) -> str:
        again.append(question)
        return reply_with_a_town(question)  # type: ignore[arg-type]

    (outcome,) = go(tmp_path, data, request(), engine=ScriptedEngine(counts))
    assert outcome.status == "done"
    assert len(again) == 2
    assert outcome.record is not None
    assert outcome.record.n == 6


def test_scoring_that_broke_is_done_again_without_the_model(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ragtrials.runner

    with monkeypatch.context() as patch:
        patch.setattr(ragtrials.runner, "write_record", lambda *_: (_ for _ in ()).throw(OSError("disk")))
        (outcome,) = go(tmp_path, data, request())
        assert outcome.status == "failed"
    engine = ScriptedEngine(lambda _: pytest.fail("the model was asked again"))
    (outcome,) = go(tmp_path, data, request(), engine=engine)
    assert outcome.status == "done"


def test_a_failed_run_does_not_stop_the_others(tmp_path: Path, data: Path) -> None:
    def only_closed_book(asked: object) -> str:
        if "these passages" in asked.messages[0].text:  # type: ignore[attr-defined]
            raise RunFailure("no")
        return "Town 1"

    outcomes = go(
        tmp_path,
        data,
        request("vanilla_rag"),
        request("no_retrieval"),
        engine=ScriptedEngine(only_closed_book),
    )
    assert [outcome.status for outcome in outcomes] == ["failed", "done"]


def test_everything_is_planned_before_anything_runs(tmp_path: Path, data: Path) -> None:
    engine = ScriptedEngine(lambda _: pytest.fail("a run started"))
    with pytest.raises(UserError, match="did you mean 'vanilla_rag'"):
        go(tmp_path, data, request(), request("vanila_rag"), engine=engine)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"limit": 5},
        {"chunk": 3},
        {"retriever": "oracle"},
    ],
)
def test_what_changes_a_number_changes_the_id(tmp_path: Path, data: Path, change: dict[str, object]) -> None:
    resources = ScriptedResources(data, ScriptedEngine(reply_with_a_town))
    base = Request("suite", "vanilla_rag", "hotpotqa", Conditions(profile="smoke", chunk=2))
    plain = make_plan(base, resources)
    other = make_plan(
        Request("suite", "vanilla_rag", "hotpotqa", Conditions(**{"profile": "smoke", "chunk": 2, **change})),
        resources,
    )  # type: ignore[arg-type]
    assert plain is not None
    assert other is not None
    assert plain.spec.id != other.spec.id


def test_other_data_or_options_change_the_id_and_the_suite_does_not(tmp_path: Path, data: Path) -> None:
    def id_of(folder: Path, *options: str, suite: str = "suite") -> str:
        resources = ScriptedResources(folder, ScriptedEngine(reply_with_a_town))
        asked = Request(suite, "vanilla_rag", "hotpotqa", Conditions(profile="smoke"), options)
        plan = make_plan(asked, resources)
        assert plan is not None
        return plan.spec.id

    base = id_of(data)
    assert id_of(data, "k=3") != base
    assert id_of(data, suite="other") == base
    dev = data / "hotpotqa" / "dev.json"
    dev.write_text(json.dumps([hotpot_record(i, answer="Elsewhere") for i in range(6)]))
    assert id_of(data) != base


def test_the_few_shot_examples_come_from_train_alone(tmp_path: Path, data: Path) -> None:
    seen: list[str] = []

    def spy(asked: object) -> str:
        seen.extend(message.text for message in asked.messages)  # type: ignore[attr-defined]
        return "x"

    go(tmp_path, data, request("no_retrieval", "shots=3", limit=1), engine=ScriptedEngine(spy))
    shown = [text for text in seen if text.startswith("Question: ")][:-1]
    assert len(shown) == 3
    assert all(
        int(text.split("person ")[1].split()[0]) >= 100 for text in shown
    )  # train holds persons 100-119


def test_the_sample_is_the_same_for_every_method_and_part_of_a_larger_one(tmp_path: Path, data: Path) -> None:
    resources = ScriptedResources(data, ScriptedEngine(reply_with_a_town))

    def ids(method: str, limit: int, seed: int) -> list[str]:
        conditions = Conditions(profile="smoke", limit=limit, seed=seed)
        plan = make_plan(Request("suite", method, "hotpotqa", conditions), resources)
        assert plan is not None
        return [example.id for example in plan.examples]

    assert ids("vanilla_rag", 3, 0) == ids("no_retrieval", 3, 7)
    assert set(ids("vanilla_rag", 3, 0)) < set(ids("vanilla_rag", 5, 0))
    assert ids("vanilla_rag", 99, 0) == ids("vanilla_rag", 6, 0)


def test_an_optional_run_without_data_is_left_out(tmp_path: Path, fresh_cache: Path) -> None:
    asked = Request("suite", "no_retrieval", "hotpotqa", Conditions(profile="smoke"), optional=True)
    (outcome,) = go(tmp_path, tmp_path / "nothing", asked)
    assert outcome.status == "left out"


def test_the_command_of_a_record_holds_no_path(tmp_path: Path) -> None:
    asked = Request("s", "vanilla_rag", "hotpotqa", Conditions(model=str(tmp_path), limit=5), ("k=2",))
    expected = f"ragtrials run --method vanilla_rag --task hotpotqa --model {tmp_path.name} --limit 5 -o k=2"
    assert command(asked) == expected
    hub = Request("s", "vanilla_rag", "hotpotqa", Conditions(model="org/name@rev"))
    assert "--model org/name@rev" in command(hub)


def test_the_diagnostic_retrievers_order_as_they_must(tmp_path: Path, data: Path) -> None:
    recall = {}
    for name in ("oracle", "bm25", "random", "empty"):
        (outcome,) = go(tmp_path, data, request(retriever=name))
        assert outcome.record is not None
        recall[name] = outcome.record.retrieval["gold_recall"]
    assert recall["oracle"] == 1.0
    assert recall["empty"] == 0.0
    assert recall["oracle"] >= recall["bm25"] > recall["random"] >= recall["empty"]
