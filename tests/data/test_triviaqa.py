from __future__ import annotations

import json
from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.errors import UserError
from ragtrials.metrics import flags
from ragtrials.tasks.triviaqa import TriviaQA

pytestmark = pytest.mark.data


def test_doubled_quotes_stay(data_dir: Path) -> None:
    task = TriviaQA(data_dir)
    trained = [*task.examples("train"), *task.examples("validation")]
    assert sum('""' in example.question for example in trained) == 69
    assert sum('""' in example.question for example in task.examples("test")) == 28
    assert ('"Macbeth in ""Macbeth"""',) in [example.answers[0] for example in trained]


def test_questions_and_answers_are_those_that_flashrag_circulates(data_dir: Path) -> None:
    other = data_dir / "triviaqa" / "formats" / "flashrag_triviaqa_sample.jsonl"
    theirs = {r["question"]: r["golden_answers"] for r in map(json.loads, other.read_text().splitlines())}
    ours = {e.question: e for e in TriviaQA(data_dir).examples("test")}
    both = [question for question in theirs if question in ours]
    assert len(both) > 100
    assert all(set(ours[q].aliases) == {a for a in theirs[q] if a.strip()} for q in both)


def test_golds_that_normalise_to_nothing_are_kept_and_flagged(data_dir: Path) -> None:
    degenerate = [e for e in TriviaQA(data_dir).examples("test") if flags("x", e.aliases)]
    assert len(degenerate) == 1
    assert "A'a" in degenerate[0].aliases


def test_the_official_json_is_refused_in_one_line(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "triviaqa" / "formats" / "official_triviaqa_sample.json"
    put(tmp_path, "triviaqa/test.tsv", source.read_bytes())
    with pytest.raises(UserError, match=r"^[^\n]*test\.tsv: line 1: 1 columns instead of 2$"):
        TriviaQA(tmp_path).examples("test")
