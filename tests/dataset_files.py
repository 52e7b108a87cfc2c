"""Made-up records of every dataset in its published layout, and a folder to read them from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Fields = dict[str, Any]


def _tsv(rows: Sequence[Sequence[Any]]) -> str:
    def cell(value: Any) -> str:
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if set(text) & set('"\t\n\r') else text

    return "".join("\t".join(map(cell, row)) + "\n" for row in rows)


def _jsonl(records: Sequence[Fields]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _popqa(records: Sequence[Fields]) -> str:
    return _tsv([list(records[0]), *(list(record.values()) for record in records)])


def _triviaqa(records: Sequence[Fields]) -> str:
    return _tsv([[record["question"], record["answers"]] for record in records])


def _bamboogle(records: Sequence[Fields]) -> str:
    header = ["Question", "", "", "", "Answer", "Answer 2", "canary: none"]
    rows = [[r["question"], "", "", "", r["answer"], r["answer 2"], ""] for r in records]
    return _tsv([header, *rows])


def _squad(records: Sequence[Fields]) -> str:
    articles: list[Fields] = []
    for record in records:
        article = {field: record[field] for field in ("title",) if field in record}
        paragraph = {field: record[field] for field in ("context",) if field in record}
        question = {field: record[field] for field in record if field not in ("title", "context")}
        articles.append({**article, "paragraphs": [{**paragraph, "qas": [question]}]})
    return json.dumps({"version": "v2.0", "data": articles})


def _multihop(n: int) -> Fields:
    context = [["Ada", ["Ada is.", "She was."]], ["Cy", ["Cy is."]], ["Bob", [f"Bob knows {n}."]]]
    return {
        "_id": f"q{n}",
        "question": f"Who knows number {n}?",
        "answer": "Paris",
        "type": "compositional",
        "supporting_facts": [["Ada", 0], ["Bob", 0]],
        "context": context,
        "evidences": [["Ada", "knows", "Bob"]],
        "evidences_id": [["Q1", "knows", "Q2"]],
        "answer_id": "Q90",
    }


def _hotpotqa(n: int) -> Fields:
    known = ("_id", "question", "answer", "supporting_facts", "context")
    record = _multihop(n)
    return {**{field: record[field] for field in known}, "type": "bridge", "level": "hard"}


def _musique(n: int) -> Fields:
    texts = [("Ada", "Ada is.", True), ("Ada", "Ada the other.", False), ("Bob", f"Bob knows {n}.", True)]
    return {
        "id": f"2hop__{n}_1",
        "question": f"Who knows number {n}?",
        "answer": "Paris",
        "answer_aliases": ["City of Light"],
        "answerable": True,
        "paragraphs": [
            {"idx": i, "title": title, "paragraph_text": text, "is_supporting": gold}
            for i, (title, text, gold) in enumerate(texts)
        ],
        "question_decomposition": [{"id": 1, "question": "Who?", "answer": "Ada"}],
    }


def _ambigqa(n: int) -> Fields:
    pairs = [
        {"question": "Who in 1999?", "answer": ["Ada", "Ada L."]},
        {"question": "Who in 2000?", "answer": ["Bob"]},
    ]
    return {
        "id": f"-{n}1",
        "question": f"Who won race {n}?",
        "annotations": [
            {"type": "singleAnswer", "answer": ["Cy"]},
            {"type": "multipleQAs", "qaPairs": pairs},
        ],
    }


def _popqa_record(n: int) -> Fields:
    return {
        "id": n,
        "subj": f"Person {n}",
        "prop": "occupation",
        "obj": "politician",
        "s_pop": 58 + n,
        "question": f"What is person {n}'s occupation?",
        "possible_answers": json.dumps(["politician", "pol", "🇫🇷"]),
    }


def _strategyqa(n: int) -> Fields:
    return {
        "qid": f"s{n}",
        "term": "Ada",
        "description": "a person",
        "question": f"Did Ada win race {n}?",
        "answer": n % 2 == 0,
        "facts": ["Ada won."],
        "decomposition": ["Who won?"],
        "evidence": [[[["p1"]], [["p2"], "operation"]], [[["p1"]], ["no_evidence", "operation"]]],
    }


def _asqa(n: int) -> Fields:
    return {
        "id": f"-{n}",
        "ambiguous_question": f"Who won race {n}?",
        "qa_pairs": [
            {"question": "Who in 1999?", "short_answers": ["Ada", "Ada L."]},
            {"question": "Who in 2000?", "short_answers": ["Bob"]},
        ],
        "annotations": [{"knowledge": [], "long_answer": "Ada won in 1999 and Bob in 2000."}],
    }


def _squad_record(n: int) -> Fields:
    return {
        "id": f"s{n}",
        "title": "Ada",
        "context": f"Ada won race {n}.",
        "question": f"Who won race {n}?",
        "answers": [{"text": "Ada", "answer_start": 0}, {"text": "Ada", "answer_start": 0}],
        "is_impossible": False,
    }


def _fever(n: int) -> Fields:
    return {
        "id": n,
        "verifiable": "VERIFIABLE",
        "label": "SUPPORTS",
        "claim": f"Ada won race {n}.",
        "evidence": [[[1, 2, "Ada", 0]], [[3, None, None, None]]],
    }


@dataclass(frozen=True)
class Layout:
    """How a dataset's records look and are written.

    Attributes:
        reported: The split that is evaluated.
        suffix: What its files' names end with.
        record: A made-up record by its number.
        write: The text of a file of records.
        key: The field of the id; None if there is none.
        trains: Whether there is a training file.
        question: The field of the question.
        hub_row: Turns a record into a row of the hub; None if the hub is not read.
    """

    reported: str
    suffix: str
    record: Callable[[int], Fields]
    write: Callable[[Sequence[Fields]], str]
    key: str | None
    trains: bool = True
    question: str = "question"
    hub_row: Callable[[Fields], Fields] | None = None


def _multihop_row(record: Fields) -> Fields:
    facts, context = record["supporting_facts"], record["context"]
    return {
        **{field: record[field] for field in ("question", "answer", "type", "level") if field in record},
        "id": record["_id"],
        "supporting_facts": {"title": [f[0] for f in facts], "sent_id": [f[1] for f in facts]},
        "context": {"title": [c[0] for c in context], "sentences": [c[1] for c in context]},
    }


def _ambigqa_row(record: Fields) -> Fields:
    annotations = record["annotations"]
    pairs = [annotation.get("qaPairs", []) for annotation in annotations]
    return {
        **record,
        "annotations": {
            "type": [annotation["type"] for annotation in annotations],
            "answer": [annotation.get("answer", []) for annotation in annotations],
            "qaPairs": [
                {"question": [p["question"] for p in found], "answer": [p["answer"] for p in found]}
                for found in pairs
            ],
        },
    }


LAYOUTS: Mapping[str, Layout] = {
    "hotpotqa": Layout("dev", "json", _hotpotqa, json.dumps, "_id", hub_row=_multihop_row),
    "twowiki": Layout("dev", "json", _multihop, json.dumps, "_id", hub_row=_multihop_row),
    "musique": Layout("dev", "jsonl", _musique, _jsonl, "id", hub_row=dict),
    "ambigqa": Layout("dev", "json", _ambigqa, json.dumps, "id", hub_row=_ambigqa_row),
    "popqa": Layout("test", "tsv", _popqa_record, _popqa, "id", hub_row=dict),
    "nq": Layout(
        "dev",
        "jsonl",
        lambda n: {"question": f"who won race {n}", "answer": ["Ada", "Ada L."]},
        _jsonl,
        None,
        hub_row=dict,
    ),
    "triviaqa": Layout(
        "test",
        "tsv",
        lambda n: {"question": f"Who won race {n}?", "answers": repr(["Ada", "Ada's", 'Ada "A"'])},
        _triviaqa,
        None,
    ),
    "webquestions": Layout(
        "test",
        "jsonl",
        lambda n: {"id": str(n % 100), "question": f"who won race {n}?", "answer": ["Ada", "Bob"]},
        _jsonl,
        None,
        hub_row=lambda record: {
            "url": "x",
            "question": record["question"],
            "answers": record["answer"],
        },
    ),
    "bamboogle": Layout(
        "test",
        "tsv",
        lambda n: {"question": f"Who won race {n}?", "answer": "Ada", "answer 2": ""},
        _bamboogle,
        None,
        trains=False,
    ),
    "strategyqa": Layout("dev", "json", _strategyqa, json.dumps, "qid"),
    "asqa": Layout("dev", "json", _asqa, json.dumps, "id", trains=False, question="ambiguous_question"),
    "squad": Layout("dev", "json", _squad_record, _squad, "id", trains=False),
    "fever": Layout("dev", "jsonl", _fever, _jsonl, "id", question="claim"),
}
"""By task; all that read published files."""
POOLED = ("hotpotqa", "musique", "squad", "twowiki")
"""The tasks whose corpus is made of their own records, if there is no corpus file."""

PASSAGES = [{"id": f"p{n}", "title": "Ada", "text": f"Ada won race {n}."} for n in range(3)]


def put(folder: Path, name: str, content: str | bytes) -> Path:
    """Write one file below `folder`, exactly these letters or bytes."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_split(folder: Path, task: str, split: str, records: Sequence[Fields]) -> Path:
    """Write the records of a split in the published layout of a task."""
    layout = LAYOUTS[task]
    return put(folder, f"{task}/{split}.{layout.suffix}", layout.write(records))


def write_corpus(folder: Path, task: str) -> None:
    """Write `PASSAGES` as the corpus file of a task."""
    put(folder, f"{task}/corpus.jsonl", _jsonl(PASSAGES))


def made_up_folder(folder: Path, task: str, reported: int = 4, train: int = 20) -> Path:
    """A data folder with made-up files of a task; training records are numbered from 100."""
    layout = LAYOUTS[task]
    write_split(folder, task, layout.reported, [layout.record(n) for n in range(reported)])
    if layout.trains:
        write_split(folder, task, "train", [layout.record(n) for n in range(100, 100 + train)])
    if task not in (*POOLED, "fever"):
        write_corpus(folder, "ambigqa" if task == "asqa" else task)
    return folder
