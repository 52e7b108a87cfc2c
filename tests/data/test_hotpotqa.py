from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragtrials.data import Example, passage_id
from ragtrials.errors import UserError
from ragtrials.metrics import normalise
from ragtrials.tasks.hotpotqa import HotpotQA

needs_data = pytest.mark.skipif("RAGTRIALS_DATA" not in os.environ, reason="RAGTRIALS_DATA is not set")


def record(key: str, **changes: Any) -> dict[str, Any]:
    return {
        "_id": key,
        "question": f"Which {key}?",
        "answer": "Paris",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Ada", 0], ["Bob", 1]],
        "context": [["Ada", ["Ada is.", " She was."]], ["Cy", ["Cy is."]], ["Bob", [f"Bob knows {key}."]]],
        **changes,
    }


def task(tmp_path: Path, **splits: list[dict[str, Any]]) -> HotpotQA:
    (tmp_path / "hotpotqa").mkdir()
    for split, records in splits.items():
        (tmp_path / "hotpotqa" / f"{split}.json").write_text(json.dumps(records))
    return HotpotQA(tmp_path)


def test_an_example_has_all_that_the_record_says(tmp_path: Path) -> None:
    [example] = task(tmp_path, dev=[record("x")]).examples("dev")
    assert example == Example(
        id="x",
        question="Which x?",
        answers=(("Paris",),),
        supporting=(passage_id("Ada", "Ada is. She was."), passage_id("Bob", "Bob knows x.")),
        meta={"type": "bridge", "level": "hard", "supporting_facts": [["Ada", 0], ["Bob", 1]]},
    )


def test_the_corpus_pools_each_paragraph_once(tmp_path: Path) -> None:
    corpus = task(tmp_path, dev=[record("x"), record("y")]).corpus()
    assert corpus.name == "hotpotqa-dev-pool"
    assert [(p.title, p.text) for p in corpus] == [
        ("Ada", "Ada is. She was."),
        ("Cy", "Cy is."),
        ("Bob", "Bob knows x."),
        ("Bob", "Bob knows y."),
    ]
    assert [p.id for p in corpus] == [passage_id(p.title, p.text) for p in corpus]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_id": None}, r"record 2: field '_id' is missing"),
        ({"_id": "a"}, r"record 2 \(id 'a'\): repeats the _id of record 1"),
        ({"question": None}, r"record 2 \(id 'b'\): field 'question' is missing"),
        ({"question": "  "}, r"field 'question' is empty"),
        ({"answer": ""}, r"field 'answer' is empty"),
        ({"answer": ["Paris"]}, r"field 'answer' must be text, not list"),
        ({"type": 3}, r"field 'type' must be text"),
        ({"context": None}, r"field 'context' is missing"),
        ({"context": {"title": []}}, r"field 'context' has the wrong type"),
        ({"context": [["Ada", "text"]]}, r"field 'context' must hold pairs of a title and list"),
        ({"context": [["Ada", ["x", 3]]]}, r"field 'context' holds a sentence that is not text"),
        ({"supporting_facts": [["Ada"]]}, r"field 'supporting_facts' must hold pairs of a title and int"),
        ({"supporting_facts": [[3, 0]]}, r"field 'supporting_facts' must hold pairs"),
    ],
)
def test_a_bad_record_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    hotpotqa = task(tmp_path, dev=[record("a"), record("b", **changes)])
    with pytest.raises(UserError, match=rf"^[^\n]*dev\.json: [^\n]*{said}[^\n]*$"):
        hotpotqa.examples("dev")


def test_unknown_split_and_missing_file(tmp_path: Path) -> None:
    hotpotqa = task(tmp_path, dev=[record("a")])
    with pytest.raises(UserError, match="no split 'test': use one of train, validation, dev"):
        hotpotqa.examples("test")
    with pytest.raises(UserError, match=r"no hotpotqa/train\.json or hotpotqa/train\.json\.gz in "):
        hotpotqa.examples("train")


def hub_row(original: dict[str, Any]) -> dict[str, Any]:
    row = {"id": original["_id"], **{f: original[f] for f in ("question", "answer", "type", "level")}}
    facts, context = original["supporting_facts"], original["context"]
    row["supporting_facts"] = {"title": [f[0] for f in facts], "sent_id": [f[1] for f in facts]}
    row["context"] = {"title": [c[0] for c in context], "sentences": [c[1] for c in context]}
    return row


@pytest.fixture
def datasets() -> Any:
    return pytest.importorskip("datasets")


def test_the_hub_gives_the_same_examples_as_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, datasets: Any
) -> None:
    records = [record(str(n), context=[["Ada", ["A.", f" B{n}."]]]) for n in range(7405)]
    local, remote = task(tmp_path, dev=records), HotpotQA(tmp_path / "elsewhere")
    table = datasets.Dataset.from_list([hub_row(r) for r in records])
    asked = []

    def load_dataset(*args: str, **options: str) -> Any:
        asked.append((args, options))
        return table

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    assert (local.available_offline(), remote.available_offline()) == (True, False)
    assert remote.examples("dev") == local.examples("dev")
    assert remote.corpus().digest == local.corpus().digest
    revision = "1908d6afbbead072334abe2965f91bd2709910ab"
    expected = (("hotpotqa/hotpot_qa", "distractor"), {"split": "validation", "revision": revision})
    assert asked == [expected, expected]


