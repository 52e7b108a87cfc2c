"""What `ragtrials doctor` finds of the packages that the quick start needs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ragtrials import checkup
from ragtrials.checkup import Finding, examine
from ragtrials.environment import environment

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def of_package(name: str) -> Finding:
    [finding] = [found for found in examine(None) if found.text.split()[0] == name]
    return finding


def declared(extra: str) -> set[str]:
    """The distributions that an extra asks for, those of other extras of this project included."""
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    names: set[str] = set()
    for requirement in extras[extra]:
        if requirement.startswith("ragtrials["):
            for other in requirement.removeprefix("ragtrials[").rstrip("]").split(","):
                names |= declared(other)
        else:
            names.add(requirement.split(">")[0].split("=")[0])
    return names


def test_every_package_of_the_quick_start_is_looked_for() -> None:
    assert {*checkup.ANSWERING, *checkup.TRAINING} == declared("quickstart")
    assert declared("train") | declared("quickstart") <= declared("dev")


@pytest.mark.parametrize("name", checkup.TRAINING)
def test_a_package_that_training_needs_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "version_of", lambda package: "1.2.3")
    assert of_package(name) == Finding(True, True, f"{name} 1.2.3")
    monkeypatch.setattr(checkup, "version_of", lambda package: "not installed")
    remedy = "pip install 'ragtrials[quickstart]'"
    assert of_package(name) == Finding(False, True, f"{name} not installed: {remedy}")


def test_a_record_says_which_training_libraries_there_were() -> None:
    assert {"trl", "peft", "accelerate"} <= set(environment())
