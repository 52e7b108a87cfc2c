from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest
from recording import save

from ragtrials.errors import UserError
from ragtrials.results import Stored, read_all, read_record


def test_a_record_comes_back(tmp_path: Path) -> None:
    folder = save(tmp_path, "vanilla_rag", [1.0, 0.5, 0.0, 0.5])
    stored, problems = read_all(tmp_path)
    assert problems == []
    assert [run.folder for run in stored] == [folder]
    assert stored[0].record.scores["f1"].mean == 0.5
    assert stored[0].values("f1") == {"q0": 1.0, "q1": 0.5, "q2": 0.0, "q3": 0.5}


def test_the_same_record_has_the_same_bytes(tmp_path: Path) -> None:
    first, second = (save(tmp_path / name, "vanilla_rag", [1.0, 0.0]) for name in ("a", "b"))
    for file in ("run.json", "predictions.parquet"):
        assert (first / file).read_bytes() == (second / file).read_bytes()


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_one_damaged_record_does_not_hide_the_others(tmp_path: Path) -> None:
    good = save(tmp_path, "vanilla_rag", [1.0])
    bad = save(tmp_path, "no_retrieval", [1.0], retriever=None)
    (bad / "run.json").write_text('{"schema": 1, "id":')
    stored, problems = read_all(tmp_path)
    assert [run.folder for run in stored] == [good]
    assert len(problems) == 1
    assert str(bad / "run.json") in problems[0]
    assert "damaged record" in problems[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 99}, "record of schema 99"),
        ({"seed": "0"}, "seed must be a whole number"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"signature": {"method": "other"}}, "is not the digest of its signature"),
        ({"main_metric": "bleu"}, "scores lack the main metric 'bleu'"),
    ],
)
def test_an_edited_record_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = save(tmp_path, "vanilla_rag", [1.0]) / "run.json"
    edit(path, **changes)
    with pytest.raises(UserError, match=message) as error:
        read_record(path)
    assert str(error.value).startswith(str(path))


def test_edited_or_missing_predictions_are_seen(tmp_path: Path) -> None:
    folder = save(tmp_path, "vanilla_rag", [1.0, 0.0])
    stored = Stored(folder, read_record(folder / "run.json"))
    path = folder / "predictions.parquet"
    frame = polars.read_parquet(path)
    frame.with_columns(f1=polars.Series([1.0, 1.0])).write_parquet(path)
    with pytest.raises(UserError, match="one was edited"):
        stored.values("f1")
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot be read"):
        stored.values("f1")
    path.unlink()
    with pytest.raises(UserError, match="cannot be read"):
        stored.values("f1")
