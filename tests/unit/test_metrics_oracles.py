"""Every metric against values obtained by running the official scripts."""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ragtrials.metrics import METRICS, normalise, score

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("RAGTRIALS_DATA" not in os.environ, reason="RAGTRIALS_DATA is not set"),
]

COUNTS = {"ambigqa_v1": 691, "hotpotqa_v1": 964}


def oracles() -> Path:
    return Path(os.environ["RAGTRIALS_DATA"]).parent / "oracles"


@cache
def worked() -> dict[str, Any]:
    values: dict[str, Any] = json.loads((oracles() / "metrics.json").read_text(encoding="utf-8"))
    return values


@cache
def differential() -> dict[str, list[dict[str, Any]]]:
    lines = defaultdict(list)
    with gzip.open(oracles() / "differential.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            lines[record["metric"]].append(record)
    return dict(lines)


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_differential(name: str) -> None:
    records = differential()[name]
    assert len(records) == COUNTS[name]
    for record in records:
        expected = {value: record[value] for value in METRICS[name].values if value in record}
        assert expected
        got = score(name, record["prediction"], record["gold"])
        for value, number in expected.items():
            assert got[value] == pytest.approx(number, abs=1e-6), record


def test_hotpotqa_pairs() -> None:
    assert len(worked()["pairs"]) == 41
    for pair in worked()["pairs"]:
        got = score("hotpotqa_v1", pair["pred"], [pair["gold"]])
        assert (got["em"], got["f1"]) == (pair["hotpot_em"], pytest.approx(pair["hotpot_f1"], abs=5e-5)), pair


def test_ambigqa_slots() -> None:
    assert len(worked()["ambigqa_get_f1"]) == 10
    for case in worked()["ambigqa_get_f1"]:
        got = score("ambigqa_v1", case["pred"], [case["gold_slots"]])
        assert got["f1"] == pytest.approx(case["f1"], abs=5e-7), case


def test_normal_forms() -> None:
    for case in worked()["hotpot_norm"]:
        assert normalise(case["text"]) == case["squad_hotpot"]
