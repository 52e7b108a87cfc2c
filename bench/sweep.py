"""From the words after --over to the runs of a family: one method on one task, some settings varied."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import product
from types import NoneType
from typing import Any, get_args, get_type_hints

from ragtrials.config import parse, suggestion
from ragtrials.errors import UserError
from ragtrials.planning import build_method, named_checkpoint
from ragtrials.registry import METHODS
from ragtrials.suite import Conditions, Request

SETTING = "config."
"""What the name of a method's setting begins with; other names are those of conditions."""
_CONDITIONS: dict[str, Any] = get_type_hints(Conditions)
_CLOSING = {"[": "]", "{": "}"}
_TAKEN = ("reported", "train")
"""Folders of results/ and runs/ that hold something else than a suite."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a varied name.

    Attributes:
        text: The value as it would be written after -o.
        listed: Whether it was written in square brackets, as a list.
    """

    text: str
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Over:
    """A varied name and its values.

    Attributes:
        name: A condition, or a setting of the method with "config." before it.
        values: At least one, in the order of the sweep.
    """

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a family.

    Attributes:
        values: The value of each varied name, as it was written.
        request: The run.
    """

    values: tuple[str, ...]
    request: Request


def check_suite_name(name: str) -> None:
    """Hold that records can go under this name.

    Raises:
        UserError: It is no plain folder name, or one with another use.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UserError(f"--name {name!r}: write a plain folder name (letters, digits, '.', '_', '-')")
    if name in _TAKEN:
        raise UserError(f"--name {name}: this folder holds something else; choose another name")


def parse_over(word: str) -> Over:
    """One `NAME=V1,V2,...`.

    A comma in square brackets, braces or quotes is part of a value. Quotes around a value are taken off;
    `[a,b]` is a list, which -o takes as `a,b`.

    Raises:
        UserError: It is not written so, a value is empty, or the same value stands there twice.
    """
    name, equals, text = word.partition("=")
    name = name.strip()
    if not name.startswith(SETTING):
        name = name.replace("-", "_")  # conditions are called so as options: --max-prompt-tokens
    if not equals or not name:
        raise UserError(f"--over {word!r}: write NAME=V1,V2,...")
    where = f"--over {name}"
    values: list[Value] = []
    for part in _split(text, where):
        if not part:
            raise UserError(f'{where}: a value is empty (write NAME=V1,V2,..., or "" for an empty text)')
        value = _value(part, where)
        if value in values:
            raise UserError(f"{where}: the value {part} stands there twice")
        values.append(value)
    return Over(name, tuple(values))


