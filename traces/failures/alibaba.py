"""Read Alibaba's table of SSD failures (`ssd_failure_tag.csv`), the trouble tickets of failed SSDs.

A component is `model.disk_id` (a disk_id is unique within its model), and the reason is the application. The
table contains only failed drives, without surviving drives and dates of installation, so lifetimes cannot be
fitted. Rates need the population, which the publication states as nearly one million.

References
----------
Han, Lee, Xu, Liu, He, Liu: An in-depth study of correlated failures in production SSD-based data centers,
FAST 2021; alibaba-edu/dcbrain, ssd_open_data.
"""

import polars as pl

from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.failures.columns import EVENT_SCHEMA, FailureTrace
from stripesim.traces.lines import has_columns, rows_under_heading, sound_rows
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import TraceFormat, TraceSource

_NEEDED = ("model", "failure_time", "failure", "app", "disk_id", "node_id", "rack_id")
_WANTED = "YYYY-MM-DD hh:mm:ss and failure 1"


def _read(source: TraceSource, log: FaultLog) -> FailureTrace:
    budget = RowBudget(log.source, FAILURE_BYTES, "events")
    parts = [pl.DataFrame(schema=EVENT_SCHEMA)]
    for table in rows_under_heading(source, _NEEDED, log):
        budget.add(table.height)
        time = pl.col("failure_time").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
        rows = table.with_columns(time.dt.epoch("s").alias("time_s"))
        known = pl.col("time_s").is_not_null() & pl.col("failure").is_in(["0", "1"])
        known = known & pl.col("disk_id").is_not_null()
        rows = sound_rows(rows, known, log, lambda text: (shown(text), _WANTED))
        failed = rows["failure"] == "1"
        log.tally("healthy drives", int((~failed).sum()))
        parts.append(
            rows.filter(failed).select(
                "time_s",
                pl.concat_str(
                    "model", "disk_id", separator=".", ignore_nulls=True
                ).alias("component"),
                pl.col("node_id").alias("node"),
                pl.col("rack_id").alias("rack"),
                pl.lit(False).alias("up"),
                pl.col("app").alias("reason"),
            )
        )
    events = pl.concat(parts).sort("time_s", maintain_order=True)
    return FailureTrace(events, None, FORMAT.name, str(source.path))


FORMAT = TraceFormat("alibaba-ssd", lambda head: has_columns(head, _NEEDED), _read)
