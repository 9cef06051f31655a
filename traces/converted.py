"""Read tables that `trace convert` wrote as CSV or Parquet, in bounded slices of valid rows."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stripesim.models.problems import TraceError, first_problem
from stripesim.traces.budget import RowBudget
from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.lines import has_columns, rows_under_heading
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import Head, TraceSource

PARQUET_MAGIC = b"PAR1"
SLICE_ROWS = 1 << 20

_STDERR = 2
# Damaged files make Polars panic, and a panic is not an Exception.
_BROKEN = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


@dataclass(frozen=True)
class ConvertedLayout:
    """The layout of a converted trace: its columns, and the check for a row."""

    schema: dict[str, pl.DataType]
    needed: tuple[str, ...]  #: Required columns. Others become null if missing.
    sound: pl.Expr  #: True for a valid row
    wanted: str  #: Description of a valid row for messages
    row_bytes: int  #: Memory of one row [B]

    def recognises(self, head: Head) -> bool:
        """Return True if a file is such a table."""
        if head.data.startswith(PARQUET_MAGIC):
            return set(self.needed) <= set(parquet_columns(head.path))
        return has_columns(head, self.needed)

    def rows(self, source: TraceSource, log: FaultLog) -> Iterator[pl.DataFrame]:
        """Yield the valid rows with the columns of `schema` and `ORDER_COLUMN`, and report the others.

        Raises
        ------
        TraceError
            If a Parquet file is damaged, lacks a column, or its rows do not fit into memory.
        """
        if source.head().data.startswith(PARQUET_MAGIC):
            log.unit = "row"
            parts = self._parquet_rows(source.path)
        else:
            parts = self._text_rows(source, log)
        needed = pl.all_horizontal(pl.col(name).is_not_null() for name in self.needed)
        for part in parts:
            mask = part.select((needed & self.sound).fill_null(False)).to_series()
            odd = part.filter(~mask)
            texts = odd["text"] if "text" in odd.columns else map(str, odd.iter_rows())
            log.add_lines(zip(odd[ORDER_COLUMN], texts, strict=True), self._explain)
            yield part.filter(mask).select(ORDER_COLUMN, *self.schema)

    def _text_rows(self, source: TraceSource, log: FaultLog) -> Iterator[pl.DataFrame]:
        """Yield typed rows. A cell of another type makes the row's first column null and the row invalid."""
        typed = {name: _typed(name, dtype) for name, dtype in self.schema.items()}
        spoiled = pl.any_horizontal(
            pl.col(name).is_not_null() & cell.is_null() for name, cell in typed.items()
        )
        first = self.needed[0]
        typed[first] = pl.when(~spoiled).then(typed[first])
        for rows in rows_under_heading(source, self.needed, log, quoted=True):
            absent = [name for name in self.schema if name not in rows.columns]
            nulls = [pl.lit(None, pl.String).alias(name) for name in absent]
            yield rows.with_columns(nulls).with_columns(**typed)

    def _parquet_rows(self, path: Path) -> Iterator[pl.DataFrame]:
        try:
            with _without_panic_messages():
                frame = pl.scan_parquet(path)
                present = frame.collect_schema()
                count = int(frame.select(pl.len()).collect().item())
            self._check_types(path, present)
            RowBudget(str(path), self.row_bytes, "rows").check(count)
            known = frame.select(
                (pl.col(name) if name in present else pl.lit(None, dtype)).alias(name)
                for name, dtype in self.schema.items()
            )
            for first in range(0, count, SLICE_ROWS):
                with _without_panic_messages():
                    part = known.slice(first, SLICE_ROWS).collect()
                numbers = pl.int_range(first + 1, first + 1 + part.height)
                yield part.with_columns(numbers.alias(ORDER_COLUMN))
        except _BROKEN as error:
            reason = first_problem(error)
            raise TraceError(
                f"{path}: got {shown(reason)}, wanted a complete Parquet file"
            ) from None

    def _check_types(self, path: Path, present: pl.Schema) -> None:
        missing = [name for name in self.needed if name not in present]
        if missing:
            raise TraceError(
                f"{path}: got no column {', '.join(missing)}, wanted {', '.join(self.needed)}"
            )
        for name, dtype in self.schema.items():
            if name in present and present[name] not in (dtype, pl.Null()):
                raise TraceError(
                    f"{path}: {name}: got a column of {shown(str(present[name]))}, wanted {dtype}"
                )

    def _explain(self, text: str) -> tuple[str, str]:
        return shown(text), self.wanted


def parquet_columns(path: Path) -> list[str]:
    """Return the column names of a Parquet file, none if it cannot be read."""
    try:
        with _without_panic_messages():
            return pl.scan_parquet(path).collect_schema().names()
    except _BROKEN:
        return []


@contextmanager
def _without_panic_messages() -> Iterator[None]:
    """Discard standard error, where Rust reports a panic that Polars raises as well."""
    sys.stderr.flush()
    own = os.dup(_STDERR)
    with open(os.devnull, "wb") as sink:
        os.dup2(sink.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(own, _STDERR)
        os.close(own)


def _typed(name: str, dtype: pl.DataType) -> pl.Expr:
    cell = pl.col(name)
    if dtype != pl.Boolean():
        return cell.cast(dtype, strict=False)
    word = cell.str.to_lowercase()
    truth = word.is_in(["true", "1"])
    return pl.when(truth | word.is_in(["false", "0"])).then(truth)
