"""A task, a method and their surroundings for tests that need no model and no data files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragtrials.program import Generate
from ragtrials.resources import Resources
from ragtrials.suite import Conditions


def hotpot_record(number: int, **changes: Any) -> dict[str, Any]:
    """A made-up record in HotpotQA's format."""
    record = {
        "_id": f"q{number:03d}",
        "question": f"In which town was person {number} born?",
        "answer": f"Town {number}",
        "supporting_facts": [[f"Person {number}", 0], [f"House {number}", 0]],
        "context": [
            [f"Person {number}", [f"Person {number} was born in house {number}.", " He sang."]],
            [f"House {number}", [f"House {number} stands in Town {number}."]],
            [f"Other {number}", [f"Other {number} is a river that nobody {number} asked about."]],
        ],
        "type": "bridge",
        "level": "easy",
    }
    return {**record, **changes}


def hotpot_folder(folder: Path, dev: int = 6, train: int = 20) -> Path:
    """A data folder with a small made-up hotpotqa."""
    target = folder / "hotpotqa"
    target.mkdir(parents=True)
    (target / "dev.json").write_text(json.dumps([hotpot_record(i) for i in range(dev)]))
    (target / "train.json").write_text(json.dumps([hotpot_record(i) for i in range(100, 100 + train)]))
    return folder


def reply_with_a_town(request: Generate) -> str:
    """The last word of the prompt that is a number, as a town: right when the question names it."""
    numbers = [word.strip("?.,") for word in request.messages[-1].text.split() if word.strip("?.,").isdigit()]
    return f"Town {numbers[-1]}" if numbers else "nowhere"


class ScriptedResources(Resources):
    """Resources whose engine is scripted; everything else is real."""

    def __init__(self, data_dir: Path | None, engine: Any) -> None:
        super().__init__(data_dir)
        self.scripted = engine

    def describe_engine(self, conditions: Conditions, tokens: tuple[str, ...] = ()) -> Mapping[str, Any]:
        return dict(self.scripted.signature)

    def engine(
        self,
        conditions: Conditions,
        policies: Mapping[str, Path] | None = None,
        tokens: tuple[str, ...] = (),
    ) -> Any:
        return self.scripted
