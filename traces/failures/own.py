"""Failure traces that `trace convert` wrote: events, and spans in a file next to them, as CSV or Parquet."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.failures.columns import EVENT_SCHEMA, SPAN_SCHEMA, FailureTrace
from stripesim.traces.lines import has_columns, rows_under_heading, sound_rows
from stripesim.traces.parquet import Schema, is_parquet, parquet_slices
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import TraceFormat, TraceSource, companion

SECONDS_MAX = 1 << 40
"""Later than any clock shows; larger numbers are damage."""

_EVENT_NEEDED = ("time_s", "component", "up")
_SPAN_NEEDED = ("start_s", "stop_s", "component", "up", "left_cut", "right_cut")
_WANTED = f"{', '.join(_EVENT_NEEDED)} (spans: {', '.join(_SPAN_NEEDED)}), times below 2**40 s in order"

_Reader = Callable[[Path, Schema, tuple[str, ...], FaultLog], Iterator[pl.DataFrame]]


def _csv_rows(
    path: Path, schema: Schema, needed: tuple[str, ...], log: FaultLog
) -> Iterator[pl.DataFrame]:
    typed = {name: _typed(name, dtype) for name, dtype in schema.items()}
    spoiled = pl.any_horizontal(
        pl.col(name).is_not_null() & cell.is_null() for name, cell in typed.items()
    )
    for rows in rows_under_heading(TraceSource(path), needed, log, quoted=True):
        absent = [name for name in schema if name not in rows.columns]
        cells = rows.with_columns(pl.lit(None, pl.String).alias(n) for n in absent)
        yield sound_rows(cells, ~spoiled, log, _explain).with_columns(**typed)


def _parquet_rows(
    path: Path, schema: Schema, needed: tuple[str, ...], log: FaultLog
) -> Iterator[pl.DataFrame]:
    log.unit = "row"
    budget = RowBudget(log.source, FAILURE_BYTES, "rows")
    for rows in parquet_slices(path, schema, needed, budget):
        cells = pl.concat_str(pl.all().cast(pl.String).fill_null(""), separator=",")
        yield rows.with_columns(cells.alias("text"))


def _typed(name: str, dtype: pl.DataType) -> pl.Expr:
    cell = pl.col(name)
    if dtype == pl.Boolean():
        return pl.when(cell.is_in(["true", "false"])).then(cell == "true")
    return cell.cast(dtype, strict=False)


def _table(
    path: Path, schema: Schema, needed: tuple[str, ...], rows_of: _Reader, log: FaultLog
) -> pl.DataFrame:
    """Return the sound rows of one file, in order of time."""
    budget = RowBudget(log.source, FAILURE_BYTES, "rows")
    times = [pl.col(name) for name in needed if name.endswith("_s")]
    sound = pl.all_horizontal(pl.col(name).is_not_null() for name in needed)
    sound &= pl.all_horizontal(t.is_between(-SECONDS_MAX, SECONDS_MAX) for t in times)
    sound &= times[0] <= times[-1]
    if "entry_age_s" in schema:
        age = pl.col("entry_age_s")
        sound &= age.is_null() | age.is_between(0, SECONDS_MAX)
    parts = [pl.DataFrame(schema=schema)]
    for rows in rows_of(path, schema, needed, log):
        budget.add(rows.height)
        parts.append(sound_rows(rows, sound, log, _explain).select(schema.keys()))
    return pl.concat(parts).sort(needed[0], maintain_order=True)


def _explain(text: str) -> tuple[str, str]:
    return shown(text), _WANTED


def _trace(
    source: TraceSource, log: FaultLog, name: str, rows_of: _Reader
) -> FailureTrace:
    events = _table(source.path, EVENT_SCHEMA, _EVENT_NEEDED, rows_of, log)
    beside = companion(source.path, "spans")
    spans = None
    if beside.exists():
        span_log = FaultLog(str(beside))
        spans = _table(beside, SPAN_SCHEMA, _SPAN_NEEDED, rows_of, span_log)
        log.extend(span_log)
    return FailureTrace(events, spans, name, str(source.path))


CSV_FORMAT = TraceFormat(
    "events-csv",
    lambda head: has_columns(head, _EVENT_NEEDED),
    lambda source, log: _trace(source, log, "events-csv", _csv_rows),
)
PARQUET_FORMAT = TraceFormat(
    "events-parquet",
    lambda head: is_parquet(head, _EVENT_NEEDED),
    lambda source, log: _trace(source, log, "events-parquet", _parquet_rows),
)
