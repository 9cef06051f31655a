"""Parquet files that `trace convert` writes, read in bounded slices; places in faults are rows."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stripesim.traces.budget import RowBudget
from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.problems import TraceError, shown
from stripesim.traces.source import Head

MAGIC = b"PAR1"
SLICE_ROWS = 1 << 20

Schema = dict[str, pl.DataType]

# A damaged file makes Polars panic, and a panic is not an Exception.
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


def is_parquet(head: Head, needed: tuple[str, ...]) -> bool:
    """Return whether a file is Parquet, not compressed as a whole, and has these columns."""
    return head.data.startswith(MAGIC) and set(needed) <= set(
        parquet_columns(head.path)
    )


def parquet_columns(path: Path) -> list[str]:
    """Return the names of a Parquet file's columns; none where it cannot be read."""
    try:
        return pl.scan_parquet(path).collect_schema().names()
    except _BROKEN:
        return []


def parquet_slices(
    path: Path, schema: Schema, needed: tuple[str, ...], budget: RowBudget
) -> Iterator[pl.DataFrame]:
    """Yield the rows with the columns of `schema`, numbered from 1; columns that are missing are null.

    Raises
    ------
    TraceError
        When the file is damaged, a column is missing or of another type, or its rows do not fit in memory.
    """
    try:
        frame = pl.scan_parquet(path)
        present = frame.collect_schema()
        _check_types(path, present, schema, needed)
        rows = int(frame.select(pl.len()).collect().item())
        budget.check(rows)
        known = frame.select(
            (pl.col(name) if name in present else pl.lit(None, dtype)).alias(name)
            for name, dtype in schema.items()
        )
        for first in range(0, rows, SLICE_ROWS):
            part = known.slice(first, SLICE_ROWS).collect()
            number = pl.int_range(first + 1, first + 1 + part.height, dtype=pl.Int64)
            yield part.with_columns(number.alias(ORDER_COLUMN))
    except _BROKEN as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(
            f"{path}: got {shown(reason)}, wanted a complete Parquet file"
        ) from None


def _check_types(
    path: Path, present: pl.Schema, schema: Schema, needed: tuple[str, ...]
) -> None:
    missing = [name for name in needed if name not in present]
    if missing:
        raise TraceError(
            f"{path}: got no column {', '.join(missing)}, wanted {', '.join(needed)}"
        )
    for name, dtype in schema.items():
        if name in present and present[name] not in (dtype, pl.Null()):
            raise TraceError(
                f"{path}: {name}: got a column of {shown(str(present[name]))}, wanted {dtype}"
            )