def test_a_hub_split_of_another_size_is_refused(monkeypatch: pytest.MonkeyPatch, datasets: Any) -> None:
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    table = datasets.Dataset.from_list([hub_row(record("a"))])
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **options: table)
    with pytest.raises(UserError, match=r"1 rows instead of 90447: .* put hotpotqa/train\.json"):
        HotpotQA().examples("validation")


def test_without_datasets_the_place_for_a_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        UserError, match=r"pip install 'ragtrials\[hub\]'`; or put hotpotqa/dev\.json\[\.gz\]"
    ):
        HotpotQA().examples("dev")


def test_without_a_network_the_place_for_a_file_is_said(tmp_path: Path, datasets: Any) -> None:
    program = (
        "from ragtrials.errors import UserError\n"
        "from ragtrials.tasks.hotpotqa import HotpotQA\n"
        "try:\n    list(HotpotQA().corpus())\n"
        "except UserError as error:\n    print(error)\n"
    )
    environment = {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.count("\n") == 1
    assert "cannot be fetched from the hub" in run.stdout
    assert "put hotpotqa/dev.json[.gz] into a folder named by --data-dir or RAGTRIALS_DATA" in run.stdout


@pytest.fixture(scope="module")
def published() -> HotpotQA:
    return HotpotQA(Path(os.environ["RAGTRIALS_DATA"]))


@pytest.mark.data
@needs_data
def test_the_real_files_are_read_whole(published: HotpotQA) -> None:
    sizes = {split: len(published.examples(split)) for split in published.card.splits}
    assert sizes == {"train": 736, "validation": 81, "dev": 500}
    dev = published.examples("dev")
    assert sum(e.answers[0][0] not in ("yes", "no") for e in dev) == 474
    assert {e.meta["type"] for e in dev} == {"bridge", "comparison"}


def letters(text: str) -> str:
    """Without quotes and white space, which the sample's own corpus file changed."""
    return re.sub(r'["\s]', "", text)


@pytest.mark.data
@needs_data
def test_the_real_pool_holds_every_gold_paragraph(published: HotpotQA) -> None:
    pool = {passage.id: passage for passage in published.corpus()}
    assert len(pool) == len({(p.title, p.text) for p in pool.values()})
    for example in published.examples("dev"):
        titles = {title for title, _ in example.meta["supporting_facts"]}
        assert {pool[key].title for key in example.supporting} == titles
    with gzip.open(Path(os.environ["RAGTRIALS_DATA"]) / "hotpotqa" / "corpus.jsonl.gz", "rt") as file:
        known = {(p["title"], letters(p["text"])) for p in map(json.loads, file)}
    assert {(p.title, letters(p.text)) for p in pool.values()} <= known


@pytest.mark.data
@needs_data
def test_known_anomalies_are_tolerated(published: HotpotQA) -> None:
    by_id = {example.id: example for example in published.examples("dev")}
    assert by_id["5a84b9c95542997b5ce3ff35"].answers == (("r grandfather <a hr",),)
    short = by_id["5a87954f5542996e4f308856"]
    assert len(short.supporting) == 2
    assert any(e.question != e.question.strip() or "  " in e.question for e in by_id.values())


@pytest.mark.data
@needs_data
def test_contexts_without_gold_paragraphs_are_tolerated(tmp_path: Path) -> None:
    source = Path(os.environ["RAGTRIALS_DATA"]) / "hotpotqa" / "formats" / "dev_fullwiki.json"
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "hotpotqa" / "dev.json.gz").write_bytes(gzip.compress(source.read_bytes()))
    examples = HotpotQA(tmp_path).examples("dev")
    assert len(examples) == 100
    assert any(not e.supporting for e in examples)


@pytest.mark.data
@needs_data
def test_no_reported_question_is_trained_on(published: HotpotQA) -> None:
    reported = published.examples(published.card.reported_split)
    trained = [*published.examples("train"), *published.examples("validation")]
    assert len(trained) == 817
    assert not {e.id for e in reported} & {e.id for e in trained}
    assert not {normalise(e.question) for e in reported} & {normalise(e.question) for e in trained}
    picked = {e.id for e in published.examples("validation")}
    assert not picked & {e.id for e in published.examples("train")}


def test_an_evaluated_question_leaves_the_training_part(tmp_path: Path) -> None:
    train = [record(f"t{n}") for n in range(20)]
    same_question = record("other", question="WHICH d1")
    found = task(tmp_path, dev=[record("d0"), record("d1")], train=[*train, same_question, record("d0")])
    trained = {e.id for split in ("train", "validation") for e in found.examples(split)}
    assert trained == {f"t{n}" for n in range(20)}
    assert set(found.left_out("train")) == {"other", "d0"}
