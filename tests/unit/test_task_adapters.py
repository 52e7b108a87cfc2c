"""What every dataset adapter must do with its published files, on made-up records."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dataset_files import LAYOUTS, PASSAGES, POOLED, made_up_folder, put, write_corpus, write_split

from ragtrials.conformance import check_task
from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.records import Record
from ragtrials.registry import TASKS
from ragtrials.task import Task
from ragtrials.tasks import _published
from ragtrials.tasks._answers import named_by_question
from ragtrials.tasks._splits import carve

every_task = pytest.mark.parametrize("name", sorted(LAYOUTS))
TRAINED = [name for name in sorted(LAYOUTS) if LAYOUTS[name].trains]
ON_THE_HUB = [name for name in sorted(LAYOUTS) if LAYOUTS[name].hub_row]
WITH_IDS = [name for name in sorted(LAYOUTS) if LAYOUTS[name].key]


def load(name: str, folder: Path | None) -> Task:
    return TASKS.load(name)(folder)


def reported(name: str, folder: Path) -> list[Example]:
    return list(load(name, folder).examples(LAYOUTS[name].reported))


def read_one(name: str, folder: Path, **changes: Any) -> Example:
    record = {**LAYOUTS[name].record(0), **changes}
    write_split(folder, name, LAYOUTS[name].reported, [record])
    [example] = reported(name, folder)
    return example


@every_task
def test_made_up_files_conform(name: str, tmp_path: Path) -> None:
    assert check_task(load(name, made_up_folder(tmp_path, name))) == []


@every_task
def test_the_card_says_all(name: str) -> None:
    card = TASKS.load(name).card
    assert card.citation.endswith(".")
    assert card.reported_split == LAYOUTS[name].reported
    assert set(card.splits) == ({"train", "validation"} if LAYOUTS[name].trains else set()) | {
        card.reported_split
    }
    assert card.sizes[card.reported_split] > 100
    assert "never trained on" in card.splits[card.reported_split]  # P48


@every_task
def test_an_unknown_split_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"task {name} has no split 'nowhere': use one of [^\n]+$"):
        load(name, made_up_folder(tmp_path, name)).examples("nowhere")


@every_task
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    split, suffix = LAYOUTS[name].reported, LAYOUTS[name].suffix
    put(tmp_path, f"{name}/train.{suffix}", "")  # so that the hub is not asked
    task = load(name, tmp_path)
    with pytest.raises(
        UserError, match=rf"no {name}/{split}\.{suffix} or [^\n]*--data-dir or RAGTRIALS_DATA$"
    ):
        task.examples(split)


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - {*POOLED, "fever"}))
def test_a_missing_corpus_is_named(name: str, tmp_path: Path) -> None:
    owner = "ambigqa" if name == "asqa" else name
    with pytest.raises(UserError, match=rf"no {owner}/corpus\.jsonl or [^\n]*put the file there"):
        load(name, tmp_path).corpus()


@every_task
def test_only_local_files_are_available_offline(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGTRIALS_DATA", raising=False)
    assert not load(name, None).available_offline()
    write_corpus(tmp_path, name)
    assert not load(name, tmp_path).available_offline()
    assert load(name, made_up_folder(tmp_path, name)).available_offline()


@every_task
def test_gzip_byte_order_mark_and_crlf_change_nothing(name: str, tmp_path: Path) -> None:
    plain = reported(name, made_up_folder(tmp_path / "plain", name))
    layout = LAYOUTS[name]
    text = layout.write([layout.record(n) for n in range(4)]).replace("\n", "\r\n").encode("utf-8-sig")
    put(tmp_path / "other", f"{name}/{layout.reported}.{layout.suffix}.gz", gzip.compress(text))
    assert reported(name, tmp_path / "other") == plain


@every_task
@pytest.mark.parametrize("part", [0.1, 0.5, 0.95])
def test_a_truncated_file_is_named(name: str, part: float, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    content = gzip.compress(layout.write([layout.record(n) for n in range(50)]).encode())
    put(tmp_path, f"{name}/{layout.reported}.{layout.suffix}.gz", content[: int(len(content) * part)])
    with pytest.raises(UserError, match=r"^[^\n]*truncated gzip file: fetch it again$"):
        reported(name, tmp_path)


@pytest.mark.parametrize("name", WITH_IDS)
def test_a_repeated_id_is_refused(name: str, tmp_path: Path) -> None:  # P37
    records = [LAYOUTS[name].record(n) for n in (0, 1, 0)]
    write_split(tmp_path, name, LAYOUTS[name].reported, records)
    with pytest.raises(UserError, match=r"^[^\n]*repeats the [^\n]*$"):
        reported(name, tmp_path)


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - set(WITH_IDS)))
def test_without_ids_a_question_gives_one_whatever_its_place(name: str, tmp_path: Path) -> None:  # P36
    records = [LAYOUTS[name].record(n) for n in range(4)]
    for folder, found in (("a", records), ("b", records[::-1])):
        write_split(tmp_path / folder, name, LAYOUTS[name].reported, found)
    first, second = (
        {example.id: example.question for example in reported(name, tmp_path / folder)} for folder in "ab"
    )
    assert first == second
    assert len(first) == 4


def test_a_repeated_question_keeps_all_its_records() -> None:  # P37
    records = [Record({"question": text}, Path("x"), n) for n, text in enumerate("abaa")]
    keys = [key for key, _ in named_by_question(records, "question")]
    a, b = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in "ab")
    assert keys == [a, b, f"{a}-2", f"{a}-3"]


@pytest.mark.parametrize("name", TRAINED)
def test_an_evaluated_question_leaves_train_and_is_told(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    made_up_folder(tmp_path, name)
    records = [layout.record(n) for n in range(100, 119)]
    shouted = layout.record(200)
    shouted[layout.question] = layout.record(2)[layout.question].upper()
    write_split(tmp_path, name, "train", [layout.record(1), *records, shouted])
    task = load(name, tmp_path)
    assert [problem for problem in check_task(task) if "reported split" in problem] == []
    assert len(task.left_out("train")) == 2
    assert set(task.left_out("train").values()) == {f"its question is evaluated in {layout.reported}"}
    assert len(task.examples("train")) + len(task.examples("validation")) == 19


@pytest.mark.parametrize("name", sorted(set(TRAINED) & set(WITH_IDS)))
def test_an_evaluated_id_leaves_train_whatever_it_asks(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    made_up_folder(tmp_path, name)
    asked = {layout.question: "Is this another question?"}
    write_split(tmp_path, name, "train", [{**layout.record(1), **asked}, layout.record(100)])
    task = load(name, tmp_path)
    assert [example.question for example in task.examples("train")] == [layout.record(100)[layout.question]]
    assert len(task.left_out("train")) == 1


@pytest.mark.parametrize("name", TRAINED)
def test_validation_is_carved_from_train(name: str, tmp_path: Path) -> None:  # P48
    task = load(name, made_up_folder(tmp_path, name, train=40))
    train, validation = ({example.id for example in task.examples(s)} for s in ("train", "validation"))
    smallest = sorted(train | validation, key=lambda key: hashlib.sha256(key.encode()).digest())[:4]
    assert validation == set(smallest)
    assert len(train) == 36


@pytest.mark.parametrize(("size", "held_out"), [(9, 0), (40, 4), (6000, 500)])
def test_the_size_of_the_validation_part(size: int, held_out: int) -> None:
    examples = [Example(str(n), "Q?", (("A",),)) for n in range(size)]
    train, validation = carve(examples, "train"), carve(examples, "validation")
    assert len(validation) == held_out
    assert sorted(train + validation, key=lambda e: int(e.id)) == examples


@every_task
@pytest.mark.parametrize(
    "question",
    [
        "  Two  spaces? ",
        "two\nlines?",
        'a\tb {x} %s {0} "quoted" </search>',
        "😀 é \u2028 Jean\u2011Luc?",
        "no mark",
        "??",
        '"q"',
    ],
)
def test_a_question_comes_as_published(name: str, question: str, tmp_path: Path) -> None:  # P42, P43
    assert read_one(name, tmp_path, **{LAYOUTS[name].question: question}).question == question


@every_task
@pytest.mark.parametrize("question", ["", "   ", "\u2003"])
def test_an_empty_question_is_refused(name: str, question: str, tmp_path: Path) -> None:  # P42, P45
    with pytest.raises(UserError, match=rf"^[^\n]*field '{LAYOUTS[name].question}' is empty$"):
        read_one(name, tmp_path, **{LAYOUTS[name].question: question})


@pytest.mark.parametrize("name", ON_THE_HUB)
def test_the_hub_gives_the_examples_of_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout, asked = LAYOUTS[name], []

    def read_hub(*arguments: Any) -> Iterator[Record]:
        asked.append(arguments)
        for number in range(4):
            yield Record(layout.hub_row(layout.record(number)), Path("hub"), number + 1)  # type: ignore[misc]

    monkeypatch.setattr(_published, "read_hub", read_hub)
    local, remote = reported(name, made_up_folder(tmp_path, name)), reported(name, tmp_path / "elsewhere")
    beyond_the_hub = {"evidences", "evidences_id", "answer_id", "published_id"}
    known = [{k: v for k, v in example.meta.items() if k not in beyond_the_hub} for example in local]
    assert remote == [replace(example, meta=meta) for example, meta in zip(local, known, strict=True)]
    [(dataset, config, _, revision, rows, instead)] = asked
    card = TASKS.load(name).card
    assert dataset in card.revision
    assert config
    assert revision in card.revision
    assert len(revision) == 40
    assert rows == card.sizes[layout.reported]
    assert instead.startswith(f"put {name}/{layout.reported}.{layout.suffix}[.gz] into a folder")


def test_local_files_and_the_hub_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_published, "read_hub", lambda *_: pytest.fail("the hub was asked"))
    write_split(tmp_path, "nq", "train", [LAYOUTS["nq"].record(0)])
    with pytest.raises(UserError, match=r"no nq/dev\.jsonl"):
        load("nq", tmp_path).examples("dev")


def test_a_corpus_file_is_streamed(tmp_path: Path) -> None:
    task = load("nq", made_up_folder(tmp_path, "nq"))
    corpus = task.corpus()
    assert corpus.name == "nq-local-pool"
    assert [(p.id, p.title, p.text) for p in corpus] == [(p["id"], p["title"], p["text"]) for p in PASSAGES]
    put(
        tmp_path,
        "nq/corpus.jsonl",
        '{"id": 7, "title": null, "text": "x"}\n{"id": "8", "text": "y"}\n{"id": "9"}',
    )
    passages = iter(task.corpus())
    assert [(next(passages).id, next(passages).title)] == [("7", "")]
    with pytest.raises(UserError, match=r"corpus\.jsonl: line 3 \(id '9'\): field 'text' is missing"):
        next(passages)


def test_a_title_that_is_no_text_is_named(tmp_path: Path) -> None:
    put(tmp_path, "nq/corpus.jsonl", '{"id": "7", "title": ["x"], "text": "x"}')
    with pytest.raises(UserError, match=r"line 1 \(id '7'\): field 'title' must be text, not list"):
        list(load("nq", tmp_path).corpus())


def test_asqa_and_ambigqa_share_a_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path, "ambigqa")
    one, other = (load(name, tmp_path).corpus() for name in ("asqa", "ambigqa"))
    assert (one.name, one.digest) == (other.name, other.digest)


@pytest.mark.parametrize("name", ["twowiki", "musique", "ambigqa", "popqa", "strategyqa"])
def test_gold_passages_come_from_the_qrels(name: str, tmp_path: Path) -> None:
    made_up_folder(tmp_path, name)
    write_corpus(tmp_path, name)
    key = str(LAYOUTS[name].record(1)[str(LAYOUTS[name].key)])
    put(tmp_path, f"{name}/qrels.tsv", f"qid\tdocid\n{key}\tp2\n{key}\tp0\n{key}\tp2\n")
    found = {example.id: example.supporting for example in reported(name, tmp_path)}
    assert {k: v for k, v in found.items() if v} == {key: ("p2", "p0")}


def test_importing_all_tasks_imports_nothing_heavy() -> None:
    modules = ", ".join(f"ragtrials.tasks.{name}" for name in LAYOUTS)
    heavy = "{'torch', 'transformers', 'datasets', 'polars'}"
    program = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert run.stdout == "[]\n"
