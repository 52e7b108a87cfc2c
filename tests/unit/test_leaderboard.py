from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from recording import save

from ragtrials.errors import UserError
from ragtrials.leaderboard import standings
from ragtrials.leaderboard_page import render

GOOD = [1.0] * 12
POOR = [0.0] * 12


def places(results: Path) -> list[list[tuple[int, str]]]:
    tables, _ = standings(results)
    return [[(entry.rank, entry.run.record.method) for entry in table.rows] for table in tables]


def test_it_is_a_pure_function_of_the_records(tmp_path: Path) -> None:
    save(tmp_path / "a", "vanilla_rag", GOOD)
    save(tmp_path / "a", "no_retrieval", POOR, retriever=None)
    (tmp_path / "b").mkdir()
    shutil.copytree(tmp_path / "a" / "s", tmp_path / "b" / "s")  # elsewhere, in another order of creation
    assert render(tmp_path / "a", tmp_path / "x.md") == render(tmp_path / "b", tmp_path / "y.md")


def test_rows_that_differ_significantly_have_ranks_of_their_own(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", POOR)
    save(tmp_path, "no_retrieval", GOOD, retriever=None)
    assert places(tmp_path) == [[(1, "no_retrieval"), (2, "vanilla_rag")]]


def test_rows_that_do_not_differ_share_a_rank(tmp_path: Path) -> None:
    save(tmp_path, "a", [*GOOD[:11], 0.0])
    save(tmp_path, "b", GOOD)
    save(tmp_path, "c", POOR)
    assert places(tmp_path) == [[(1, "b"), (1, "a"), (3, "c")]]


def test_other_conditions_make_another_table(tmp_path: Path) -> None:
    save(tmp_path, "a", GOOD)
    for changes in (
        {"task": "geo_pop"},
        {"split": "dev"},
        {"sample": "all 9"},
        {"examples": "f" * 10},
        {"metrics": ("squad_v2", "containment_v1")},
        {"engine": {"model": "tiny", "digest": "e" * 64}},
        {"retriever": "oracle"},
    ):
        save(tmp_path, "b", GOOD, **changes)  # type: ignore[arg-type]
    assert [len(table) for table in places(tmp_path)] == [1] * 8


def test_a_method_without_retrieval_stands_under_every_retriever(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", GOOD, retriever="bm25")
    save(tmp_path, "vanilla_rag", GOOD, retriever="oracle")
    save(tmp_path, "no_retrieval", POOR, retriever=None)
    assert places(tmp_path) == [[(1, "vanilla_rag"), (2, "no_retrieval")]] * 2


def test_a_method_without_retrieval_alone_has_a_table(tmp_path: Path) -> None:
    save(tmp_path, "no_retrieval", POOR, retriever=None)
    text, _ = render(tmp_path, tmp_path / "leaderboard.md")
    assert "## geo_hop · tiny · no retriever" in text


def test_the_columns_of_the_contract_are_there(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", [1.0, 0.5, 0.5, 0.0])
    text, problems = render(tmp_path, tmp_path / "leaderboard.md")
    assert problems == []
    header = next(line for line in text.splitlines() if line.startswith("| rank"))
    for column in (
        "EM",
        "F1 *",
        "acc",
        "retrievals/q",
        "passages/q",
        "prompt tokens/q",
        "generated tokens/q",
    ):
        assert f" {column} |" in header
    assert "50.0 [40.0, 60.0]" in text
    assert "squad_v1, containment_v1" in text


def test_what_a_paper_reports_stands_beside_and_is_not_ranked(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", GOOD)
    (tmp_path / "reported").mkdir()
    (tmp_path / "reported" / "paper.toml").write_text(
        'citation = "A paper."\nsetting = "8B"\n'
        'rows = [{ method = "vanilla_rag", task = "geo_hop", metric = "f1", value = 0.353 }]\n'
    )
    text, _ = render(tmp_path, tmp_path / "leaderboard.md")
    assert "F1 35.3 [1]" in text
    assert "[1] A paper. Setting: 8B" in text
    assert places(tmp_path) == [[(1, "vanilla_rag")]]


def test_a_wrong_file_of_reported_numbers_is_named(tmp_path: Path) -> None:
    (tmp_path / "reported").mkdir()
    (tmp_path / "reported" / "paper.toml").write_text('citaton = "x"\n')
    with pytest.raises(UserError, match=r"paper\.toml: unknown key 'citaton'; did you mean 'citation'"):
        render(tmp_path, tmp_path / "leaderboard.md")


def test_a_damaged_record_is_named_and_the_others_shown(tmp_path: Path) -> None:
    save(tmp_path, "vanilla_rag", GOOD)
    bad = save(tmp_path, "no_retrieval", POOR, retriever=None)
    (bad / "predictions.parquet").unlink()
    text, problems = render(tmp_path, tmp_path / "leaderboard.md")
    assert "vanilla_rag" in text
    assert "no_retrieval" not in text.split("## geo_hop")[1]
    assert len(problems) == 1
    assert str(bad) in problems[0]
