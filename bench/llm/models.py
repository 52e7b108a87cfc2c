"""From what `--model` says to a checked folder with a digest. Imports no torch."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from ragtrials.errors import UserError
from ragtrials.llm.folders import checked_digest
from ragtrials.llm.hub import hub_snapshot
from ragtrials.llm.quickstart import QUICKSTART, QUICKSTART_NAME, quickstart_folder, quickstart_revision


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that is on this machine.

    Attributes:
        name: What records and the leaderboard call it; never an absolute path.
        folder: A checked Hugging Face folder.
        revision: What fixes its source: a commit hash or a package version; None for a plain folder.
        digest: SHA-256 over configuration, tokenizer and weights.
        tokens: Control tokens that a method needs; those that the folder's tokenizer lacks are added to it,
            and to the weights, when these are loaded.
    """

    name: str
    folder: Path
    revision: str | None
    digest: str
    tokens: tuple[str, ...] = ()


def list_models() -> tuple[str, ...]:
    """The names that `--model` knows beside folders and hub ids."""
    return (QUICKSTART,)


def resolve_model(model: str, tokens: tuple[str, ...] = ()) -> ResolvedModel:
    """Find what `--model` names: "quickstart", a folder, or a hub id with an optional "@revision".

    Args:
        model: The name.
        tokens: Control tokens that it has to have.

    Raises:
        UserError: There is no such model, or its folder is incomplete or damaged.
    """
    return replace(_found(model), tokens=tokens)


def _found(model: str) -> ResolvedModel:
    if model == QUICKSTART:
        folder = quickstart_folder()
        return ResolvedModel(QUICKSTART_NAME, folder, quickstart_revision(), checked_digest(folder))
    folder = Path(model).expanduser()
    if folder.is_dir():
        return ResolvedModel(folder.resolve().name, folder, None, checked_digest(folder))
    if _looks_like_path(model):
        problem = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"--model {model}: {problem}; pass a model folder, a hub id or {QUICKSTART!r}")
    if "/" not in model and (close := difflib.get_close_matches(model, list_models(), n=1)):
        raise UserError(f"--model {model!r} is unknown: did you mean {close[0]!r}?")
    name, _, revision = model.partition("@")
    folder, commit = hub_snapshot(name, revision or None)
    return ResolvedModel(name, folder, commit, checked_digest(folder))


def _looks_like_path(model: str) -> bool:
    parts = Path(model).parts
    return (
        not model
        or Path(model).exists()
        or len(parts) > 2
        or parts[0] in (os.sep, "~", "..")
        or model[0] == "."
    )
