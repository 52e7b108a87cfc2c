"""A suite: which methods run on which tasks under which conditions, written in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from ragtrials.config import assignments, parse, suggestion
from ragtrials.errors import UserError

AD_HOC = "adhoc"
"""The suite that runs given by --method and --task belong to."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything that methods must share to be compared; each field can be set per suite or per run.

    Attributes:
        model: "quickstart", a folder, or a Hugging Face id with an optional "@revision".
        retriever: Name of a retriever.
        corpus: What is searched: a .jsonl or .tsv file, or "wiki18-100w"; by default the task's own corpus.
        profile: Which of a method's ready settings to start from.
        split: The split to evaluate; by default the one the task reports.
        limit: How many examples to evaluate (the same for every method); by default all.
        seed: Decides few-shot examples and sampling.
        chunk: How many questions are driven together and saved at once.
        batch_size: Prompts per forward pass.
        max_prompt_tokens: Longer prompts have their passages shortened.
        dtype: Number format of the weights.
        device: Where the model runs.
        engine: What runs it: "hf" (transformers) or "vllm". Training's rollouts always come from "hf".
    """

    model: str = "quickstart"
    retriever: str = "bm25"
    corpus: str | None = None
    profile: str = "laptop"
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    chunk: int = 100
    batch_size: int = 8
    max_prompt_tokens: int = 2048
    dtype: str = "auto"
    device: str = "auto"
    engine: Literal["hf", "vllm"] = "hf"

    def __post_init__(self) -> None:
        for name in ("limit", "chunk", "batch_size", "max_prompt_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, not {value}")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a suite's records go.

    Attributes:
        results: Folder of the records.
        leaderboard: File that is rewritten after the suite; none by default.
    """

    results: str = "results"
    leaderboard: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One [[runs]] table: every method of it on every task of it.

    Attributes:
        methods: Names of methods.
        tasks: Names of tasks; "jsonl:FILE" for a file of questions, looked for from the working folder.
        options: Settings of the methods, as with -o.
        optional: Leave a task out, with a note, where its data are not on this machine.
        conditions: What differs from the suite's [conditions].
    """

    methods: tuple[str, ...]
    tasks: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False
    conditions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """A parsed suite file."""

    name: str
    description: str
    runs: tuple[Block, ...]
    conditions: Conditions = field(default_factory=Conditions)
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, slots=True)
class Request:
    """One run that somebody asked for: a method on a task under conditions.

    Attributes:
        suite, method, task, conditions: What is run.
        options: Settings of the method, as with -o.
        optional: Leave it out where the task's data are not on this machine.
        checkpoint: Evaluate this checkpoint instead of training.
        train: Whether a method that can be trained is; otherwise the untrained model plays its roles.
    """

    suite: str
    method: str
    task: str
    conditions: Conditions
    options: tuple[str, ...] = ()
    optional: bool = False
    checkpoint: Path | None = None
    train: bool = True


def suite_names() -> tuple[str, ...]:
    """Suites that ship with the package."""
    files = resources.files("ragtrials.suites").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_suite(name: str) -> Suite:
    """A suite by name, or by path of a TOML file.

    Raises:
        UserError: There is none, or the file is not a valid suite (file and key named).
    """
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UserError(f"suite file {name} does not exist")
        where, text = name, _decoded(path.read_bytes(), name)
    elif name in suite_names():
        where = f"{name}.toml"
        text = resources.files("ragtrials.suites").joinpath(where).read_text("utf-8")
    else:
        raise UserError(f"unknown suite {name!r}{suggestion(name, suite_names())} (or give a .toml file)")
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: not valid TOML: {error}") from error
    suite = parse(Suite, raw, where)
    if not suite.runs:
        raise UserError(f"{where}: no [[runs]]")
    for block in suite.runs:  # a misspelt condition is found before the first run, not at the tenth
        _conditions(suite.conditions, block, where)
    return suite


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8 text (byte {error.start})") from error


def _conditions(base: Conditions, block: Block, where: str) -> Conditions:
    changed = parse(Conditions, block.conditions, f"{where}: runs: conditions")
    return replace(base, **{name: getattr(changed, name) for name in block.conditions})


def expand(suite: Suite, changes: Mapping[str, Any], options: tuple[str, ...] = ()) -> list[Request]:
    """The runs of a suite, in its order.

    Args:
        suite: The suite.
        changes: Conditions given on the command line; they win.
        options: `name=value` settings given on the command line; they win.
    """
    return [
        Request(
            suite.name,
            method,
            task,
            replace(_conditions(suite.conditions, block, suite.name), **changes),
            tuple(f"{key}={text}" for key, text in assignments(block.options)) + options,
            block.optional,
        )
        for block in suite.runs
        for task in block.tasks
        for method in block.methods
    ]
