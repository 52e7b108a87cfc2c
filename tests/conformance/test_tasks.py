"""The same checks on every registered task, and proof that the checks can fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import hotpot_folder, hotpot_record

from ragtrials.conformance import check_task
from ragtrials.data import Example
from ragtrials.registry import TASKS
from ragtrials.tasks.hotpotqa import HotpotQA

EMBEDDED = [name for name in TASKS.names() if TASKS.load(name)(Path("nowhere")).available_offline()]
FROM_FILES = [name for name in TASKS.names() if name not in EMBEDDED and not TASKS.load(name).reads_file]


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_task_conforms(name: str) -> None:
    assert check_task(TASKS.load(name)(None)) == []


@pytest.mark.data
@pytest.mark.parametrize("name", FROM_FILES)
def test_a_task_conforms_on_its_real_files(name: str, data_dir: Path) -> None:
    assert check_task(TASKS.load(name)(data_dir)) == []


def test_a_made_up_task_conforms(tmp_path: Path) -> None:
    assert check_task(HotpotQA(hotpot_folder(tmp_path))) == []


class Faulty(HotpotQA):
    """Changes the first example of the reported split."""

    change: dict[str, object] = {}  # noqa: RUF012

    def examples(self, split: str) -> Sequence[Example]:
        found = list(super().examples(split))
        if split == "dev":
            found[0] = replace(found[0], **self.change)  # type: ignore[arg-type]
        return found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"supporting": ("gone",)}, "gold passage gone is not in the corpus"),
        ({"question": " "}, "the question is empty"),
        ({"answers": ((),)}, "an answer is missing"),
        ({"id": "q001"}, "an id is repeated"),
        ({"id": "q100"}, "is in the reported split"),
        ({"question": hotpot_record(101)["question"].upper()}, "is in the reported split"),
    ],
)
def test_a_fault_is_found(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    task = Faulty(hotpot_folder(tmp_path))
    task.change = change
    assert [found for found in check_task(task) if problem in found]


def test_a_leak_in_the_files_stays_out_of_training(tmp_path: Path) -> None:
    folder = hotpot_folder(tmp_path)
    dev = [hotpot_record(100), hotpot_record(1)]
    (folder / "hotpotqa" / "dev.json").write_text(json.dumps(dev))
    assert check_task(HotpotQA(folder)) == []
    assert set(HotpotQA(folder).left_out("train")) == {"q100"}
