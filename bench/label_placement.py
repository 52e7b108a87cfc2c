"""Where the labels of crowded points go, so that each can be read: plain geometry, nothing is drawn here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_DISTANCES = (5.0, 11.0, 19.0, 29.0, 41.0, 56.0, 74.0, 95.0)
_DIRECTIONS = tuple(
    math.radians(degrees) for degrees in (0, 180, 90, 270, 45, 315, 135, 225, 22, 338, 158, 202)
)
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, from its lower left to its upper right corner."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.top - self.bottom)

    def shared(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    area: Box,
    marks: Sequence[Box],
    lines: Sequence[Box] = (),
) -> list[Box]:
    """A place for each label near its point: off the other labels and the marks, inside the area.

    Labels are placed one after the other where they cover least, then moved again with all others in place.
    The same input gives the same places.

    Args:
        points: Where the labelled points stand.
        sizes: Width and height of each label.
        area: What a label should stay in.
        marks: What a label should not cover, the points' own marks for example.
        lines: What a label may cover where there is no better place.

    Returns:
        The box of each label.
    """
    placed: dict[int, Box] = {}
    order = sorted(range(len(points)), key=lambda i: (points[i], i))
    for _ in range(_ROUNDS):
        for index in order:
            others = [box for other, box in placed.items() if other != index]
            placed[index] = min(
                _candidates(points[index], sizes[index]),
                key=lambda found: _cost(found[0], found[1], others, area, marks, lines),
            )[1]
    return [placed[index] for index in range(len(points))]


def _candidates(point: tuple[float, float], size: tuple[float, float]) -> list[tuple[float, Box]]:
    """Boxes around a point with their distance from it, the nearest and most usual first."""
    found = []
    for distance in _DISTANCES:
        for angle in _DIRECTIONS:
            x = point[0] + math.cos(angle) * (distance + size[0] / 2)
            y = point[1] + math.sin(angle) * (distance + size[1] / 2)
            box = Box(x - size[0] / 2, y - size[1] / 2, x + size[0] / 2, y + size[1] / 2)
            found.append((distance, box))
    return found


def _cost(
    distance: float,
    box: Box,
    others: Sequence[Box],
    area: Box,
    marks: Sequence[Box],
    lines: Sequence[Box],
) -> float:
    """How bad a place is: a label half covered weighs more than any distance."""
    covered = sum(box.shared(other) for other in others) / box.area
    outside = 1.0 - box.shared(area) / box.area
    hidden = sum(box.shared(mark) / mark.area for mark in marks)
    crossed = sum(box.shared(line) / box.area for line in lines)
    return 40.0 * covered + 40.0 * outside + 10.0 * hidden + 4.0 * crossed + 0.02 * distance
