from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ragtrials.tasks.fever import Fever

pytestmark = pytest.mark.data


def test_labels_and_evidence(data_dir: Path) -> None:
    dev = Fever(data_dir).examples("dev")
    labels = Counter(example.target for example in dev)
    assert labels == {"REFUTES": 182, "SUPPORTS": 164, "NOT ENOUGH INFO": 154}
    assert all(bool(e.meta["evidence"]) == (e.target != "NOT ENOUGH INFO") for e in dev)


def test_claims_repeat_and_those_of_dev_leave_train(data_dir: Path) -> None:
    task = Fever(data_dir)
    assert len({example.question for example in task.examples("dev")}) < 500
    assert len(task.left_out("train")) == 6
    assert set(task.left_out("train").values()) == {"its question is evaluated in dev"}
