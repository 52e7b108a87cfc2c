from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.tasks.asqa import ASQA

pytestmark = pytest.mark.data


def test_the_published_layout_gives_the_same_examples(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "asqa" / "formats" / "published_layout.json"
    put(tmp_path, "asqa/dev.json", source.read_bytes())
    published = ASQA(tmp_path).examples("dev")
    assert len(published) == 20
    by_id = {example.id: example for example in ASQA(data_dir).examples("dev")}
    assert [by_id[example.id] for example in published] == published


def test_a_long_answer_covers_most_short_ones(data_dir: Path) -> None:
    task = ASQA(data_dir)
    scores = [task.score(e.meta["long_answers"][0], e)["str_em"] for e in task.examples("dev")]
    assert 0.7 < sum(scores) / len(scores) < 1.0
