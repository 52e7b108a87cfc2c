"""What names a run: the ids of earlier runs stay what they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from recording import spec

from ragtrials.config import parse
from ragtrials.methods.vanilla_rag import VanillaRagConfig
from ragtrials.spec import RunSpec, named_settings

RECORDS = sorted((Path(__file__).parents[2] / "results").glob("*/*/*/run.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_committed_records_are_named_as_when_they_were_written(path: Path) -> None:
    record = json.loads(path.read_text())
    read = parse(RunSpec, record["signature"], path.name)
    assert (read.id, read.signature) == (record["id"], record["signature"])


def test_there_are_committed_records() -> None:
    assert RECORDS


def test_a_run_without_training_has_the_id_that_it_had_before_training_was_named() -> None:
    assert spec("vanilla_rag", version="0.1.0").id == "3bd104fe60"
    assert spec("no_retrieval", retriever=None, version="0.1.0").id == "482ff92ff8"


def test_what_training_saw_is_part_of_the_name() -> None:
    plain = spec("sft")
    one, other = replace(plain, train_id="a" * 10), replace(plain, train_id="b" * 10)
    assert len({plain.id, one.id, other.id}) == 3
    assert "train_id" not in plain.signature
    assert one.signature == {**plain.signature, "train_id": "a" * 10}


def test_no_retriever_is_named() -> None:
    assert spec("no_retrieval", retriever=None).signature["retriever"] is None


@dataclass(frozen=True)
class Group:
    kept: float = 0.5
    new: int | None = None


@dataclass(frozen=True)
class Config:
    k: int = 5
    empty: str = ""
    none: tuple[int, ...] | None = None
    group: Group = field(default_factory=Group)


def test_settings_that_are_none_are_not_named() -> None:
    assert named_settings(Config()) == {"k": 5, "empty": "", "group": {"kept": 0.5}}
    named = named_settings(Config(none=(), group=Group(new=0)))
    assert named == {"k": 5, "empty": "", "none": [], "group": {"kept": 0.5, "new": 0}}


def test_a_setting_of_vanilla_rag_that_came_later_is_named_when_it_is_set() -> None:
    assert named_settings(VanillaRagConfig()) == {"k": 5, "shots": 4, "max_new_tokens": 32}
    assert named_settings(VanillaRagConfig(passage_words=60))["passage_words"] == 60
