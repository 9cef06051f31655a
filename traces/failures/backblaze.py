"""Read Backblaze drive stats with one row per drive and day: one CSV file per day, or days under one heading.

A component is `model.serial_number`. Node and rack are the pod and the vault, in files that have them. A
drive is up from its first day until the end of its last day in the file. The end of this span is observed if
that day reports a failure. Otherwise the span is censored, because the drive was removed or the file ends.
`entry_age_s` comes from SMART attribute 9 (power-on hours) on the first day. Rows are aggregated as they are
read, so memory grows with the number of drives, not of days.

References
----------
Backblaze, Hard Drive Data and Stats, section on the schema of the daily files.
"""

import polars as pl

from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.failures.columns import SPAN_SCHEMA, FailureTrace, events_of
from stripesim.traces.lines import has_columns, rows_under_heading, sound_rows
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import TraceFormat, TraceSource

DAY_S = 86400
_NEEDED = ("date", "serial_number", "model", "failure")
_EMPTY = dict.fromkeys((ORDER_COLUMN, "text", *_NEEDED), pl.String())
_HOURS_MAX = 10**6
_WANTED = "YYYY-MM-DD, a serial number, failure 0 or 1"


def _read(source: TraceSource, log: FaultLog) -> FailureTrace:
    budget = RowBudget(log.source, FAILURE_BYTES, "drives")
    drives = _days(pl.DataFrame(schema=_EMPTY), log)
    for rows in rows_under_heading(source, _NEEDED, log):
        drives = _joined(pl.concat([drives, _days(rows, log)]))
        budget.check(drives.height)
    return _trace(drives, source)


FORMAT = TraceFormat("backblaze", lambda head: has_columns(head, _NEEDED), _read)


def _days(rows: pl.DataFrame, log: FaultLog) -> pl.DataFrame:
    """Aggregate the days of each drive in a block into one row."""

    def optional(name: str) -> pl.Expr:
        if name in rows.columns:
            return pl.col(name)
        return pl.lit(None, pl.String)

    day_s = pl.col("date").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int64) * DAY_S
    hours = optional("smart_9_raw").cast(pl.Float64, strict=False)
    good = (
        (day_s >= 0)
        & pl.col("serial_number").is_not_null()
        & pl.col("failure").is_in(["0", "1"])
    )
    rows = sound_rows(rows, good, log, lambda text: (shown(text), _WANTED))
    log.tally("drive-days", rows.height)
    return _joined(
        rows.select(
            pl.concat_str(
                "model", "serial_number", separator=".", ignore_nulls=True
            ).alias("component"),
            optional("pod_id").alias("node"),
            optional("vault_id").alias("rack"),
            day_s.alias("first_s"),
            day_s.alias("last_s"),
            pl.when(pl.col("failure") == "1").then(day_s).alias("failed_s"),
            pl.when(hours.is_between(0, _HOURS_MAX)).then(hours).alias("hours"),
            pl.lit(1, pl.Int64).alias("days"),
        )
    )


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    return (
        rows.sort("first_s", maintain_order=True)
        .group_by("component", maintain_order=True)
        .agg(
            pl.col("node", "rack").last(),
            pl.col("first_s").min(),
            pl.col("last_s").max(),
            pl.col("failed_s").min(),
            # The age refers to the first day.
            pl.col("hours").first(),
            pl.col("days").sum(),
        )
    )


def _trace(drives: pl.DataFrame, source: TraceSource) -> FailureTrace:
    failed = pl.col("failed_s").is_not_null()
    stop = pl.when(failed).then(pl.col("failed_s")).otherwise(pl.col("last_s")) + DAY_S
    spans = drives.select(
        pl.col("first_s").alias("start_s"),
        stop.alias("stop_s"),
        "component",
        "node",
        "rack",
        pl.lit(True).alias("up"),
        pl.lit(None, pl.String).alias("reason"),
        pl.lit(True).alias("left_cut"),
        (~failed).alias("right_cut"),
        (pl.col("hours") * 3600).round().cast(pl.Int64).alias("entry_age_s"),
    ).select(SPAN_SCHEMA.keys())
    broken = spans.filter(~spans["right_cut"]).with_columns(
        pl.col("stop_s").alias("start_s"),
        pl.lit(False).alias("up"),
        pl.lit("failure").alias("reason"),
    )
    spans = spans.sort("start_s", maintain_order=True)
    events = pl.concat([events_of(spans), events_of(broken)]).sort(
        "time_s", maintain_order=True
    )
    return FailureTrace(
        events, spans, FORMAT.name, str(source.path), drives.height or None
    )
