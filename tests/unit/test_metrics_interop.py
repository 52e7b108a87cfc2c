from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ragtrials.errors import UserError
from ragtrials.metrics import METRICS, as_evaluate, score

TEXTS = ["The Beatles", "yes, it was", None, "Paris"]
ALIASES = [["Beatles"], ["yes"], ["x"], ["Lutetia", "Paris", "The"]]
NESTED: dict[str, tuple[list[Any], list[Any]]] = {
    "ambigqa_v1": ([["1624"], ["x", "y"]], [[[["1624"], ["1664"]], [["Seattle"]]], [[["y"]]]]),
    "asqa_str_em": (["founded 1624", "x"], [[["1624"], ["1664"]], [["x", "The"]]]),
    "asqa_str_em_guarded": (["founded 1624", "x"], [[["1624"], ["1664"]], [["y", "The"]]]),
    "strategyqa_acc": (["Yes.", "no"], [True, True]),
    "fever_acc": (["true", "no"], ["SUPPORTS", "NOT ENOUGH INFO"]),
    "dpr_answer_recall": ([["the US"], ["bus", "x"]], [["us"], ["us"]]),
}


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    evaluate = pytest.importorskip("evaluate")
    monkeypatch.setattr(evaluate.config, "HF_METRICS_CACHE", tmp_path)
    monkeypatch.setattr("socket.socket.connect", None)  # no network: any attempt fails
    return evaluate


@pytest.mark.parametrize("name", sorted(METRICS))
def test_the_module_gives_our_means(evaluate: Any, name: str) -> None:
    predictions, references = NESTED.get(name, (TEXTS, ALIASES))
    module = as_evaluate(name)
    assert isinstance(module, evaluate.Metric)
    assert module.name == name
    got = module.compute(predictions=predictions, references=references)
    each = [score(name, p, r) for p, r in zip(predictions, references, strict=True)]
    assert got == {v: pytest.approx(sum(s[v] for s in each) / len(each)) for v in METRICS[name].values}
    assert any(got.values())


def test_one_string_is_one_alias(evaluate: Any) -> None:
    got = as_evaluate("hotpotqa_v1").compute(predictions=["P", "Paris"], references=["Paris", "Paris"])
    assert got["em"] == 0.5


def test_truth_values_may_be_words(evaluate: Any) -> None:
    assert as_evaluate("strategyqa_acc").compute(predictions=["Yes.", "x"], references=["true", "no"]) == {
        "acc": 0.5
    }


def test_batches_add_up(evaluate: Any) -> None:
    module = as_evaluate("nq_open")
    module.add(prediction="x", reference=["x"])
    module.add_batch(predictions=["y", "z"], references=[["x"], ["x"]])
    assert module.compute() == {"em": pytest.approx(1 / 3)}


def test_modules_combine(evaluate: Any) -> None:
    both = evaluate.combine(
        [as_evaluate("hotpotqa_v1"), as_evaluate("nq_open"), as_evaluate("containment_v1")]
    )
    got = both.compute(predictions=["in Paris"], references=[["Paris"]])
    assert (got["hotpotqa_v1_em"], got["nq_open_em"], got["acc"]) == (0.0, 0.0, 1.0)
    assert got["f1"] == pytest.approx(2 / 3)


def test_unknown_names_and_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="did you mean 'nq_open'"):
        as_evaluate("nq_opn")
    monkeypatch.setitem(sys.modules, "evaluate", None)
    with pytest.raises(UserError, match="pip install evaluate"):
        as_evaluate("nq_open")
