"""Whole-file scores of multi-hop datasets: answer, supporting facts, evidence, and all of them jointly.

These judge what a prediction file of the dataset's own format holds, against the published records. Values
are fractions of 1, unrounded (2WikiMultihopQA's script prints percents with 2 decimals, MuSiQue's fractions
with 3). Sums are divided by the number of gold records, so what is missing from the predictions is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from ragtrials.metrics.qa import hotpotqa, musique
from ragtrials.metrics.text import without_punctuation

Fact = tuple[str, int]
"""A title and the number of a sentence of that paragraph."""
Triple = tuple[str, str, str]
"""Subject, relation, object."""
Values = dict[str, float]

_PARTS = ("em", "f1", "precision", "recall")


def fact_overlap(predicted: Iterable[Fact], gold: Iterable[Fact]) -> Values:
    """em, f1, precision, recall of supporting facts as HotpotQA counts them.

    Facts are sets: repeated ones count once, titles are compared exactly. Two empty sets have EM 1 and F1 0.
    """
    return _counted(list(set(predicted)), list(set(gold)))


def uncased_fact_overlap(predicted: Iterable[Fact], gold: Iterable[Fact]) -> Values:
    """`fact_overlap` as 2WikiMultihopQA v1.1 counts: lower-case titles, after repeated facts are dropped."""
    return _counted(*([(title.lower(), n) for title, n in set(facts)] for facts in (predicted, gold)))


def paragraph_overlap(predicted: Iterable[int], gold: Iterable[int]) -> Values:
    """em, f1, precision, recall of MuSiQue's supporting paragraphs; two empty sets agree (EM 1, F1 1)."""
    found, wanted = set(predicted), set(gold)
    if not found and not wanted:
        return dict.fromkeys(_PARTS, 1.0)
    return _counted(list(found), list(wanted))


def evidence_overlap(predicted: Iterable[Triple], gold: Sequence[Collection[Triple]]) -> Values:
    """em, f1, precision, recall of 2WikiMultihopQA's evidence triples.

    Args:
        predicted: The predicted triples; equal normal forms count once.
        gold: For each gold triple all its spellings. As in the script, two predicted spellings of one gold
            triple are two matches, so recall may exceed 1.
    """
    found = {_evidence_form(triple) for triple in predicted}
    wanted = [{_evidence_form(triple) for triple in spellings} for spellings in gold]
    matched = sum(any(triple in spellings for spellings in wanted) for triple in found)
    values = _rates(matched / len(found) if found else 0.0, matched / len(wanted) if wanted else 0.0)
    return {"em": float(matched == len(found) == len(wanted)), **values}


def hotpotqa_item(parts: Mapping[str, Any], record: Mapping[str, Any]) -> Values:
    """What `hotpot_evaluate_v1.py` counts for one question.

    Args:
        parts: "answer" (a text) and "sp" (a list of [title, sentence number]); a part that is missing or
            None is wrong, and so is the joint score.
        record: A published record: `answer`, `supporting_facts`.

    Returns:
        em, f1, precision, recall of the answer, and the same with the prefixes `sp_` and `joint_`.
    """
    answer, facts = parts.get("answer"), parts.get("sp")
    gold_facts = _tuples(record["supporting_facts"])
    return _with_joint(
        {
            "": None if answer is None else hotpotqa(answer, record["answer"]),
            "sp_": None if facts is None else fact_overlap(_tuples(facts), gold_facts),
        }
    )


def hotpotqa_file(predictions: Mapping[str, Any], golds: Sequence[Mapping[str, Any]]) -> Values:
    """`hotpot_evaluate_v1.py` over a whole file: the means of `hotpotqa_item`.

    Args:
        predictions: HotpotQA's prediction format: "answer" maps ids to texts, "sp" maps ids to lists of
            [title, sentence number].
        golds: Published records: `_id`, `answer`, `supporting_facts`.
    """
    return _mean([hotpotqa_item(_parts_of(predictions, record["_id"]), record) for record in golds])


def twowiki_item(
    parts: Mapping[str, Any], record: Mapping[str, Any], aliases: Mapping[str, Sequence[str]]
) -> Values:
    """What `2wikimultihop_evaluate_v1.1.py` counts for one question.

    Args:
        parts: As for `hotpotqa_item`, and "evidence": a list of triples.
        record: A published record: as for HotpotQA, and `answer_id`, `evidences`, `evidences_id`.
        aliases: Aliases and demonyms by Wikidata id, of `id_aliases.json`.

    Returns:
        em, f1, precision, recall of the answer, and the same with the prefixes `sp_`, `evi_` and `joint_`.
    """
    answer, facts, evidence = (parts.get(part) for part in ("answer", "sp", "evidence"))
    gold_facts, gold_evidence = _tuples(record["supporting_facts"]), _gold_evidence(record, aliases)
    return _with_joint(
        {
            "": None if answer is None else hotpotqa(answer, twowiki_golds(record, aliases)),
            "sp_": None if facts is None else uncased_fact_overlap(_tuples(facts), gold_facts),
            "evi_": None if evidence is None else evidence_overlap(_tuples(evidence), gold_evidence),
        }
    )


