"""RAG-DDR's rewards of an answer on its own ten training sets: which part counts, and by which metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from ragtrials.errors import UserError
from ragtrials.metrics import score

Family = Literal["llama", "minicpm"]
"""The generator's family; the official rewards of two sets differ between them."""


def _whole(text: str) -> str:
    return text


def _option(text: str) -> str:
    return text[:3]


def _before_reasoning(text: str) -> str:
    return text.partition("COT")[0]


_COMMON: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(("math_qa", "commonsense_qa"), _option),
    **dict.fromkeys(("gsm8k", "strategyqa"), _before_reasoning),
    **dict.fromkeys(("web_questions", "wiki_qa", "yahoo_answers_qa", "marcoqa"), _whole),
}
_PARTS: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "llama": {**_COMMON, "aqua_rat": _option, "ecqa": _whole},
    "minicpm": {**_COMMON, "aqua_rat": _before_reasoning, "ecqa": _before_reasoning},
}
_LONG_ANSWERS = frozenset({"wiki_qa", "yahoo_answers_qa", "marcoqa"})


def scored_part(text: str, data_type: str, family: Family) -> str:
    """The part of an answer that is rewarded (official code, spec §2.2).

    The first three characters where an option such as "(C)" is asked for: "The answer is (C)" is wrong (§7,
    quirk 9). What stands before the first "COT" where reasoning follows the answer. Else the whole text.

    Raises:
        UserError: The data type or the family is unknown.
    """
    if family not in _PARTS:
        raise UserError(f"unknown generator family {family!r}; RAG-DDR's rewards know {', '.join(_PARTS)}")
    parts = _PARTS[family]
    if data_type not in parts:
        raise UserError(f"unknown data type {data_type!r}; RAG-DDR's rewards know {', '.join(sorted(parts))}")
    return parts[data_type](text)


def reward(text: str, golds: Sequence[str], data_type: str, family: Family) -> float:
    """The reward of an answer on a set of RAG-DDR's training mix, the best gold counts (spec §2.2).

    It is a registered metric of `scored_part`: ROUGE-L where answers are long, else PopQA's accuracy.

    Raises:
        UserError: The data type or the family is unknown, or a gold is blank: every answer would contain it
            (§7, quirk 8).
    """
    if not golds or not all(gold.strip() for gold in golds):
        raise UserError(
            f"{data_type}: a gold answer is missing or blank, every answer would be right; drop it"
        )
    part = scored_part(text, data_type, family)
    if data_type in _LONG_ANSWERS:
        return score("ragddr_rouge_l_v1", part, golds)["rouge_l"]
    return score("popqa_2023", part, golds)["acc"]


_DATA_TYPES = {"webquestions": "web_questions"}
"""Tasks here that are called otherwise in RAG-DDR's training mix."""


def reward_on(task: str, text: str, golds: Sequence[str]) -> float:
    """The official Llama reward of an answer to a question of a task here.

    Raises:
        UserError: The task is not in RAG-DDR's training mix.
    """
    return reward(text, golds, _DATA_TYPES.get(task, task), "llama")
