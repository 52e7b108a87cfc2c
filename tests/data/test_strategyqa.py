from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.tasks.strategyqa import StrategyQA

pytestmark = pytest.mark.data


def test_answers_are_yes_and_no(data_dir: Path) -> None:
    dev = StrategyQA(data_dir).examples("dev")
    assert Counter(example.answers for example in dev) == {(("no",),): 122, (("yes",),): 107}


def test_the_evidence_is_what_the_qrels_say(data_dir: Path, tmp_path: Path) -> None:
    put(tmp_path, "strategyqa/dev.json", (data_dir / "strategyqa" / "dev.json").read_bytes())
    of_the_records = {e.id: set(e.supporting) for e in StrategyQA(tmp_path).examples("dev")}
    of_the_qrels = {e.id: set(e.supporting) for e in StrategyQA(data_dir).examples("dev")}
    assert of_the_records == of_the_qrels
    assert sum(map(len, of_the_records.values())) == 1004
