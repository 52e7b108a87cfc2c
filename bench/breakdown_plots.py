"""A breakdown as an SVG figure. Needs the extra `plots`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrials.breakdown import UNKNOWN, Breakdown
from ragtrials.figures import draw_svg
from ragtrials.scoring import COST_COLUMNS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _PANEL_HEIGHT = 7.0, 2.8  # inches
_COLOURS = ("#1f4e79", "#c2571a", "#3b7d3b", "#7a4b94", "#8a6d1d", "#555555")
_SPREAD = 0.5  # of the room between two groups, which the runs of a group share


def draw_breakdown(view: Breakdown, title: str) -> bytes:
    """One panel for each column: the means of the groups with their intervals, a colour for each run.

    A line joins the means where the field is a number: words have no order, and what is unknown no place.

    Raises:
        UserError: matplotlib is not installed.
    """
    columns = list(dict.fromkeys(series.column for series in view.series))

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(columns), squeeze=False, sharex=True)[:, 0]
        for axes, column in zip(panels, columns, strict=True):
            _panel(axes, view, column)
        panels[0].legend(frameon=False, fontsize="small")
        panels[-1].set_xlabel(view.field)
        panels[-1].set_xticks(range(len(view.groups)), [group.label for group in view.groups])
        panels[-1].tick_params(axis="x", rotation=35, labelsize="small")
        for label in panels[-1].get_xticklabels():
            label.set_horizontalalignment("right")

    return draw_svg(title, _WIDTH, 0.9 + _PANEL_HEIGHT * len(columns), paint)


def _panel(axes: Axes, view: Breakdown, column: str) -> None:
    series = [s for s in view.series if s.column == column]
    scale = 1 if column in COST_COLUMNS else 100
    ordered = sum(group.label != UNKNOWN for group in view.groups)
    for number, one in enumerate(series):
        shift = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        places = [place + shift for place in range(len(view.groups))]
        colour = _COLOURS[number % len(_COLOURS)]
        axes.vlines(
            places,
            [scale * value.low for value in one.values],
            [scale * value.high for value in one.values],
            color=colour,
            linewidth=0.8,
        )
        axes.plot(
            places,
            [scale * value.mean for value in one.values],
            color=colour,
            marker="o",
            markersize=3.5,
            linestyle="none",
            label=one.run,
        )
        if one.correlation:
            axes.plot(
                places[:ordered], [scale * v.mean for v in one.values[:ordered]], color=colour, linewidth=1.2
            )
    axes.set_ylabel(column if scale == 1 else f"{column} (%)")
    axes.set_ylim(bottom=0)
