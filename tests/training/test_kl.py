"""The controller of the KL penalty: the values of the spec page (§1.7, oracle 9.10), and its bounds."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from ragtrials.errors import RunFailure, UserError
from ragtrials.training.kl import KlControl


@pytest.mark.parametrize(
    ("samples", "floor", "steps"),
    [(384, 0.06, 157), (768, 0.06, 78), (96, 0.06, 627), (384, 0.05, 180), (768, 0.05, 90), (96, 0.05, 722)],
)
def test_steps_from_the_start_to_the_floor(samples: int, floor: float, steps: int) -> None:
    control = KlControl(floor=floor)
    betas = [control.init]
    while betas[-1] > floor:
        betas.append(control.updated(betas[-1], 0.0, samples))
    assert len(betas) - 1 == steps
    assert betas[-1] == floor
    assert control.updated(floor, 0.0, samples) == floor


@pytest.mark.parametrize(
    ("kl", "samples", "factor"),
    [
        (0.0, 384, 0.99232),
        (4.8, 384, 0.99232),  # still at the lower cut
        (5.4, 384, 0.99616),
        (6.0, 384, 1.0),
        (6.6, 384, 1.00384),
        (12.0, 384, 1.00768),
        (-3.0, 384, 0.99232),
        (math.inf, 384, 1.00768),
        (12.0, 0, 1.0),
    ],
)
def test_one_step(kl: float, samples: int, factor: float) -> None:
    assert KlControl().updated(0.2, kl, samples) == pytest.approx(0.2 * factor, rel=1e-12)


def test_nothing_bounds_beta_from_above() -> None:
    assert KlControl().updated(0.2, 60.0, 384) > 0.2


def test_more_samples_than_the_horizon_never_turn_the_penalty_round() -> None:
    assert KlControl(horizon=10).updated(0.2, 0.0, 1000) == 0.0


def test_a_fixed_beta_stays() -> None:
    control = KlControl(init=0.01, floor=0.5, adaptive=False)
    assert [control.updated(0.01, kl, 384) for kl in (0.0, 60.0, math.nan)] == [0.01] * 3


def test_a_kl_that_is_no_number_ends_the_run() -> None:
    with pytest.raises(RunFailure, match="not a number"):
        KlControl().updated(0.2, math.nan, 384)


def test_any_step_is_the_formula() -> None:
    draw = random.Random(0)
    for _ in range(200):
        control = KlControl(
            target=draw.uniform(0.5, 9), horizon=draw.randint(1, 20000), floor=draw.uniform(0, 0.2)
        )
        beta, kl, samples = draw.uniform(0.01, 1), draw.uniform(-5, 30), draw.randint(0, 800)
        relative = (kl - control.target) / control.target
        if relative > 0.2:
            relative = 0.2
        elif relative < -0.2:
            relative = -0.2
        expected = beta + beta * relative * samples / control.horizon
        expected = control.floor if expected < control.floor else expected
        assert control.updated(beta, kl, samples) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": -0.1}, "kl.init must be at least 0 and finite, not -0.1"),
        ({"init": math.nan}, "kl.init must be at least 0 and finite, not nan"),
        ({"init": math.inf}, "kl.init must be at least 0 and finite, not inf"),
        ({"target": 0.0}, "kl.target must be above 0 and finite, not 0.0"),
        ({"target": math.nan}, "kl.target must be above 0 and finite, not nan"),
        ({"horizon": 0}, "kl.horizon must be at least 1, not 0"),
        ({"floor": -0.1}, "kl.floor must be at least 0 and finite, not -0.1"),
        ({"floor": math.nan}, "kl.floor must be at least 0 and finite, not nan"),
        ({"floor": 0.3}, r"kl.floor must be at most kl.init \(0.2\), not 0.3"),
    ],
)
def test_a_bad_setting_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}$"):
        replace(KlControl(), **changes)


def test_the_defaults_are_those_of_the_released_code_without_its_floor() -> None:
    assert KlControl() == KlControl(init=0.2, target=6.0, horizon=10000, floor=0.0, adaptive=True)
    assert KlControl(init=0.0).updated(0.0, 12.0, 384) == 0.0
