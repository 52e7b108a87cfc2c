from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.tasks.twowiki import TwoWiki

pytestmark = pytest.mark.data


def test_ids_of_answers_may_be_missing(data_dir: Path) -> None:
    dev = TwoWiki(data_dir).examples("dev")
    assert sum("answer_id" not in example.meta for example in dev) == 67
    assert sum(not example.meta["evidences_id"] for example in dev) == 189
    assert {example.meta["type"] for example in dev} == {
        "compositional",
        "bridge_comparison",
        "comparison",
        "inference",
    }


def test_the_partial_alias_file_is_used(data_dir: Path) -> None:
    task = TwoWiki(data_dir)
    dev = task.examples("dev")
    assert all(example.meta["aliases"] for example in dev)
    with_aliases = [example for example in dev if len(example.aliases) > 1]
    assert len(with_aliases) == 45
    for example in with_aliases:
        assert task.score(example.aliases[-1], example)["em"] == 1.0


def own_folder(data_dir: Path, folder: Path, split: str) -> TwoWiki:
    """The published file alone, without corpus and aliases."""
    put(folder, f"twowiki/{split}.json.gz", (data_dir / "twowiki" / f"{split}.json.gz").read_bytes())
    return TwoWiki(folder)


def test_contexts_that_repeat_a_paragraph_are_pooled_once(data_dir: Path, tmp_path: Path) -> None:
    task = own_folder(data_dir, tmp_path, "dev")
    with gzip.open(data_dir / "twowiki" / "dev.json.gz", "rt", encoding="utf-8") as file:
        records = json.load(file)
    contexts = [[json.dumps(paragraph) for paragraph in record["context"]] for record in records]
    assert sum(len(set(context)) < len(context) for context in contexts) == 19
    pool = {(passage.title, passage.text) for passage in task.corpus()}
    assert len(pool) == len({paragraph for context in contexts for paragraph in context})
    assert task.corpus().name == "twowiki-dev-pool"
    for example in task.examples("dev"):
        assert len(example.supporting) == len({title for title, _ in example.meta["supporting_facts"]})
        assert example.meta["aliases"] is False


def test_the_corpus_file_is_the_pool_up_to_quotes_and_spaces(data_dir: Path, tmp_path: Path) -> None:
    own = {(p.title, p.text) for p in own_folder(data_dir, tmp_path, "dev").corpus()}
    given = {(p.title, p.text) for p in TwoWiki(data_dir).corpus()}
    assert len(own - given) <= 5


def test_facts_past_the_last_sentence_are_kept(data_dir: Path) -> None:
    with gzip.open(data_dir / "twowiki" / "train.json.gz", "rt", encoding="utf-8") as file:
        lengths = {r["_id"]: {title: len(found) for title, found in r["context"]} for r in json.load(file)}
    task = TwoWiki(data_dir)
    examples = [*task.examples("train"), *task.examples("validation")]
    past = [e for e in examples if any(n >= lengths[e.id][t] for t, n in e.meta["supporting_facts"])]
    assert len(past) == 6
