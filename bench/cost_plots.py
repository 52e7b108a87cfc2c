"""The points of a table as an SVG figure: score against what an answer costs. Needs the extra `plots`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrials.costs import KINDS, CostView
from ragtrials.figures import DARK, PALE, draw_svg
from ragtrials.label_placement import Box, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _PER_POINT = 10.0, 3.6, 0.09  # inches; a crowd of points gets a taller figure
_LABEL_SIZE, _GREY = 7.5, "#555555"
_AXES = {"retrievals": "retrieval calls per question", "tokens": "prompt tokens per question"}


def draw_costs(view: CostView, title: str, score: str, identifier: str) -> bytes:
    """One panel for each kind of cost: the points with their intervals and names, the front as a line.

    Args:
        view: The points, at least two.
        title: Stands above the figure.
        score: How the score is called.
        identifier: What tells which points these are; stands in the metadata.

    Returns:
        An SVG file.

    Raises:
        UserError: matplotlib is not installed.
    """

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(KINDS), sharey=True)
        for place, axes in enumerate(panels):
            _panel(axes, view, place)
        panels[0].set_ylabel(f"{score} (%), with 95 % interval")
        # Labels find their places on the finished layout, and do not change it.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for place, axes in enumerate(panels):
            _label(axes, view, place)

    return draw_svg(title, _WIDTH, _HEIGHT + _PER_POINT * len(view.points), paint, identifier)


def _panel(axes: Axes, view: CostView, place: int) -> None:
    kind, kept = KINDS[place], view.fronts[place]
    axes.plot(
        [view.points[i].costs[place] for i in kept],
        [100 * view.points[i].score.mean for i in kept],
        color=DARK,
        linewidth=1.0,
        zorder=1,
    )
    for index, point in enumerate(view.points):
        mean, low, high = (100 * value for value in (point.score.mean, point.score.low, point.score.high))
        color = DARK if index in kept else PALE
        # The ends are drawn, not distances from the mean: a mean may lie a rounding error outside.
        axes.vlines(point.costs[place], low, high, color=color, linewidth=0.8, zorder=2)
        axes.plot([point.costs[place]] * 2, [low, high], color=color, marker="_", linestyle="", zorder=2)
        axes.plot([point.costs[place]], [mean], color=color, marker="o", markersize=4.5, zorder=3)
    dearest = max(point.costs[place] for point in view.points) or 1.0
    axes.set_xlim(-0.08 * dearest, 1.3 * dearest)  # from nothing on, with room for names on both sides
    axes.margins(y=0.1)
    axes.set_xlabel(_AXES[kind.name])
    for axis, (lowest, highest) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        # Neither a cost nor a score is negative.
        axis.set_ticks([tick for tick in axis.get_ticklocs() if max(0, lowest) <= tick <= highest])


def _label(axes: Axes, view: CostView, place: int) -> None:
    at = [
        tuple(axes.transData.transform((point.costs[place], 100 * point.score.mean))) for point in view.points
    ]
    ends = [
        [
            axes.transData.transform((point.costs[place], 100 * end))[1]
            for end in (point.score.low, point.score.high)
        ]
        for point in view.points
    ]
    texts = [
        axes.annotate(
            point.name,
            (0, 0),
            xycoords="figure pixels",
            color=DARK if index in view.fronts[place] else _GREY,
            fontsize=_LABEL_SIZE,
            verticalalignment="bottom",
            annotation_clip=False,
            zorder=5,
        )
        for index, point in enumerate(view.points)
    ]
    sizes = [(extent.width + 2, extent.height) for extent in (text.get_window_extent() for text in texts)]
    frame = axes.get_window_extent()
    boxes = place_labels(
        at,
        sizes,
        Box(frame.x0 + 2, frame.y0 + 2, frame.x1, frame.y1),
        [Box(x - 3, y - 3, x + 3, y + 3) for x, y in at],
        [Box(x - 1, low, x + 1, high) for (x, _), (low, high) in zip(at, ends, strict=True)],
    )
    for text, box, (x, y) in zip(texts, boxes, at, strict=True):
        text.set_position((box.left + 1, box.bottom))
        near = (min(max(x, box.left), box.right), min(max(y, box.bottom), box.top))
        if (near[0] - x) ** 2 + (near[1] - y) ** 2 > 49:  # farther than a mark is wide: say whose label it is
            axes.annotate(
                "",
                near,
                (x, y),
                xycoords="figure pixels",
                textcoords="figure pixels",
                arrowprops={
                    "arrowstyle": "-",
                    "color": _GREY,
                    "linewidth": 0.5,
                    "shrinkA": 3,
                    "shrinkB": 0,
                },
                annotation_clip=False,
                zorder=4,
            )
