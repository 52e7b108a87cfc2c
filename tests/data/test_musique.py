from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.errors import UserError
from ragtrials.tasks.musique import MuSiQue

pytestmark = pytest.mark.data


def test_titles_repeat_with_other_texts(data_dir: Path) -> None:
    passages = list(MuSiQue(data_dir).corpus())
    assert len({passage.title for passage in passages}) == 4793
    assert len({(passage.title, passage.text) for passage in passages}) == len(passages) == 5530


def test_the_paragraphs_of_the_file_are_a_pool_of_their_own(data_dir: Path, tmp_path: Path) -> None:
    put(tmp_path, "musique/dev.jsonl.gz", (data_dir / "musique" / "dev.jsonl.gz").read_bytes())
    task = MuSiQue(tmp_path)
    pool = {passage.id: passage for passage in task.corpus()}
    assert task.corpus().name == "musique-dev-pool"
    for example in task.examples("dev"):
        assert set(example.supporting) <= set(pool)
        assert len(example.supporting) == len(example.meta["support"])


def test_hops_are_in_the_ids(data_dir: Path) -> None:
    dev = MuSiQue(data_dir).examples("dev")
    kinds = Counter(example.meta["type"][0] for example in dev)
    assert set(kinds) == {"2", "3", "4"}
    assert all(len(e.meta["question_decomposition"]) == int(e.meta["type"][0]) for e in dev)


def test_unanswerable_questions_of_the_full_layout_are_left_out(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "musique" / "formats" / "full_with_unanswerable.jsonl"
    put(tmp_path, "musique/dev.jsonl", source.read_bytes())
    task = MuSiQue(tmp_path)
    assert len(task.examples("dev")) == 11
    assert len(task.left_out("dev")) == 9


def test_the_full_layout_without_its_flag_is_refused(data_dir: Path, tmp_path: Path) -> None:
    records = json.loads((data_dir / "musique" / "formats" / "full_without_flag.json").read_text())
    put(tmp_path, "musique/dev.jsonl", "\n".join(map(json.dumps, records)))
    with pytest.raises(UserError, match="field 'answerable' must be true or false"):
        MuSiQue(tmp_path).examples("dev")