def _split(text: str, where: str) -> list[str]:
    """The parts between the commas that separate, without white space around them."""
    parts, part, expected, quote = [], "", "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and (not part.strip() or part.rstrip()[-1] in "[{,:"):
            quote = character  # elsewhere it is an apostrophe
        elif character in _CLOSING:
            expected = _CLOSING[character] + expected
        elif character in _CLOSING.values():
            if not expected.startswith(character):
                raise UserError(f"{where}: {character!r} closes nothing; put the value in quotes")
            expected = expected[1:]
        elif character == "," and not expected:
            parts.append(part.strip())
            part = ""
            continue
        part += character
    if quote or expected:
        raise UserError(f"{where}: {quote or expected[0]} is missing at the end of {part.strip()}")
    return [*parts, part.strip()]


def _value(part: str, where: str) -> Value:
    if part[0] != "[" or part[-1] != "]":
        return Value(_unquoted(part))
    inside = part[1:-1].strip()
    items = [_unquoted(item) for item in _split(inside, where)] if inside else []
    for item in items:
        if "," in item or not item:
            raise UserError(f"{where}: an entry of the list {part} is empty or has a comma in it")
    return Value(",".join(items), listed=True)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else text


def family(base: Request, overs: Sequence[Over], given: Collection[str] = ()) -> list[Member]:
    """The runs of a sweep: all combinations, the last name varying fastest.

    The method's settings are built for each, so that a wrong value is found before anything runs.

    Args:
        base: The run without what is varied.
        overs: What is varied.
        given: Conditions that the user has set.

    Raises:
        UserError: A name is unknown, varied twice or also set otherwise, or a value does not fit.
    """
    if not overs:
        raise UserError("say what to vary: --over config.SETTING=V1,V2,... or --over CONDITION=V1,V2,...")
    kind = METHODS.load(base.method)
    for position, over in enumerate(overs):
        _check_known(over.name, [field.name for field in fields(kind.Config)])
        if over.name in [earlier.name for earlier in overs[:position]]:
            raise UserError(f"--over {over.name}: given twice; write all its values after one --over")
        _check_free(over.name, base, given)
    checkpoint = named_checkpoint(base)
    meanings: dict[str, dict[Any, Value]] = {over.name: {} for over in overs}
    members = []
    for combination in product(*(over.values for over in overs)):
        chosen = list(zip([over.name for over in overs], combination, strict=True))
        request = _request(base, chosen)
        try:
            config = build_method(request, checkpoint).config
        except UserError as error:
            words = ", ".join(f"{name}={value.text}" for name, value in chosen)
            raise UserError(f"--over {words}: {error}") from error
        for name, value, meaning in _meanings(chosen, request.conditions, config):
            if meanings[name].setdefault(meaning, value) != value:
                raise UserError(
                    f"--over {name}: {meanings[name][meaning].text} and {value.text} are the same value"
                )
        members.append(Member(tuple(value.text for value in combination), request))
    return members


def _check_known(name: str, settings: Sequence[str]) -> None:
    if name in _CONDITIONS or name.startswith(SETTING):  # an unknown setting is found when it is set
        return
    known = [*_CONDITIONS, *(SETTING + setting for setting in settings)]
    meant = (
        f"; did you mean {SETTING + name!r}?"
        if name.partition(".")[0] in settings
        else suggestion(name, known)
    )
    raise UserError(f"--over {name}: no condition, and no setting of the method{meant}")


def _check_free(name: str, base: Request, given: Collection[str]) -> None:
    """Hold that nothing else sets the name."""
    if name in given:
        raise UserError(f"--over {name}: it is varied, so leave --{name.replace('_', '-')} out")
    if name in (SETTING + option.partition("=")[0].strip() for option in base.options):
        raise UserError(f"--over {name}: it is varied, so leave -o {name.removeprefix(SETTING)} out")
    if name == "profile" and base.checkpoint is not None:
        raise UserError(
            "--over profile: a checkpoint has its settings with it; vary them with --over config.…"
        )


def _request(base: Request, chosen: Sequence[tuple[str, Value]]) -> Request:
    conditions = replace(
        base.conditions,
        **{name: _condition(name, value) for name, value in chosen if not name.startswith(SETTING)},
    )
    options = tuple(
        f"{name.removeprefix(SETTING)}={value.text}" for name, value in chosen if name.startswith(SETTING)
    )
    return replace(base, conditions=conditions, options=base.options + options)


def _condition(name: str, value: Value) -> Any:
    """What a text stands for as a condition."""
    if value.listed:
        raise UserError(f"--over {name}=[{value.text}]: {name} takes no list; write the values without [ ]")
    kinds = get_args(_CONDITIONS[name]) or (_CONDITIONS[name],)
    plain: Any = value.text
    if NoneType in kinds and plain.lower() == "none":
        return None
    if int in kinds and re.fullmatch(r"[+-]?\d+", plain):
        plain = int(plain)
    return getattr(parse(Conditions, {name: plain}, f"--over {name}={value.text}"), name)


def _meanings(
    chosen: Sequence[tuple[str, Value]], conditions: Conditions, config: Any
) -> Iterator[tuple[str, Value, Any]]:
    """Each name with its value, and what the value has become."""
    for name, value in chosen:
        if not name.startswith(SETTING):
            yield name, value, getattr(conditions, name)
            continue
        meaning = reduce(getattr, name.removeprefix(SETTING).split("."), config)
        if value.listed and not isinstance(meaning, tuple):
            raise UserError(
                f"--over {name}=[{value.text}]: {name} takes no list; put a text with brackets in quotes"
            )
        yield name, value, meaning
