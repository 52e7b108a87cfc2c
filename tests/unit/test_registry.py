from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from ragtrials.errors import UserError
from ragtrials.methods.no_retrieval import NoRetrieval
from ragtrials.registry import METHODS, TASKS


def test_names_are_the_files_names() -> None:
    assert {"no_retrieval", "vanilla_rag"} <= set(METHODS.names())
    assert "hotpotqa" in TASKS.names()
    assert not [name for name in (*METHODS.names(), *TASKS.names()) if name.startswith("_")]


def test_listing_imports_no_plugin() -> None:
    code = (
        "import sys; from ragtrials.registry import METHODS, TASKS; METHODS.names(); TASKS.names();"
        "print([m for m in sys.modules if m.startswith(('ragtrials.methods.', 'ragtrials.tasks.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vanila_rag", "unknown method 'vanila_rag'; did you mean 'vanilla_rag'?"),
        ("zzz", f"unknown method 'zzz'; known: {', '.join(METHODS.names())}"),
    ],
)
def test_a_typo_gets_a_suggestion(name: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        METHODS.load(name)
    assert str(error.value) == message


def test_another_package_adds_a_method(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint(
        "no_retrieval", "ragtrials.methods.no_retrieval:NoRetrieval", "ragtrials.methods"
    )
    monkeypatch.setattr(
        metadata, "entry_points", lambda group: [entry] if group == "ragtrials.methods" else []
    )
    assert METHODS.load("no_retrieval") is NoRetrieval
    wrong = metadata.EntryPoint("mine", "ragtrials.methods.no_retrieval:NoRetrieval", "ragtrials.methods")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [wrong])
    assert "mine" in METHODS.names()
    with pytest.raises(UserError, match="is no Method whose name is 'mine'"):
        METHODS.load("mine")


def test_an_alias_finds_its_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoRetrieval, "aliases", ("closed_book",), raising=False)
    assert METHODS.load("closed_book") is NoRetrieval
