"""Frozen dataclasses in and out of plain values (JSON, TOML, `-o key=value`), checked at the boundary.

An unknown key, a missing key or a value of the wrong type is a `UserError` that names the place.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union

from ragtrials.errors import UserError

T = TypeVar("T")
_SCALARS = (str, int, float, bool)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where a known name is close, else the list of known names."""
    known = sorted(known)
    if close := difflib.get_close_matches(name, known, n=1, cutoff=0.5):
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON values (dicts with string keys, lists, scalars)."""
    if value is None or isinstance(value, _SCALARS):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _hints(type(value))}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no plain form")


_known_hints: dict[Any, dict[str, Any]] = {}


def _hints(kind: Any) -> dict[str, Any]:
    """Field names of a dataclass with their types, in order; looked up once per class."""
    if kind not in _known_hints:
        hints = typing.get_type_hints(kind)
        _known_hints[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _known_hints[kind]


def _required(kind: Any) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is missing and field.default_factory is missing
    )


def parse(kind: type[T], raw: Any, where: str) -> T:
    """Build the dataclass `kind` from plain values.

    Args:
        kind: A dataclass; its fields may be scalars, Literals, tuples, mappings, unions, dataclasses.
        raw: What was read.
        where: What to call the place in an error, e.g. "suite.toml".

    Raises:
        UserError: A key is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(raw, Mapping):
        raise UserError(f"{where}: expected a table of keys, found {_shown(raw)}")
    hints = _hints(kind)
    for key in raw:
        if key not in hints:
            raise UserError(f"{where}: unknown key {key!r}{suggestion(str(key), hints)}")
    for key in _required(kind):
        if key not in raw:
            raise UserError(f"{where}: key {key!r} is missing")
    return kind(**{key: _convert(hints[key], value, f"{where}: {key}") for key, value in raw.items()})


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is Literal:
        if value not in arguments:
            raise UserError(f"{where} must be one of {', '.join(map(str, arguments))}, not {_shown(value)}")
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, value, where)
    if hint is type(None):
        if value is None:
            return None
    elif hint is float:
        if type(value) in (int, float):
            return float(value)
    elif hint in _SCALARS:
        if type(value) is hint:
            return value
    elif origin is tuple:
        if isinstance(value, list | tuple):
            item = arguments[0]
            if item in (int, str) and all(type(entry) is item for entry in value):
                return tuple(value)
            return tuple(_convert(item, entry, f"{where}[{i}]") for i, entry in enumerate(value))
    elif origin is not None and issubclass(origin, Mapping):
        if isinstance(value, Mapping):
            return {key: _convert(arguments[1], entry, f"{where}.{key}") for key, entry in value.items()}
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return parse(hint, value, where)
    raise UserError(f"{where} must be {_name(hint)}, not {_shown(value)}")


def _convert_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    problems = []
    for option in options:
        try:
            return _convert(option, value, where)
        except UserError as error:
            problems.append(error)
    if len(options) == 2 and type(None) in options:  # optional: the error of the real type says more
        raise next(e for option, e in zip(options, problems, strict=True) if option is not type(None))
    raise UserError(f"{where} must be {' or '.join(map(_name, options))}, not {_shown(value)}")


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}


def _name(hint: Any) -> str:
    if typing.get_origin(hint) is tuple:
        return "a list"
    if typing.get_origin(hint) is not None:
        return "a table"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def override(config: T, assignments: Sequence[str]) -> T:
    """A copy of a config dataclass with `-o name=value` (or `-o part.name=value`) applied; the last one wins.

    All are applied at once, so settings that depend on each other can be given in any order.

    Raises:
        UserError: The option does not exist, or the value does not fit its type.
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise UserError(f"option -o {assignment!r}: write name=value")
        path = name.strip().split(".")
        value = _checked_value(config, path, text.strip(), f"option -o {name.strip()}")
        group = changes
        for part in path[:-1]:
            group = group.setdefault(part, {})
        group[path[-1]] = value
    changed: T = _changed(config, changes)
    return changed


def assignments(settings: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Plain settings as `override` takes them: dotted names, and values as they are written after -o."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from assignments(value, f"{before}{name}.")
        else:
            yield before + name, _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _checked_value(config: Any, path: Sequence[str], text: str, where: str) -> Any:
    """What a text stands for at a place in a config."""
    hints = _hints(type(config))
    name = path[0]
    if name not in hints:
        raise UserError(f"{where}: {name!r} is no option of this method{suggestion(name, hints)}")
    current = getattr(config, name)
    if len(path) > 1:
        if not dataclasses.is_dataclass(current):
            raise UserError(f"{where}: {name!r} has no parts")
        return _checked_value(current, path[1:], text, where)
    if dataclasses.is_dataclass(current):
        part = next(iter(_hints(type(current))))
        raise UserError(f"{where}: {name!r} is a group; set one of its parts, e.g. {name}.{part}")
    return _convert(hints[name], _from_text(hints[name], text), where)


def _changed(config: Any, changes: Mapping[str, Any]) -> Any:
    """A copy with some settings changed; those of a group are changed in a copy of the group."""
    made = {
        name: _changed(getattr(config, name), value)
        if dataclasses.is_dataclass(getattr(config, name))
        else value
        for name, value in changes.items()
    }
    return dataclasses.replace(config, **made) if made else config


def _from_text(hint: Any, text: str) -> Any:
    """The plain value that `text` stands for, read as the type asks; left as text where it does not fit."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if type(None) in arguments and text.lower() == "none":
            return None
        for option in arguments:
            value = _from_text(option, text)
            if option is str or not isinstance(value, str):
                return value
        return text
    if origin is Literal:
        return next((option for option in arguments if str(option) == text), text)
    if origin is tuple:
        return [_from_text(arguments[0], part.strip()) for part in text.split(",") if part.strip()]
    if hint is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError:
            return text
    return text
