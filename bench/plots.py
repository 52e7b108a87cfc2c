"""Learning curves as an SVG figure. This module alone needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from ragtrials.curves import Curve, moving_average, window_of
from ragtrials.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE = {
    "svg.hashsalt": "ragtrials",  # ids of elements are drawn at random without one
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_WIDTH, _PANEL_HEIGHT = 7.0, 2.6  # inches
_RAW, _MEAN = "#9db4c8", "#1f4e79"


def draw(curves: Sequence[Curve], title: str) -> bytes:
    """The curves below each other, each with its moving average, and its trend above it.

    The same curves, title and version of matplotlib give the same bytes, whatever a user's own matplotlib
    settings are.

    Args:
        curves: One panel each, at least one.
        title: Stands above the figure.

    Returns:
        An SVG file.

    Raises:
        UserError: matplotlib is not installed.
    """
    try:
        from matplotlib import style
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("drawing curves needs matplotlib: pip install 'ragtrials[plots]'") from error

    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(_WIDTH, 0.4 + _PANEL_HEIGHT * len(curves)), layout="constrained")
        figure.suptitle(title)
        panels = figure.subplots(len(curves), squeeze=False)[:, 0]
        for axes, curve in zip(panels, curves, strict=True):
            _panel(axes, curve)
        file = BytesIO()
        FigureCanvasSVG(figure)  # the figure's canvas from now on: pyplot and displays play no part
        about = {"Title": title, "Creator": "ragtrials", "Date": None}
        figure.savefig(file, format="svg", metadata=about)
    return file.getvalue()


def _panel(axes: Axes, curve: Curve) -> None:
    axes.plot(
        curve.steps, curve.values, color=_RAW, linewidth=0.6, marker="o", markersize=2.2, label="each step"
    )
    window = window_of(len(curve.values))
    if means := moving_average(curve.values, window):
        middles = curve.steps[window // 2 : window // 2 + len(means)]
        axes.plot(middles, means, color=_MEAN, linewidth=1.6, label=f"mean of {window}")
    trend = curve.trend()
    axes.set_title(f"{curve.stage}: {trend.slope:+.3g} per step, p = {trend.p:.4f}", fontsize="medium")
    axes.set_xlabel("step")
    axes.set_ylabel(curve.scalar)
    axes.legend(frameon=False, fontsize="small")
