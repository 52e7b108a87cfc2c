"""Files of predictions against the questions of a task: official values, and what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, made_up_folder, write_split
from fakes import hotpot_folder, hotpot_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragtrials.errors import UserError
from ragtrials.judging import MANY, Judgement, judge
from ragtrials.metrics import score
from ragtrials.metrics.multihop import hotpotqa_file, musique_file, twowiki_file
from ragtrials.predictions import read_predictions
from ragtrials.registry import TASKS
from ragtrials.seeding import derive_seed
from ragtrials.stats import Estimate, bootstrap
from ragtrials.task import Task


def judged(task: Task, folder: Path, content: Any, split: str | None = None) -> Judgement:
    """`content` is a JSON object, or a list of JSON lines."""
    path = folder / "predictions"
    lines = content if isinstance(content, list) else [content]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return judge(task, split or task.card.reported_split, read_predictions(path))


def hotpot(folder: Path, dev: int = 4) -> Task:
    return TASKS.load("hotpotqa")(hotpot_folder(folder, dev=dev))


def made_up(name: str, folder: Path) -> Task:
    return TASKS.load(name)(made_up_folder(folder, name))


def column(judgement: Judgement, name: str) -> list[Any]:
    return list(judgement.columns[name])


def test_missing_extra_repeated_empty(tmp_path: Path) -> None:
    lines = [
        {"id": "q000", "prediction": "town 0"},
        {"id": "q001", "prediction": " "},
        {"id": "q002", "prediction": "Town 2"},
        {"id": "q002", "prediction": "Village 2"},
        {"id": "other", "prediction": "Town"},
    ]
    found = judged(hotpot(tmp_path), tmp_path, lines)
    assert column(found, "em") == [1.0, 0.0, 0.0, 0.0]
    assert column(found, "f1") == [1.0, 0.0, 0.5, 0.0]
    assert column(found, "prediction") == ["town 0", " ", "Village 2", None]
    assert found.flags == {"empty_pred": 1, "missing": 1}
    assert (found.read, list(found.extra), list(found.repeated)) == (4, ["other"], ["q002"])
    assert found.score_names == ("em", "f1", "precision", "recall", "acc")
    means = {name: found.means(rows)["f1"] for name, rows in found.groups().items()}
    assert means == {"all": 0.375, "answered": 0.5}


def test_a_missing_prediction_is_wrong_even_where_an_empty_one_would_be_right(tmp_path: Path) -> None:
    folder = tmp_path / "hotpotqa"
    folder.mkdir()
    records = [hotpot_record(0, answer="The"), hotpot_record(1, answer="The"), hotpot_record(2)]
    (folder / "dev.json").write_text(json.dumps(records))
    found = judged(TASKS.load("hotpotqa")(tmp_path), tmp_path, {"q000": "", "q002": "Town 2"})
    assert column(found, "em") == [1.0, 0.0, 1.0]
    assert column(found, "flags") == ["empty_pred,degenerate_gold", "missing,degenerate_gold", ""]


def test_questions_instead_of_ids(tmp_path: Path) -> None:
    task = made_up("nq", tmp_path)
    lines = [
        {"question": "who won  race 1 ", "prediction": "Ada"},
        {"question": "who won race 0", "prediction": "nobody"},
        {"question": "who won race 77", "prediction": "Ada"},
    ]
    found = judged(task, tmp_path, lines)
    assert column(found, "em") == [0.0, 1.0, 0.0, 0.0]
    assert list(found.extra) == ["who won race 77"]
    assert found.flags == {"missing": 2}


def test_a_repeated_question_is_answered_in_order(tmp_path: Path) -> None:
    record = LAYOUTS["popqa"].record
    twins = [{**record(n), "question": "Who?", "possible_answers": json.dumps([f"p{n}"])} for n in (1, 2)]
    write_split(tmp_path, "popqa", "test", twins)
    lines = [{"question": "Who?", "prediction": text} for text in ("p1", "p2", "p3")]
    found = judged(TASKS.load("popqa")(tmp_path), tmp_path, lines)
    assert column(found, "acc") == [1.0, 1.0]
    assert (found.read, list(found.extra)) == (3, ["Who?"])


def test_lists_of_answers_and_the_types_of_questions(tmp_path: Path) -> None:
    record = LAYOUTS["ambigqa"].record
    multi = [annotation for annotation in record(0)["annotations"] if annotation["type"] == "multipleQAs"]
    records = [record(0), {**record(1), "annotations": multi}, {**record(2), "annotations": multi}]
    write_split(tmp_path, "ambigqa", "dev", records)
    task = TASKS.load("ambigqa")(tmp_path)
    found = judged(task, tmp_path, {"-01": ["Cy"], "-11": ["Ada", "Bob"], "-21": "Ada; Bob; Ada"})
    exact = [
        score("ambigqa_v1", answers, example.meta["annotations"])["f1"]
        for answers, example in zip(
            (["Cy"], ["Ada", "Bob"], ["Ada", "Bob", "Ada"]), task.examples("dev"), strict=True
        )
    ]
    assert column(found, "f1") == exact
    assert column(found, "type") == ["mixed", "multi", "multi"]
    assert found.means(found.groups()["type multi"])["f1"] == pytest.approx(sum(exact[1:]) / 2)
    assert any("multi only" in remark for remark in found.remarks)


def test_an_answer_with_a_semicolon_stays_whole_in_a_list(tmp_path: Path) -> None:
    record = LAYOUTS["ambigqa"].record(0)
    record["annotations"] = [{"type": "singleAnswer", "answer": ["x; y"]}]
    write_split(tmp_path, "ambigqa", "dev", [record])
    task = TASKS.load("ambigqa")(tmp_path)
    assert column(judged(task, tmp_path, {"-01": ["x; y"]}), "f1")[0] == 1.0
    assert column(judged(task, tmp_path, {"-01": "x; y"}), "f1")[0] == 0.0


def test_one_answer_in_a_list_is_that_answer_and_more_are_refused(tmp_path: Path) -> None:
    task = hotpot(tmp_path)
    assert column(judged(task, tmp_path, {"q000": ["Town 0"]}), "em")[0] == 1.0
    with pytest.raises(UserError, match="id 'q000': task hotpotqa takes one answer to a question"):
        judged(task, tmp_path, {"q000": ["Town 0", "Town 1"]})


def test_predictions_of_another_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"no prediction belongs to the 4 questions .* has 'x', the split 'q000'"
    ):
        judged(hotpot(tmp_path), tmp_path, {"x": "y"})


def test_an_unknown_split_and_another_split(tmp_path: Path) -> None:
    task = hotpot(tmp_path)
    with pytest.raises(UserError, match="hotpotqa has no split 'test'"):
        judged(task, tmp_path, {"q000": "y"}, "test")
    id_of_train = task.examples("train")[0].id
    assert judged(task, tmp_path, {id_of_train: "y"}, "train").flags["missing"] == 17


def test_parts_that_a_task_does_not_score(tmp_path: Path) -> None:
    task = hotpot(tmp_path)
    whole = {"answer": {"q000": "x"}, "sp": {}, "evidence": {}}
    with pytest.raises(UserError, match="task hotpotqa does not score the part 'evidence', only sp"):
        judged(task, tmp_path, whole)
    with pytest.raises(UserError, match="task nq does not score the part 'sp'; give the answers alone"):
        judged(made_up("nq", tmp_path), tmp_path, {"answer": {"q000": "x"}, "sp": {}})


def test_the_interval_of_many_questions_agrees_with_the_bootstrap() -> None:
    scores = [(n * 7919 % 11) / 10 if n % 11 else 0.0 for n in range(MANY)]

    def interval(values: list[float]) -> Estimate:
        columns = {"id": [""] * len(values), "prediction": values, "f1": values, "type": [], "flags": []}
        return Judgement(columns, 0, (), (), {}, ()).estimate("f1")

    many, resampled = interval(scores), bootstrap(scores)
    assert many.mean == pytest.approx(resampled.mean, abs=1e-12)
    assert (many.low, many.high) == pytest.approx((resampled.low, resampled.high), abs=2e-4)
    assert many.high - many.low > 0.005
    assert interval([1.0, 0.0, 1.0]) == bootstrap([1.0, 0.0, 1.0], derive_seed(0, "judge", "f1"))


TEXTS = st.sampled_from(["Town 0", "Town 1", "town", "the", "", "Paris", "City of Light", "yes"])
FACTS = st.lists(
    st.tuples(st.sampled_from(["Person 0", "House 0", "house 0", "Ada", "Bob"]), st.integers(0, 1)).map(list),
    max_size=4,
)
QUIET = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def by_id(draw: Any, ids: list[str], values: st.SearchStrategy[Any]) -> dict[str, Any]:
    chosen = draw(st.lists(st.sampled_from(ids), unique=True))
    return {key: draw(values) for key in chosen}


def assert_same(found: Judgement, official: dict[str, float], names: dict[str, str] | None = None) -> None:
    means = found.means(found.groups()["all"])
    for name, value in official.items():
        assert means[(names or {}).get(name, name)] == pytest.approx(value, abs=1e-12), name


@QUIET
@given(st.data())
def test_hotpotqa_files_score_as_the_official_script_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("hotpot")
    ids = ["q000", "q001", "q002", "q003"]
    whole = {"answer": {"q000": data.draw(TEXTS), **by_id(data.draw, ids, TEXTS)}}
    whole["sp"] = by_id(data.draw, ids, FACTS)
    found = judged(hotpot(folder), folder, whole)
    records = [hotpot_record(n) for n in range(4)]
    assert_same(found, hotpotqa_file(whole, records))
    assert found.parts == {"sp": 4 - len(whole["sp"])}


@QUIET
@given(st.data())
def test_twowiki_files_score_as_the_official_script_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("twowiki")
    task = made_up("twowiki", folder)
    aliases = {"Q_id": "Q90", "aliases": ["City of Light"], "demonyms": ["Parisian"]}
    (folder / "twowiki/id_aliases.json").write_text(json.dumps(aliases) + "\n")
    ids = ["q0", "q1", "q2", "q3"]
    triples = st.lists(
        st.tuples(*(st.sampled_from([["Ada", "bob"], ["knows"], ["Bob", "Cy"]][n]) for n in range(3))).map(
            list
        ),
        max_size=3,
    )
    whole = {"answer": {"q0": data.draw(TEXTS), **by_id(data.draw, ids, TEXTS)}}
    whole |= {"sp": by_id(data.draw, ids, FACTS), "evidence": by_id(data.draw, ids, triples)}
    found = judged(task, folder, whole)
    records = [LAYOUTS["twowiki"].record(n) for n in range(4)]
    assert_same(found, twowiki_file(whole, records, {"Q90": ("City of Light", "Parisian")}))
    assert list(found.remarks) == ["aliases=on; for 0 of 4 answers none are known"]


def test_twowiki_without_its_alias_file_says_so(tmp_path: Path) -> None:
    found = judged(made_up("twowiki", tmp_path), tmp_path, {"q0": "City of Light"})
    assert column(found, "em")[0] == 0.0
    assert found.remarks[0].startswith("aliases=off")


@QUIET
@given(st.data())
def test_musique_files_score_as_the_official_script_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("musique")
    records = [LAYOUTS["musique"].record(n) for n in range(4)]
    lines = [
        {
            "id": record["id"],
            "predicted_answer": data.draw(TEXTS),
            "predicted_support_idxs": data.draw(st.lists(st.integers(0, 3), max_size=4)),
        }
        for record in records[: data.draw(st.integers(1, 4))]
    ]
    found = judged(made_up("musique", folder), folder, lines)
    names = {"answer_em": "em", "answer_f1": "f1"}
    assert_same(found, musique_file({line["id"]: line for line in lines}, records), names)
