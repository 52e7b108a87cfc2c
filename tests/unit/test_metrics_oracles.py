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
from ragtrials.metrics.text import nq_open_form, triviaqa_form

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("RAGTRIALS_DATA" not in os.environ, reason="RAGTRIALS_DATA is not set"),
]

COUNTS = {
    "ambigqa_v1": 691,
    "hotpotqa_v1": 964,
    "musique_v1": 720,
    "nq_open": 703,
    "popqa_2023": 701,
    "triviaqa_v1": 494,
}

COLUMNS = {
    "hotpot_em": ("hotpotqa_v1", "em"),
    "hotpot_f1": ("hotpotqa_v1", "f1"),
    "squadlike_f1": ("musique_v1", "f1"),
    "tqa_em": ("triviaqa_v1", "em"),
    "tqa_f1": ("triviaqa_v1", "f1"),
    "nq_em": ("nq_open", "em"),
    "popqa": ("popqa_2023", "acc"),
    "subem": ("compat_flashrag", "acc"),
}


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


def test_every_differential_line_is_of_a_known_metric() -> None:
    assert {name: len(records) for name, records in differential().items()} == COUNTS


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_differential(name: str) -> None:
    records = differential()[name]
    for record in records:
        expected = {k: v for k, v in record.items() if k not in ("metric", "prediction", "gold", "single")}
        assert set(expected) == set(METRICS[name].values)
        got = score(name, record["prediction"], record["gold"])
        for value, number in expected.items():
            assert got[value] == pytest.approx(number, abs=1e-6), record


@pytest.mark.parametrize("column", sorted(COLUMNS))
def test_pairs(column: str) -> None:
    name, value = COLUMNS[column]
    assert len(worked()["pairs"]) == 41
    for pair in worked()["pairs"]:
        assert set(pair) == {"pred", "gold", *COLUMNS}
        got = score(name, pair["pred"], [pair["gold"]])[value]
        assert got == pytest.approx(pair[column], abs=5e-5), pair


def test_containment_differs_from_a_plain_substring_only_for_empty_golds() -> None:
    for pair in worked()["pairs"]:
        expected = pair["subem"] if normalise(pair["gold"]) else 0
        assert score("containment_v1", pair["pred"], [pair["gold"]])["acc"] == expected, pair


def test_ambigqa_slots() -> None:
    assert len(worked()["ambigqa_get_f1"]) == 10
    for case in worked()["ambigqa_get_f1"]:
        got = score("ambigqa_v1", case["pred"], [case["gold_slots"]])
        assert got["f1"] == pytest.approx(case["f1"], abs=5e-7), case


def test_normal_forms() -> None:
    assert len(worked()["hotpot_norm"]) == 16
    for case in worked()["hotpot_norm"]:
        assert normalise(case["text"]) == case["squad_hotpot"]
        assert triviaqa_form(case["text"]) == case["triviaqa"]
        assert nq_open_form(case["text"]) == case["nq_open_nfd"]
