"""Datasets of the Hugging Face hub, read through `datasets` at a pinned revision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragtrials.errors import UserError
from ragtrials.records import Record


def read_hub(
    dataset: str, config: str, split: str, revision: str, rows: int, instead: str
) -> Iterator[Record]:
    """The rows of one split, in order.

    Args:
        dataset: The hub's id, e.g. "hotpotqa/hotpot_qa".
        config: The dataset's configuration.
        split: The split's name on the hub.
        revision: The commit that is read; never a branch.
        rows: How many rows the split has at that commit.
        instead: Where to put a local file, for the error that says the hub cannot be used.

    Raises:
        UserError: `datasets` is not installed, the hub cannot be reached, or the split has another size.
    """
    try:
        import datasets
    except ImportError as error:
        raise UserError(
            f"reading {dataset} from the hub needs `pip install 'ragtrials[hub]'`; or {instead}"
        ) from error
    try:
        table = datasets.load_dataset(dataset, config, split=split, revision=revision)
    except (OSError, datasets.exceptions.DatasetsError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{dataset} cannot be fetched from the hub ({reason}); {instead}") from error
    place = Path(f"{dataset}@{revision[:7]}") / config / split
    if len(table) != rows:
        raise UserError(f"{place}: {len(table)} rows instead of {rows}: clear the hub's cache, or {instead}")
    for number, row in enumerate(table, start=1):
        yield Record(row, place, number)
