from __future__ import annotations

from pathlib import Path

import pytest

from ragtrials.errors import UserError
from ragtrials.suite import Conditions, expand, load_suite, suite_names

GOOD = """
name = "mine"
description = "two runs"

[conditions]
limit = 3

[[runs]]
methods = ["vanilla_rag"]
tasks = ["geo_hop", "geo_pop"]
options = { k = 2, names = ["a", "b"], on = true }
conditions = { limit = 7 }
"""


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_suite_expands_in_its_order(tmp_path: Path) -> None:
    requests = expand(load_suite(write(tmp_path, GOOD)), {"seed": 4}, ("k=9",))
    assert [(r.method, r.task) for r in requests] == [("vanilla_rag", "geo_hop"), ("vanilla_rag", "geo_pop")]
    assert requests[0].conditions == Conditions(limit=7, seed=4)
    assert requests[0].options == (
        "k=2",
        "names=a,b",
        "on=true",
        "k=9",
    )  # the command line comes last and wins


def test_every_shipped_suite_is_valid() -> None:
    assert "quickstart" in suite_names()
    for name in suite_names():
        assert expand(load_suite(name), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("limit = 3", "limits = 3"), "unknown key 'limits'; did you mean 'limit'?"),
        (
            GOOD.replace("limit = 7", "limt = 7"),
            "runs: conditions: unknown key 'limt'; did you mean 'limit'?",
        ),
        (GOOD.replace("tasks", "task"), "runs[0]: unknown key 'task'; did you mean 'tasks'?"),
        (GOOD.replace("limit = 3", 'limit = "3"'), "conditions: limit must be a whole number, not '3'"),
        (GOOD.replace("limit = 3", "limit = 0"), "limit must be at least 1, not 0"),
        (GOOD.replace('name = "mine"', ""), "key 'name' is missing"),
        ("name = ", "not valid TOML"),
        ('name = "x"\ndescription = "y"\nruns = []\n', "no [[runs]]"),
    ],
)
def test_a_wrong_suite_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as error:
        load_suite(path)
    assert message in str(error.value)
    if "at least" not in message:
        assert str(error.value).startswith(path)


def test_an_unknown_suite_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="unknown suite 'quickstrt'; did you mean 'quickstart'"):
        load_suite("quickstrt")


def test_a_missing_or_binary_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.toml does not exist"):
        load_suite(str(tmp_path / "nothing.toml"))
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        load_suite(str(tmp_path / "b.toml"))