def twowiki_file(
    predictions: Mapping[str, Any], golds: Sequence[Mapping[str, Any]], aliases: Mapping[str, Sequence[str]]
) -> Values:
    """`2wikimultihop_evaluate_v1.1.py` over a whole file: the means of `twowiki_item`.

    Args:
        predictions: As for `hotpotqa_file`, and "evidence" maps ids to lists of triples.
        golds: Published records.
        aliases: Aliases and demonyms by Wikidata id, of `id_aliases.json`.
    """
    return _mean([twowiki_item(_parts_of(predictions, record["_id"]), record, aliases) for record in golds])


def twowiki_golds(record: Mapping[str, Any], aliases: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The gold answers of a 2WikiMultihopQA record: its answer and the aliases of its `answer_id`, if any."""
    return tuple(dict.fromkeys((record["answer"], *aliases.get(record.get("answer_id") or "", ()))))


def musique_item(predicted: Mapping[str, Any] | None, record: Mapping[str, Any]) -> Values:
    """What `evaluate_v1.0.py` counts for one answerable question; without a prediction all is 0.

    Args:
        predicted: `predicted_answer` and `predicted_support_idxs`.
        record: A published record: `answer`, `answer_aliases`, `paragraphs`.

    Returns:
        answer_em, answer_f1, support_em, support_f1.
    """
    if predicted is None:
        return dict.fromkeys(("answer_em", "answer_f1", "support_em", "support_f1"), 0.0)
    gold = [paragraph["idx"] for paragraph in record["paragraphs"] if paragraph["is_supporting"]]
    answer = musique(predicted["predicted_answer"], [record["answer"], *record["answer_aliases"]])
    support = paragraph_overlap(predicted["predicted_support_idxs"], gold)
    return {f"answer_{name}": answer[name] for name in ("em", "f1")} | {
        f"support_{name}": support[name] for name in ("em", "f1")
    }


def musique_file(predictions: Mapping[str, Mapping[str, Any]], golds: Sequence[Mapping[str, Any]]) -> Values:
    """`evaluate_v1.0.py` over the answerable records of a file, joined by id whatever the order.

    Args:
        predictions: By id: `predicted_answer` and `predicted_support_idxs`.
        golds: Published records: `id`, `answer`, `answer_aliases`, `answerable`, `paragraphs`.
    """
    return _mean([musique_item(predictions.get(r["id"]), r) for r in golds if r["answerable"]])


def _parts_of(predictions: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The parts of one question's prediction."""
    return {part: by_id.get(key) for part, by_id in predictions.items()}


def _counted(found: list[Any], wanted: list[Any]) -> Values:
    hits, recalled = sum(x in wanted for x in found), sum(x in found for x in wanted)
    precision = hits / len(found) if found else 0.0
    # The scripts' recall has the hits of the prediction above, and these plus the missed gold ones below.
    missed = len(wanted) - recalled
    recall = hits / (hits + missed) if hits + missed else 0.0
    return {"em": float(hits == len(found) and not missed), **_rates(precision, recall)}


def _rates(precision: float, recall: float) -> Values:
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"f1": f1, "precision": precision, "recall": recall}


def _with_joint(parts: Mapping[str, Values | None]) -> Values:
    """The parts under their prefixes, and their product; a missing part is all 0, and so is the product."""
    item = {
        f"{prefix}{name}": (values or {}).get(name, 0.0)
        for prefix, values in parts.items()
        for name in _PARTS
    }
    em = precision = recall = 1.0
    for prefix in parts:
        em, precision = em * item[f"{prefix}em"], precision * item[f"{prefix}precision"]
        recall *= item[f"{prefix}recall"]
    joint = {"em": em, **_rates(precision, recall)}
    return {**item, **{f"joint_{name}": joint[name] for name in _PARTS}}


def _mean(items: Sequence[Values]) -> Values:
    return {name: sum(item[name] for item in items) / len(items) for name in items[0]} if items else {}


def _tuples(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [tuple(each) for each in lists]


def _gold_evidence(record: Mapping[str, Any], aliases: Mapping[str, Sequence[str]]) -> list[list[Triple]]:
    """For each gold triple its spellings: subject and object under every alias of their ids."""
    ids = record["evidences_id"] or [(None, None, None)] * len(record["evidences"])
    spellings = []
    for (subject, relation, obj), (subject_id, _, obj_id) in zip(record["evidences"], ids, strict=True):
        subjects = (subject, *aliases.get(subject_id or "", ()))
        objects = (obj, *aliases.get(obj_id or "", ()))
        spellings.append([(s, relation, o) for s, o in product(subjects, objects)])
    return spellings


def _evidence_form(triple: Triple) -> tuple[str, ...]:
    """Lower case, no ASCII punctuation, single spaces; articles stay."""
    return tuple(" ".join(without_punctuation(part.lower()).split()) for part in triple)
