from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.errors import UserError
from ragtrials.metrics import flags
from ragtrials.tasks.nq import NQ

pytestmark = pytest.mark.data


def test_answers_with_non_breaking_spaces_match(data_dir: Path) -> None:
    task = NQ(data_dir)
    with_space = [e for e in task.examples("dev") if any("\xa0" in alias for alias in e.aliases)]
    assert len(with_space) == 11
    for example in with_space:
        for alias in example.aliases:
            assert task.score(alias.replace("\xa0", " "), example)["em"] == 1.0


def test_one_gold_normalises_to_nothing_and_is_flagged(data_dir: Path) -> None:
    dev = NQ(data_dir).examples("dev")
    assert sum("degenerate_gold" in flags("x", example.aliases) for example in dev) == 1


def test_the_layout_of_efficientqa_is_read(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "nq" / "formats" / "NQ-open.efficientqa.dev.1.1.sample.jsonl"
    put(tmp_path, "nq/dev.jsonl", source.read_bytes())
    assert len(NQ(tmp_path).examples("dev")) == 100


@pytest.mark.parametrize("name", ["flashrag_nq_test.jsonl", "litm_nq-open-oracle.sample50.jsonl"])
def test_another_layout_is_refused_in_one_line(name: str, data_dir: Path, tmp_path: Path) -> None:
    put(tmp_path, "nq/dev.jsonl", (data_dir / "nq" / "formats" / name).read_bytes())
    with pytest.raises(UserError, match=r"dev\.jsonl: line 1[^\n]*: field 'answer' is missing$"):
        NQ(tmp_path).examples("dev")
