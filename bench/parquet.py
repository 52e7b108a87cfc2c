"""Columns of parquet files, with what can go wrong in one line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrials.errors import UserError

if TYPE_CHECKING:
    import polars


def encoded(table: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]]) -> bytes:
    """A parquet file of rows, or of columns by name."""
    import polars

    buffer = io.BytesIO()
    polars.DataFrame(table, infer_schema_length=None).write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def read_columns(path: Path, columns: Sequence[str], remedy: str) -> polars.DataFrame:
    """Some columns of a parquet file.

    Args:
        path: The file.
        columns: Their names.
        remedy: What to do if the file cannot be read, for the error.

    Raises:
        UserError: There is no such file, it is damaged, or it lacks one of the columns.
    """
    import polars

    failures = (OSError, polars.exceptions.PolarsError, polars.exceptions.PanicException)
    try:
        return polars.read_parquet(path, columns=list(columns))
    except polars.exceptions.ColumnNotFoundError as error:
        raise UserError(f"{path} lacks one of the columns {', '.join(columns)}; {remedy}") from error
    except failures as error:  # damaged bytes make polars panic, which is no PolarsError
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: cannot be read ({reason}); {remedy}") from error
