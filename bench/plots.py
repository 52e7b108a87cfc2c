"""Learning curves as an SVG figure. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragtrials.curves import Curve, moving_average, window_of
from ragtrials.figures import DARK, PALE, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _PANEL_HEIGHT = 7.0, 2.6  # inches


def draw(curves: Sequence[Curve], title: str) -> bytes:
    """The curves below each other, each with its moving average, and its trend above it.

    Args:
        curves: One panel each, at least one.
        title: Stands above the figure.

    Returns:
        An SVG file.

    Raises:
        UserError: matplotlib is not installed.
    """

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(curves), squeeze=False)[:, 0]
        for axes, curve in zip(panels, curves, strict=True):
            _panel(axes, curve)

    return draw_svg(title, _WIDTH, 0.4 + _PANEL_HEIGHT * len(curves), paint)


def _panel(axes: Axes, curve: Curve) -> None:
    axes.plot(
        curve.steps, curve.values, color=PALE, linewidth=0.6, marker="o", markersize=2.2, label="each step"
    )
    window = window_of(len(curve.values))
    if means := moving_average(curve.values, window):
        middles = curve.steps[window // 2 : window // 2 + len(means)]
        axes.plot(middles, means, color=DARK, linewidth=1.6, label=f"mean of {window}")
    trend = curve.trend()
    axes.set_title(f"{curve.stage}: {trend.slope:+.3g} per step, p = {trend.p:.4f}", fontsize="medium")
    axes.set_xlabel("step")
    axes.set_ylabel(curve.scalar)
    axes.legend(frameon=False, fontsize="small")
