from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.metrics import normalise
from ragtrials.tasks.ambigqa import AmbigQA
from ragtrials.tasks.asqa import ASQA

pytestmark = pytest.mark.data


def test_annotators_may_disagree(data_dir: Path) -> None:
    dev = AmbigQA(data_dir).examples("dev")
    assert Counter(example.meta["type"] for example in dev) == {"multi": 333, "single": 122, "mixed": 45}
    assert Counter(len(example.meta["annotations"]) for example in dev) == {1: 240, 2: 244, 3: 16}


def test_every_annotation_alone_is_a_right_answer(data_dir: Path) -> None:
    task = AmbigQA(data_dir)
    for example in task.examples("dev"):
        for slots in example.meta["annotations"]:
            assert task.score("; ".join(slot[0] for slot in slots), example)["f1"] == 1.0


def test_several_answers_in_one_text_stay_one_text(data_dir: Path) -> None:
    [example] = [e for e in AmbigQA(data_dir).examples("dev") if e.id == "8630912480840635425"]
    assert example.meta["annotations"][0] == [
        ["mediocrity of the Cardinals,a then-21-year-old stadium,game attendance to dwindle"]
    ]
    assert len(example.answers) == 3


def test_the_full_layout_has_the_answer_of_nq_which_is_another_for_a_third(
    data_dir: Path, tmp_path: Path
) -> None:
    source = data_dir / "ambigqa" / "formats" / "dev_full.json.gz"
    put(tmp_path, "ambigqa/dev.json.gz", source.read_bytes())
    full = AmbigQA(tmp_path).examples("dev")
    assert len(full) == 300
    differing = 0
    for example in full:
        golds = {normalise(x) for slots in example.meta["annotations"] for slot in slots for x in slot}
        differing += not golds & {normalise(answer) for answer in example.meta["nq_answer"]}
    assert 60 <= differing <= 140


def test_light_and_full_agree(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "ambigqa" / "formats" / "dev_full.json.gz"
    put(tmp_path, "ambigqa/dev.json.gz", source.read_bytes())
    full = {example.id: example for example in AmbigQA(tmp_path).examples("dev")}
    both = [example for example in AmbigQA(data_dir).examples("dev") if example.id in full]
    assert len(both) > 50
    for example in both:
        assert full[example.id].answers == example.answers
        assert full[example.id].meta["annotations"] == example.meta["annotations"]


def test_questions_of_asqa_are_among_these(data_dir: Path) -> None:
    shared = {e.id for e in AmbigQA(data_dir).examples("dev")} & {
        e.id for e in ASQA(data_dir).examples("dev")
    }
    assert len(shared) == 194
