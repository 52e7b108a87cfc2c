"""`ragtrials breakdown`, on the committed records of geo_pop and on those of a run made here."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from fakes import hotpot_folder, hotpot_record

from ragtrials.cli import main

RESULTS = Path(__file__).parents[2] / "results"
RUNS = sorted(RESULTS.glob("laptop/geo_pop/sft-*")) + sorted(RESULTS.glob("laptop/geo_pop/vanilla_rag-*"))


def breakdown(*words: object) -> Result:
    return CliRunner().invoke(main, ["breakdown", *map(str, words)])


def test_deciles_of_a_number_and_its_correlation(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "figure.svg"
    result = breakdown(*RUNS, "--by", "popularity", "--output", figure)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "geo_pop (test, 300 of 990 questions) by popularity"
    start = next(n for n, line in enumerate(lines) if line.startswith("popularity "))
    sizes = [int(line.split()[3]) for line in lines[start + 1 : start + 11]]
    assert sum(sizes) == 300
    assert max(sizes) - min(sizes) <= 2
    assert lines[start + 11].split()[:2] == ["rank", "correlation"]
    text = "".join(ElementTree.fromstring(figure.read_bytes()).itertext())
    assert "vanilla_rag" in text
    assert "retrieval_calls" in text


def test_values_of_a_word_and_columns_by_choice() -> None:
    result = breakdown(RUNS[0], "--by", "relation", "--column", "em", "--column", "prompt_tokens")
    assert result.exit_code == 0, result.output
    header = next(line for line in result.output.splitlines() if line.startswith("relation "))
    assert header.split() == ["relation", "n", "em", "prompt_tokens"]
    assert "rank correlation" not in result.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere", "--by", "popularity"), "is no record's folder, and no id below"),
        ((*RUNS, "--by", "fame"), "no question has a field 'fame'"),
        ((*RUNS, "--by", "popularity", "--output", "figure.png"), "ends in .svg"),
    ],
)
def test_what_is_wrong_gets_one_line(words: tuple[object, ...], told: str) -> None:
    result = breakdown(*words)
    assert result.exit_code == 2
    assert told in result.output
    assert len(result.output.splitlines()) == 1


def test_records_of_a_run_and_the_data_they_need(
    tmp_path: Path, fresh_cache: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dev = hotpot_folder(tmp_path / "data") / "hotpotqa" / "dev.json"
    questions = [hotpot_record(n, level="hard" if n % 3 else "easy") for n in range(6)]
    dev.write_text(json.dumps(questions))
    words = ["-m", "vanilla_rag", "-m", "no_retrieval", "-t", "hotpotqa", "--data-dir", "data"]
    made = CliRunner().invoke(main, ["run", *words, "--profile", "smoke", "--model", str(model)])
    assert made.exit_code == 0, made.output
    runs = [
        next(tmp_path.glob(f"results/adhoc/hotpotqa/{name}-*")) for name in ("no_retrieval", "vanilla_rag")
    ]

    result = breakdown(*runs, "--by", "level", "--data-dir", "data", "--column", "retrieval_calls")
    assert result.exit_code == 0, result.output
    title, _, *table = result.stdout.splitlines()
    assert title == "hotpotqa (dev, all 6 questions) by level"
    assert [line.split() for line in table] == [
        ["level", "n", "no_retrieval", "retrieval_calls", "vanilla_rag", "retrieval_calls"],
        ["easy", "2", "0.00", "1.00"],
        ["hard", "4", "0.00", "1.00"],
    ]
    by_id = breakdown(runs[0].name[-10:-4], "--by", "type", "--data-dir", "data")
    assert by_id.stdout.splitlines()[3].split()[:3] == ["bridge", "6", "0.00"]

    dev.write_text(json.dumps([{**question, "level": "medium"} for question in questions]))
    changed = breakdown(*runs, "--by", "level", "--data-dir", "data")
    assert (changed.exit_code, changed.stdout) == (2, "")
    assert "has other data here than run" in changed.stderr
