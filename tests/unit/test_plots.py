"""Learning curves as SVG figures."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ragtrials.curves import Curve
from ragtrials.errors import UserError
from ragtrials.plots import draw

SVG = "{http://www.w3.org/2000/svg}"


def rising(stage: str, scalar: str, count: int) -> Curve:
    generator = random.Random(count)
    steps = tuple(range(1, count + 1))
    return Curve(stage, scalar, steps, tuple(0.01 * step + generator.gauss(0, 0.1) for step in steps))


CURVES = [rising("ppo", "reward", 60), rising("ppo", "cost_in_$_or_$", 4)]


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_panel_has_its_title_axes_and_trend() -> None:
    pytest.importorskip("matplotlib")
    shown = texts(draw(CURVES, "mmoa_rag on geo_hop, seed 0"))
    assert shown.count("mmoa_rag on geo_hop, seed 0") == 1
    assert shown.count("step") == 2
    assert {"reward", "cost_in_$_or_$"} <= set(shown)  # as they are called, no formula made of them
    trend = CURVES[0].trend()
    assert f"ppo: {trend.slope:+.3g} per step, p = {trend.p:.4f}" in shown


def test_a_curve_too_short_for_a_moving_average_has_none() -> None:
    pytest.importorskip("matplotlib")
    assert "mean of 7" in texts(draw(CURVES[:1], "long"))
    assert not [text for text in texts(draw(CURVES[1:], "short")) if text.startswith("mean of")]


def test_every_value_is_a_dot() -> None:
    pytest.importorskip("matplotlib")

    def dots(count: int) -> int:
        figure = ElementTree.fromstring(draw([rising("ppo", "reward", count)], "dots"))
        # Marks of an axis are repeated too, so only groups with a mark per value are looked at.
        return max(len(list(group.findall(f"{SVG}use"))) for group in figure.iter(f"{SVG}g"))

    assert (dots(60), dots(75)) == (60, 75)


def test_the_same_curves_are_the_same_bytes_in_another_process_with_other_settings(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nsvg.fonttype: path\nlines.linewidth: 9\n")
    code = (
        "import sys; from test_plots import CURVES; from ragtrials.plots import draw\n"
        "sys.stdout.buffer.write(draw(CURVES, 'again')); assert 'matplotlib.pyplot' not in sys.modules"
    )
    setting = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parent), "MATPLOTLIBRC": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **setting}, capture_output=True, check=True
    )
    assert done.stdout == draw(CURVES, "again")
    assert b"dc:date" not in done.stdout
    assert done.stdout != draw(CURVES[:1], "again")


def test_settings_of_the_caller_are_left_alone() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    draw(CURVES, "title")
    assert dict(matplotlib.rcParams) == before


def test_a_constant_and_a_single_value_are_drawn() -> None:
    pytest.importorskip("matplotlib")
    flat = Curve("sft", "loss", tuple(range(1, 9)), (2.0,) * 8)
    shown = texts(draw([flat, Curve("sft", "eval_loss", (5,), (1.5,))], "title"))
    assert shown.count("sft: +0 per step, p = 1.0000") == 2


def test_without_matplotlib_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'ragtrials\[plots\]'"):
        draw(CURVES, "title")
