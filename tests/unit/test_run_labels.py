"""Runs of one method are told apart by what they were asked with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recording import save

from ragtrials.errors import UserError
from ragtrials.results import RunRecord, read_record
from ragtrials.run_labels import labels, settings, unique_labels

RUN = "ragtrials run --method smart_rag --task geo_pop --limit 300 --chunk 50"


@pytest.fixture
def base(tmp_path: Path) -> RunRecord:
    return read_record(save(tmp_path, "smart_rag", [1.0, 0.0]) / "run.json")


def family(base: RunRecord, *commands: str) -> list[RunRecord]:
    return [replace(base, id=f"run{i}", command=command) for i, command in enumerate(commands)]


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([RUN, f"{RUN} -o threshold=0.3"], ["smart_rag", "smart_rag (threshold=0.3)"]),
        # What all have in common tells nothing apart; what only some have does.
        (
            [f"{RUN} -o k=2 -o gate=always", f"{RUN} -o k=2 -o gate=never", f"{RUN} -o k=2"],
            ["smart_rag (gate=always)", "smart_rag (gate=never)", "smart_rag"],
        ),
        (
            [RUN, f"{RUN} -o ppo.steps=0 -o alpha=0.5"],
            ["smart_rag", "smart_rag (ppo.steps=0, alpha=0.5)"],
        ),
        ([RUN, f"{RUN} --profile paper"], ["smart_rag", "smart_rag (profile=paper)"]),
        (
            [RUN, "ragtrials eval smart_rag geo_pop --checkpoint smart_rag-s0-ab --limit 300 --chunk 50"],
            ["smart_rag", "smart_rag (checkpoint=smart_rag-s0-ab)"],
        ),
        (
            [f"{RUN} --batch-size 4", f"{RUN} --batch-size 8"],
            ["smart_rag (batch-size=4)", "smart_rag (batch-size=8)"],
        ),
        # The last of two values is the one that the run had.
        ([f"{RUN} -o k=2 -o k=3", f"{RUN} -o k=2"], ["smart_rag (k=3)", "smart_rag (k=2)"]),
        # Spaces around the equals sign make no other setting.
        ([f"{RUN} -o k=2 -o alpha=1", f"{RUN} -o 'k = 2'"], ["smart_rag (alpha=1)", "smart_rag"]),
        # Quoted values come as they were given, on one line; an equals sign may stand in them.
        ([RUN, f"{RUN} -o 'prompt=a = b\n c'"], ["smart_rag", "smart_rag (prompt=a = b c)"]),
        # A table fixes these, or has a column for them.
        (
            [f"{RUN} --seed 1", f"{RUN} --model big --retriever oracle --split dev"],
            ["smart_rag", "smart_rag"],
        ),
        ([RUN], ["smart_rag"]),
        ([], []),
    ],
)
def test_labels_name_what_differs(base: RunRecord, commands: list[str], expected: list[str]) -> None:
    assert labels(family(base, *commands)) == expected


def test_other_methods_tell_nothing_apart(base: RunRecord) -> None:
    sft, other = family(base, f"{RUN} -o k=2", f"{RUN} -o k=3")
    assert labels([replace(sft, method="sft"), other]) == ["sft", "smart_rag"]


def test_an_untrained_run_stands_out_beside_trained_ones_alone(base: RunRecord) -> None:
    first, second = family(base, RUN, f"{RUN} -o k=2")
    assert labels([replace(first, training={"examples": 1}), second]) == [
        "smart_rag",
        "smart_rag (untrained, k=2)",
    ]
    assert labels([first, second]) == ["smart_rag", "smart_rag (k=2)"]


def test_where_the_label_stands_alone_the_seed_comes_in_and_then_the_run(base: RunRecord) -> None:
    def named(**changes: Any) -> RunRecord:
        return replace(base, **{"command": RUN, **changes})

    seeds = [named(seed=0, id="a"), named(seed=1, id="b"), named(seed=1, command=f"{RUN} -o k=2", id="c")]
    assert unique_labels(seeds) == ["smart_rag, seed 0", "smart_rag, seed 1", "smart_rag (k=2)"]
    twins = [named(seed=0, id="a"), named(seed=1, id="b"), named(seed=1, id="c")]
    assert unique_labels(twins) == ["smart_rag, seed 0", "smart_rag, seed 1, b", "smart_rag, seed 1, c"]
    assert labels(seeds) == ["smart_rag", "smart_rag", "smart_rag (k=2)"]


def test_a_command_that_cannot_be_read_is_named(base: RunRecord) -> None:
    with pytest.raises(UserError, match=r"run abc: its command is no command line \(No closing quotation\)"):
        settings(replace(base, id="abc", command="ragtrials run -o 'k=3"))
