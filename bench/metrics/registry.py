"""The metrics by name, and the one entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ragtrials.config import suggestion
from ragtrials.errors import UserError
from ragtrials.metrics import compat, ddr, labels, qa, retrieval, sets
from ragtrials.metrics.inputs import aliases_of, answer_list


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with a version in its name; what it computes never changes under that name.

    Attributes:
        name: How tasks and records refer to it.
        values: The names of its values, the main one first.
        compute: `compute(prediction, gold)` returns those values, fractions of 1.
        source: What it reproduces.
        prediction_depth: How deep lists are nested in a prediction; 0 is a text.
        gold_depth: The same of a gold; 1 is a list of aliases.
    """

    name: str
    values: tuple[str, ...]
    compute: Callable[[Any, Any], dict[str, float]]
    source: str
    prediction_depth: int = 0
    gold_depth: int = 1


def _dpr_answer_recall(prediction: Any, gold: Any) -> dict[str, float]:
    return {"answer_recall": retrieval.dpr_answer_recall(answer_list(prediction), aliases_of(gold))}


_TOKENS = ("f1", "em", "precision", "recall")

_ALL = (
    Metric("hotpotqa_v1", _TOKENS, qa.hotpotqa, "hotpot_evaluate_v1.py, answer"),
    Metric(
        "twowiki_v1_1", _TOKENS, qa.hotpotqa, "2wikimultihop_evaluate_v1.1.py, answer; golds with aliases"
    ),
    Metric("musique_v1", ("f1", "em"), qa.musique, "MuSiQue evaluate_v1.0.py, answer"),
    Metric("squad_v1", ("f1", "em"), qa.squad, "SQuAD evaluate-v1.1.py"),
    Metric("triviaqa_v1", ("em", "f1"), qa.triviaqa, "triviaqa_evaluation.py v1.0"),
    Metric("nq_open", ("em",), qa.nq_open, "NQ-open, google-research/language orqa"),
    Metric("curatedtrec", ("em",), qa.curatedtrec, "NQ-open's script in its regex mode"),
    Metric("popqa_2023", ("acc",), qa.popqa, "PopQA, adaptive-retrieval run_model.py"),
    Metric("containment_v1", ("acc",), qa.containment, "normalised containment, degenerate golds guarded"),
    Metric("ambigqa_v1", ("f1",), sets.ambigqa, "ambigqa_evaluate_script.py, F1 of answers", 1, 3),
    Metric("asqa_str_em", ("str_em", "str_em_hit"), sets.asqa_str_em, "ASQA and ALCE, STR-EM", 0, 2),
    Metric(
        "asqa_str_em_guarded",
        ("str_em", "str_em_hit"),
        sets.asqa_str_em_guarded,
        "STR-EM, degenerate golds guarded",
        0,
        2,
    ),
    Metric("strategyqa_acc", ("acc",), labels.strategyqa, "first yes, no, true or false; else wrong", 0, 0),
    Metric("fever_acc", ("acc",), labels.fever, "label accuracy, evidence not judged", 0, 0),
    Metric("dpr_answer_recall", ("answer_recall",), _dpr_answer_recall, "DPR has_answer, token match", 1, 1),
    Metric("ragddr_rouge_l_v1", ("rouge_l",), ddr.rouge_l, "RAG-DDR's ROUGE-L, PyPI package rouge 1.0.1"),
    Metric("compat_mmoa", ("f1", "em", "acc"), compat.mmoa, "MMOA-RAG's evaluation"),
    Metric("compat_mmoa_reward", ("f1", "em", "acc"), compat.mmoa_reward, "MMOA-RAG's training reward"),
    Metric("compat_flashrag", (*_TOKENS, "acc"), compat.flashrag, "FlashRAG's evaluator"),
    Metric("compat_search_r1", ("em",), compat.search_r1, "Search-R1's em_check"),
    Metric("compat_self_rag", ("match", "acc", "f1"), compat.self_rag, "Self-RAG's metrics.py"),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in alphabetical order."""
    return tuple(sorted(METRICS))


def get_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        UserError: There is none; the message suggests the nearest.
    """
    if name in METRICS:
        return METRICS[name]
    raise UserError(f"unknown metric {name!r}{suggestion(name, METRICS)}")


def score(name: str, prediction: Any, gold: Any) -> dict[str, float]:
    """The values of metric `name` for one prediction, fractions of 1.

    Args:
        name: See `metric_names()`.
        prediction: The predicted text, None if there is none. For `ambigqa_v1` a list of answers, for
            `dpr_answer_recall` the texts of the retrieved passages.
        gold: The list of aliases; one string is one alias. For `ambigqa_v1` a list of annotations, each a
            list of slots, each a list of aliases; for `asqa_str_em` a list of slots; for `strategyqa_acc` a
            truth value; for `fever_acc` a label.

    Raises:
        UserError: The metric is unknown, or prediction or gold have the wrong shape.
    """
    return get_metric(name).compute(prediction, gold)
