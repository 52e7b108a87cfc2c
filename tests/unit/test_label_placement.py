"""Labels of crowded points find places where they can be read."""

from __future__ import annotations

import random

from ragtrials.label_placement import Box, place_labels

AREA = Box(0.0, 0.0, 330.0, 260.0)


def around(points: list[tuple[float, float]]) -> list[Box]:
    return [Box(x - 3, y - 3, x + 3, y + 3) for x, y in points]


def test_boxes_share_what_both_cover() -> None:
    box = Box(0, 0, 4, 2)
    assert box.area == 8
    assert box.shared(Box(3, 1, 9, 9)) == 1
    assert box.shared(Box(4, 0, 5, 2)) == 0
    assert box.shared(Box(5, 5, 6, 6)) == 0  # apart in both directions: not the product of two gaps


def test_a_lone_label_stands_close_to_its_point_on_the_right() -> None:
    [box] = place_labels([(100.0, 100.0)], [(40.0, 10.0)], AREA, around([(100.0, 100.0)]))
    assert (box.left, box.bottom, box.right, box.top) == (105.0, 95.0, 145.0, 105.0)


def test_a_label_at_the_edge_turns_inwards() -> None:
    [box] = place_labels([(325.0, 100.0)], [(40.0, 10.0)], AREA, around([(325.0, 100.0)]))
    assert box.right < 325


def test_a_line_is_avoided_where_there_is_room() -> None:
    bar = Box(120.0, 0.0, 122.0, 260.0)
    [box] = place_labels([(100.0, 100.0)], [(40.0, 10.0)], AREA, around([(100.0, 100.0)]), [bar])
    assert box.shared(bar) == 0


def test_a_crowd_can_be_read() -> None:
    # Sixteen points in a corner of the area, as a sweep leaves them, several at the same place.
    generator = random.Random(0)
    points = [(200 + generator.uniform(0, 60), 180 + generator.uniform(0, 40)) for _ in range(14)]
    points += points[:2]
    sizes = [(generator.uniform(20, 90), 9.0) for _ in points]
    boxes = place_labels(points, sizes, AREA, around(points))
    assert boxes == place_labels(points, sizes, AREA, around(points))
    for i, box in enumerate(boxes):
        assert (round(box.right - box.left, 6), round(box.top - box.bottom, 6)) == (
            round(sizes[i][0], 6),
            9.0,
        )
        assert box.shared(AREA) > 0.99 * box.area
        assert sum(box.shared(other) for other in boxes[i + 1 :]) < 0.05 * box.area
