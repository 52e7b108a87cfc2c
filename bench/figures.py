"""What all figures share: one look, and SVG files of the same bytes each time. Needs the extra `plots`."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

from ragtrials.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = {
    "svg.hashsalt": "ragtrials",  # ids of elements are drawn at random without one
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
PALE, DARK = "#9db4c8", "#1f4e79"
POINTS_PER_INCH = 72.0


def draw_svg(
    title: str, width: float, height: float, paint: Callable[[Figure], None], identifier: str | None = None
) -> bytes:
    """A figure as an SVG file.

    The same figure and version of matplotlib give the same bytes, whatever a user's own matplotlib
    settings are.

    Args:
        title: Stands above the figure and in its metadata.
        width: Inches. A pixel of the figure is a point.
        height: Inches.
        paint: Draws into the empty figure.
        identifier: Stands in the metadata (`dc:identifier`).

    Raises:
        UserError: matplotlib is not installed.
    """
    try:
        from matplotlib import style
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError("drawing needs matplotlib: pip install 'ragtrials[plots]'") from error

    about = {"Title": title, "Creator": "ragtrials", "Date": None}
    if identifier is not None:
        about["Identifier"] = identifier
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(width, height), dpi=POINTS_PER_INCH, layout="constrained")
        FigureCanvasSVG(figure)  # the figure's canvas from now on: pyplot and displays play no part
        figure.suptitle(title)
        paint(figure)
        file = BytesIO()
        figure.savefig(file, format="svg", metadata=about)
    return file.getvalue()
