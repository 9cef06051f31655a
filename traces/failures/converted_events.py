"""Read failure traces that `trace convert` wrote as CSV or Parquet, with spans in a companion file."""

import polars as pl

from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.converted import ConvertedLayout
from stripesim.traces.failures.columns import EVENT_SCHEMA, SPAN_SCHEMA, FailureTrace
from stripesim.traces.problems import FaultLog
from stripesim.traces.source import TraceFormat, TraceSource, companion

SECONDS_MAX = 1 << 40
"""Limit beyond the time on any clock. Larger numbers are treated as damage."""

_SECONDS = {"time_s": -SECONDS_MAX, "start_s": -SECONDS_MAX, "entry_age_s": 0}


def _layout(
    schema: dict[str, pl.DataType], needed: tuple[str, ...], order: pl.Expr
) -> ConvertedLayout:
    bounded = [
        pl.col(name).is_null() | pl.col(name).is_between(least, SECONDS_MAX)
        for name, least in _SECONDS.items()
        if name in schema
    ]
    return ConvertedLayout(
        schema=schema,
        needed=needed,
        sound=pl.all_horizontal(order, *bounded),
        wanted=f"{', '.join(needed)}: times below 2**40 s, a stop not before its start, true or false",
        row_bytes=FAILURE_BYTES,
    )


_EVENTS = _layout(EVENT_SCHEMA, ("time_s", "component", "up"), pl.lit(True))
_SPANS = _layout(
    SPAN_SCHEMA,
    ("start_s", "stop_s", "component", "up", "left_cut", "right_cut"),
    pl.col("stop_s").is_between("start_s", SECONDS_MAX),
)


def _read(source: TraceSource, log: FaultLog) -> FailureTrace:
    events = _sorted_rows(_EVENTS, source, log)
    beside = TraceSource(companion(source.path, "spans"))
    spans = None
    if beside.path.exists():
        span_log = FaultLog(str(beside.path))
        spans = _sorted_rows(_SPANS, beside, span_log)
        log.extend(span_log)
    return FailureTrace(events, spans, FORMAT.name, str(source.path))


FORMAT = TraceFormat("events", _EVENTS.recognises, _read)


def _sorted_rows(
    layout: ConvertedLayout, source: TraceSource, log: FaultLog
) -> pl.DataFrame:
    budget = RowBudget(str(source.path), FAILURE_BYTES, "events or spans")
    parts = [pl.DataFrame(schema=layout.schema)]
    for rows in layout.rows(source, log):
        budget.add(rows.height)
        parts.append(rows.select(layout.schema.keys()))
    return pl.concat(parts).sort(layout.needed[0], maintain_order=True)
