from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from ragtrials.config import override, parse, plain
from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.program import Completion, Evidence, Generate, Hit, Retrieve, Step, Trace, user


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    k: int = 5
    mode: Literal["fast", "slow"] = "fast"
    on: bool = False
    limit: int | None = None
    inner: Inner = field(default_factory=Inner)
    extra: Mapping[str, Any] = field(default_factory=dict)


def test_parse_and_plain_are_inverse() -> None:
    value = Outer(k=2, mode="slow", on=True, limit=3, inner=Inner(0.25, ("a", "b")), extra={"x": [1]})
    assert parse(Outer, plain(value), "here") == value


def test_a_trace_survives_the_round_trip() -> None:
    trace = Trace(
        "e1",
        "Paris",
        (
            Step(0, Retrieve("q", 2), (Hit(Passage("p", "T", "text"), 1.5),), 0.25),
            Step(
                1,
                Generate((user("ask ", Evidence("text")),), stop=("\n",)),
                Completion("Paris", (7, 8), (1, 2, 3), (-0.5, -0.25), "stop", 4),
            ),
        ),
    )
    assert parse(Trace, plain(trace), "here") == trace


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"kk": 1}, "file.toml: unknown key 'kk'; did you mean 'k'?"),
        ({"k": "1"}, "file.toml: k must be a whole number, not '1'"),
        ({"k": True}, "file.toml: k must be a whole number, not True"),
        ({"mode": "quick"}, "file.toml: mode must be one of fast, slow, not 'quick'"),
        ({"inner": {"rate": "x"}}, "file.toml: inner: rate must be a number, not 'x'"),
        ({"inner": {"names": ["a", 1]}}, "file.toml: inner: names[1] must be text, not 1"),
        ({"limit": "x"}, "file.toml: limit must be a whole number, not 'x'"),
        ([], "file.toml: expected a table of keys, found []"),
    ],
)
def test_a_wrong_value_is_named(raw: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse(Outer, raw, "file.toml")
    assert str(error.value) == message


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UserError, match=r"f: key 'text' is missing"):
        parse(Passage, {"id": "a", "title": "b"}, "f")


def test_override_reads_each_type() -> None:
    changed = override(
        Outer(),
        ["k=7", "mode=slow", "on=true", "limit=9", "inner.rate=1", "inner.names=a, b"],
    )
    assert changed == Outer(7, "slow", True, 9, Inner(1.0, ("a", "b")))
    assert override(changed, ["limit=none"]).limit is None


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("kk=1", "option -o kk: 'kk' is no option of this method; did you mean 'k'?"),
        ("k=x", "option -o k must be a whole number, not 'x'"),
        ("k=1.5", "option -o k must be a whole number, not '1.5'"),
        ("on=maybe", "option -o on must be true or false, not 'maybe'"),
        ("mode=quick", "option -o mode must be one of fast, slow, not 'quick'"),
        ("inner=1", "option -o inner: 'inner' is a group; set one of its parts, e.g. inner.rate"),
        ("k.x=1", "option -o k.x: 'k' has no parts"),
        ("inner.rat=1", "option -o inner.rat: 'rat' is no option of this method; did you mean 'rate'?"),
        ("k", "option -o 'k': write name=value"),
    ],
)
def test_a_wrong_option_is_named(option: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        override(Outer(), [option])
    assert str(error.value) == message


@dataclass(frozen=True)
class Divided:
    whole: int = 8
    part: int = 4

    def __post_init__(self) -> None:
        if self.whole % self.part:
            raise UserError("part must divide whole")


@dataclass(frozen=True)
class Holder:
    divided: Divided = field(default_factory=Divided)


def test_settings_that_depend_on_each_other_are_set_together() -> None:
    for order in (["divided.whole=6", "divided.part=3"], ["divided.part=3", "divided.whole=6"]):
        assert override(Holder(), order) == Holder(Divided(6, 3))
    with pytest.raises(UserError, match="part must divide whole"):
        override(Holder(), ["divided.whole=6"])


def test_the_last_assignment_of_a_setting_counts() -> None:
    assert override(Holder(), ["divided.part=1", "divided.part=2"]) == Holder(Divided(8, 2))
