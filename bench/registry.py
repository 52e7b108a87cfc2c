"""Methods and tasks by name. A plug-in's name is its file's name; there is no central list.

Other packages add theirs through the entry-point groups `ragtrials.methods` and `ragtrials.tasks`,
whose entries name a class.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module, metadata
from typing import Any, Generic, TypeVar, cast

from ragtrials.config import suggestion
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.task import Task

T = TypeVar("T")


class Registry(Generic[T]):
    """The plug-ins of one kind.

    Args:
        kind: What to call one in an error ("method").
        package: The package whose modules are the built-in plug-ins.
        base: The class they derive from.
    """

    def __init__(self, kind: str, package: str, base: type[Any]) -> None:
        self.kind = kind
        self.package = package
        self.base = base

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Nothing but the empty package is imported."""
        path = import_module(self.package).__path__
        built_in = {module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")}
        return tuple(sorted(built_in | set(self._external())))

    def load(self, name: str) -> type[T]:
        """The class of that name or alias; of "NAME:FILE", the class that NAME's `of_file` makes.

        Raises:
            UserError: There is none; the message suggests the closest name.
        """
        name, colon, file = name.partition(":")
        kind = self._named(name)
        if not colon:
            return kind
        if not issubclass(kind, Task):
            raise UserError(f"{self.kind} {name} reads no file: write {name} instead of {name}:{file}")
        return cast("type[T]", kind.of_file(file))

    def _named(self, name: str) -> type[T]:
        if name in self.names():
            return self._import(name)
        by_alias = {
            alias: plugin
            for plugin in map(self._import, self.names())
            for alias in getattr(plugin, "aliases", ())
        }
        if name in by_alias:
            return by_alias[name]
        known = {*self.names(), *by_alias}
        raise UserError(f"unknown {self.kind} {name!r}{suggestion(name, known)}")

    def _external(self) -> dict[str, metadata.EntryPoint]:
        return {entry.name: entry for entry in metadata.entry_points(group=self.package)}

    def _import(self, name: str) -> type[T]:
        external = self._external()
        if name in external:
            return self._checked(external[name].load(), name, external[name].value)
        module = import_module(f"{self.package}.{name}")
        found = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, self.base)
            and value.__module__ == module.__name__
            and getattr(value, "name", None) == name
        ]
        if len(found) != 1:
            raise UserError(
                f"{module.__file__}: expected one {self.base.__name__} named {name!r}, found {len(found)}"
            )
        return found[0]

    def _checked(self, value: Any, name: str, where: str) -> type[T]:
        if not (
            isinstance(value, type) and issubclass(value, self.base) and getattr(value, "name", "") == name
        ):
            raise UserError(f"entry point {where} is no {self.base.__name__} whose name is {name!r}")
        return value


METHODS: Registry[Method] = Registry("method", "ragtrials.methods", Method)
TASKS: Registry[Task] = Registry("task", "ragtrials.tasks", Task)
