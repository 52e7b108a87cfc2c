from __future__ import annotations

from pathlib import Path

import pytest
from dataset_files import put

from ragtrials.data import Example
from ragtrials.errors import UserError
from ragtrials.metrics import flags
from ragtrials.tasks.triviaqa import TriviaQA


def read(folder: Path, line: str) -> Example:
    put(folder, "triviaqa/test.tsv", line + "\n")
    [example] = TriviaQA(folder).examples("test")
    return example


@pytest.mark.parametrize(
    ("line", "question", "answers"),
    [
        ("Who won?\t['Ada', 'Ada L.']", "Who won?", ("Ada", "Ada L.")),
        ('Who won?\t"[\'Ada\', ""Ada\'s""]"', "Who won?", ("Ada", "Ada's")),
        ('"""Complete: """"It is, than..."""\t[\'...x\']', '"Complete: ""It is, than..."', ("...x",)),
        ("Who?\t['a\\tb', '\\u00e9', '拳闘']", "Who?", ("a\tb", "é", "拳闘")),
        ("Who?\t'Paris'", "Who?", ("Paris",)),  # P35
        ("Who?\t['', 'x', ' ']", "Who?", ("x",)),  # P47
    ],
)
def test_a_row_is_csv_with_a_python_list(
    line: str, question: str, answers: tuple[str, ...], tmp_path: Path
) -> None:
    example = read(tmp_path, line)
    assert (example.question, example.answers) == (question, (answers,))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("__import__('os').getcwd()", "field 'answers' is no Python list of texts"),
        ("['x'", "field 'answers' is no Python list of texts"),
        ("{[]: 1}", "field 'answers' is no Python list of texts"),
        ("[" * 5000, "field 'answers' is no Python list of texts"),
        ("-" * 50000 + "1", "field 'answers' is no Python list of texts"),
        ("None", "field 'answers' must hold a text or a list of texts"),
        ("('a', 'b')", "field 'answers' must hold a text or a list of texts"),
        ("[1, 2]", "field 'answers' must hold a text or a list of texts"),
        ("[]", "field 'answers' holds no answer"),
        ("['\\ud83c']", "field 'answers' holds a lone surrogate"),
    ],
)
def test_other_cells_are_refused_and_nothing_is_evaluated(cell: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^[^\n]*test\.tsv: line 1: {said}[^\n]*$"):
        read(tmp_path, f"Who?\t{cell}")


@pytest.mark.parametrize("line", ["Who?", "Who?\t['a']\tb", "\"Who?\t['a']"])
def test_a_row_of_another_shape_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^[^\n]*test\.tsv: line 1: [^\n]+$"):
        read(tmp_path, line)


def test_scores_use_triviaqa_s_own_normal_form(tmp_path: Path) -> None:
    example = read(tmp_path, "Who?\t['Jean_Luc']")
    assert TriviaQA(tmp_path).score("jean-luc", example) == {"em": 1.0, "f1": 1.0, "acc": 1.0}


def test_an_alias_that_triviaqa_normalises_to_nothing_is_flagged(tmp_path: Path) -> None:
    example = read(tmp_path, "Which lava?\t['Aa', \"A'a\"]")
    assert TriviaQA(tmp_path).score("", example)["em"] == 1.0  # as the official script counts
    assert flags("x", example.aliases) == ("degenerate_gold",)
