"""Learning curves: the scalars that a training logged, stage by stage, with their trend."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import fmean

import numpy as np

from ragtrials.config import suggestion
from ragtrials.errors import UserError
from ragtrials.stats import Trend, linear_trend
from ragtrials.training.checkpoint import MANIFEST
from ragtrials.training.scalars import LOG_FILE, read_log

DEFAULT_SCALARS = ("reward", "loss")
"""Without a choice, a stage's curve is that of the first of these which it has."""

_FOLDER = re.compile(r"(?P<method>.+)-s(?P<seed>-?\d+)-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Curve:
    """One scalar over the steps of one stage.

    Attributes:
        stage, scalar: What it is the course of.
        steps: The steps that logged a finite value, ascending; at least one.
        values: The value at each of them.
        broken: The steps whose value is not finite, as that of a training which diverged.
    """

    stage: str
    scalar: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    broken: tuple[int, ...] = ()

    @property
    def first(self) -> float:
        """Mean of the first fifth of the values, rounded down, of one value at least."""
        return fmean(self.values[: self._fifth])

    @property
    def last(self) -> float:
        """Mean of the last fifth of the values, rounded down, of one value at least."""
        return fmean(self.values[-self._fifth :])

    @property
    def _fifth(self) -> int:
        return max(1, len(self.values) // 5)

    def trend(self) -> Trend:
        """Slope per step, and the p-value of the permutation test that there is none."""
        return linear_trend(self.values, steps=self.steps)


def read_curves(folder: Path, stage: str | None = None, scalars: Sequence[str] = ()) -> list[Curve]:
    """The curves of a training, finished or not, in the order of its stages and of `scalars`.

    Args:
        folder: A checkpoint's folder; only its log.jsonl is read.
        stage: The stage to read; by default all of them.
        scalars: The scalars to read, of each stage that has them; by default the reward, else the loss.

    Raises:
        UserError: There is no log, it is damaged, or it lacks what was asked for.
    """
    log = _read(folder)
    path = folder / LOG_FILE
    if stage is not None and stage not in log:
        raise UserError(f"{path}: no stage {stage!r}{suggestion(stage, log)}")
    chosen = {name: steps for name, steps in log.items() if stage in (None, name)}
    logged = {name: {scalar for row in steps.values() for scalar in row} for name, steps in chosen.items()}
    known = set().union(*logged.values())
    for scalar in scalars:
        if scalar not in known:
            of_stage = "" if stage is None else f" in stage {stage}"
            raise UserError(f"{path}: no scalar {scalar!r}{of_stage}{suggestion(scalar, known)}")
    curves = []
    for name, steps in chosen.items():
        wanted = [scalar for scalar in dict.fromkeys(scalars) if scalar in logged[name]]
        if not scalars:
            wanted = [scalar for scalar in DEFAULT_SCALARS if scalar in logged[name]][:1]
            if not wanted:
                raise UserError(
                    f"{path}: stage {name} has neither {' nor '.join(DEFAULT_SCALARS)}; "
                    f"choose with --scalar: {', '.join(sorted(logged[name]))}"
                )
        curves += [_curve(path, name, scalar, steps) for scalar in wanted]
    return curves


def training_name(folder: Path) -> str:
    """What was trained on what, e.g. "mmoa_rag on geo_hop, seed 0".

    The manifest says it; without one, the names of the folder and of the folder around it; of a folder with
    another kind of name, that name.

    Raises:
        UserError: The manifest is damaged.
    """
    path = folder / MANIFEST
    if path.is_file():
        try:
            made = json.loads(path.read_text("utf-8"))
            return f"{made['method']} on {made['task']}, seed {made['seed']}"
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UserError(f"{path}: damaged manifest ({error}); copy the folder again") from error
    folder = folder.resolve()
    if named := _FOLDER.fullmatch(folder.name):
        return f"{named['method']} on {folder.parent.name}, seed {named['seed']}"
    return folder.name


def moving_average(values: Sequence[float], window: int) -> list[float]:
    """Means of `window` neighbouring values, one for each place where the whole window fits.

    Args:
        values: A series of n values.
        window: Odd, so that a mean stands at its window's middle: the first at index window // 2.

    Returns:
        n - window + 1 means; none where the window is longer than the series.
    """
    if len(values) < window:
        return []
    means: list[float] = (
        np.lib.stride_tricks.sliding_window_view(np.asarray(values), window).mean(axis=1).tolist()
    )
    return means


def window_of(count: int) -> int:
    """The width of a moving average that suits `count` values: about a tenth of them, odd, at least 5."""
    return max(5, count // 10 | 1)


def _read(folder: Path) -> dict[str, dict[int, dict[str, float]]]:
    """The log by stage, in the order in which they began, and by step, ascending."""
    path = folder / LOG_FILE
    try:
        logged = read_log(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder}: no {LOG_FILE} here; name the folder of a training, as `ragtrials list checkpoints` "
            "finds them in runs/train/TASK/"
        ) from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: a line is damaged ({error}); take it out, or train again with --overwrite"
        ) from error
    if not logged:
        raise UserError(f"{path}: no step has been logged yet")
    stages: dict[str, dict[int, dict[str, float]]] = {}
    for (stage, step), scalars in logged.items():
        stages.setdefault(stage, {})[step] = scalars
    return {stage: dict(sorted(steps.items())) for stage, steps in stages.items()}


def _curve(path: Path, stage: str, scalar: str, steps: Mapping[int, Mapping[str, float]]) -> Curve:
    found = {step: row[scalar] for step, row in steps.items() if scalar in row}
    for step, value in found.items():
        if not isinstance(value, int | float):
            raise UserError(f"{path}: {scalar} of stage {stage}, step {step}, is no number: {value!r}")
    finite = {step: float(value) for step, value in found.items() if isfinite(value)}
    if not finite:
        raise UserError(f"{path}: {scalar} of stage {stage} is never a finite number")
    broken = tuple(step for step in found if step not in finite)
    return Curve(stage, scalar, tuple(finite), tuple(finite.values()), broken)
