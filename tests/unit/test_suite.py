from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragtrials.config import override
from ragtrials.errors import UserError
from ragtrials.registry import METHODS
from ragtrials.suite import Conditions, Request, expand, load_suite, suite_names

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


def settings(request: Request) -> Any:
    """What the method of a request is run with."""
    return override(METHODS.load(request.method).PROFILES[request.conditions.profile], request.options)


def test_every_shipped_suite_is_valid() -> None:
    assert {"quickstart", "laptop"} <= set(suite_names())
    for name in suite_names():
        for request in expand(load_suite(name), {}):
            settings(request)  # refuses an option that the method does not have


@pytest.mark.parametrize("key", ['"sft.save_steps"', "sft.save_steps"])
def test_a_setting_of_a_group_has_a_dotted_key(tmp_path: Path, key: str) -> None:
    text = GOOD.replace("k = 2, names", f"{key} = 2, names")
    assert expand(load_suite(write(tmp_path, text)), {})[0].options[0] == "sft.save_steps=2"


def test_the_quick_start_trains_on_little_and_saves_on_the_way() -> None:
    trained = [r for r in expand(load_suite("quickstart"), {}) if METHODS.load(r.method).trains]
    assert [(r.method, r.task, r.conditions.limit) for r in trained] == [
        ("sft", "geo_pop", 8),
        ("rag_ddr", "geo_pop", 8),
        ("mmoa_rag", "geo_pop", 8),
        ("smart_rag", "geo_pop", 8),
        ("self_rag", "geo_pop", 8),
    ]
    sft, ddr, mmoa, smart, self_rag = map(settings, trained)
    counts = self_rag.labels
    assert (self_rag.examples, counts.relevance, counts.support, counts.utility) == (12, 6, 6, 6)
    assert (smart.examples, smart.warm_up.examples) == (12, 10)
    assert (smart.ppo.steps, smart.ppo.questions, smart.ppo.update.save_steps) == (2, 6, 1)
    assert (mmoa.examples, mmoa.ppo.steps, mmoa.ppo.questions, mmoa.ppo.update.save_steps) == (12, 2, 4, 1)
    assert (sft.examples, ddr.examples) == (16, 6)
    # A question gives at most one row to SFT and the generator, and two to the refiner.
    for rows, optimisation in (
        (16, sft.sft),
        (6, ddr.generator),
        (12, ddr.refiner),
        (12 + 6 + 6 + 6, self_rag.critic),
        (12, self_rag.generator),
    ):
        assert optimisation.save_steps < rows / optimisation.batch_size


NO_CRITIC = ("weights.relevance=0.0", "weights.support=0.0", "weights.utility=0.0")


def test_the_laptop_suite_compares_training_with_none() -> None:
    requests = expand(load_suite("laptop"), {})
    assert [(r.method, r.task, r.options, r.optional) for r in requests] == [
        ("vanilla_rag", "geo_pop", (), False),
        ("vanilla_rag", "geo_hop", (), False),
        ("vanilla_rag", "hotpotqa", ("passage_words=60",), True),
        ("sft", "geo_pop", (), False),
        ("sft", "geo_hop", (), False),
        ("rag_ddr", "geo_pop", (), False),
        ("rag_ddr", "geo_hop", (), False),
        ("sft", "hotpotqa", (), True),
        ("rag_ddr", "hotpotqa", (), True),
        ("mmoa_rag", "geo_hop", (), False),
        ("mmoa_rag", "geo_hop", ("ppo.steps=0",), False),
        ("mmoa_rag", "hotpotqa", (), True),
        ("mmoa_rag", "hotpotqa", ("ppo.steps=0",), True),
        ("smart_rag", "geo_pop", (), False),
        ("smart_rag", "geo_pop", ("gate=always",), False),
        ("smart_rag", "geo_pop", ("gate=never",), False),
        ("smart_rag", "geo_pop", ("ppo.steps=0",), False),
        ("smart_rag", "popqa", (), True),
        ("smart_rag", "popqa", ("gate=always",), True),
        ("smart_rag", "popqa", ("gate=never",), True),
        *(
            ("self_rag", task, options, optional)
            for optional, tasks in ((False, ("geo_pop", "geo_hop")), (True, ("popqa", "hotpotqa")))
            for options in ((), ("mode=always",), ("mode=never",), NO_CRITIC)
            for task in tasks
        ),
    ]
    assert {r.conditions for r in requests} == {Conditions(limit=300, chunk=50, batch_size=16)}
    # All read as many words of as many passages, so that training is all that differs; SmartRAG reads fewer.
    assert {settings(r).k for r in requests if r.method != "smart_rag"} == {3}
    assert {(settings(r).k, settings(r).passage_words) for r in requests if r.method == "smart_rag"} == {
        (2, 50)
    }
    hotpotqa = [settings(r).passage_words for r in requests if r.task == "hotpotqa"]
    assert set(hotpotqa) == {60}


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
