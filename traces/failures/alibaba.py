"""Alibaba's table of SSD failures (`ssd_failure_tag.csv`)."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.failures.columns import EVENT_SCHEMA, FailureTrace
from stripesim.traces.lines import split_lines
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import TraceSource

_NEEDED = ("model", "failure_time", "failure", "app", "disk_id", "node_id", "rack_id")
_WANTED = "YYYY-MM-DD hh:mm:ss and failure 1"


@dataclass(frozen=True)
class AlibabaSsdFormat:
    """Reader of the trouble tickets of failed SSDs.

    Notes
    -----
    A component is `model.disk_id` (a disk_id counts within its model), the reason is the application.
    The table holds failed drives only: a lifetime cannot be fitted to it, since neither the drives that
    lived nor the dates of installation are in it; rates need the population, which the publication gives
    as nearly one million.

    References
    ----------
    Han, Lee, Xu, Liu, He, Liu: An in-depth study of correlated failures in production SSD-based data centers,
    FAST 2021; alibaba-edu/dcbrain, ssd_open_data.
    """

    name: str = "alibaba-ssd"

    def sniff(self, lines: tuple[str, ...], data: bytes) -> bool:
        """Whether the heading has the table's columns."""
        return bool(lines) and set(_NEEDED) <= set(lines[0].strip().split(","))

    def read(self, source: TraceSource, log: FaultLog) -> FailureTrace:
        """Read the table."""
        columns: tuple[str, ...] | None = None
        parts = [pl.DataFrame(schema=EVENT_SCHEMA)]
        for block in source.blocks(log):
            if columns is None:
                first = block.lines()[0].strip()
                columns = tuple(first.split(","))
                missing = [name for name in _NEEDED if name not in columns]
                if missing or len(set(columns)) != len(columns):
                    log.add(1, shown(first), f"a heading with {', '.join(_NEEDED)}, no name twice")
                    break
            rows = split_lines(block, columns, ",", log, heading=lambda text: text.startswith("model,"))
            time = pl.col("failure_time").str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
            rows = rows.with_columns(time.dt.epoch("s").alias("time_s"))
            known = pl.col("time_s").is_not_null() & pl.col("failure").is_in(["0", "1"])
            known = known & pl.col("disk_id").is_not_null()
            mask = rows.select(known.fill_null(False).alias("known")).to_series()
            odd = rows.filter(~mask)
            log.add_lines(
                zip(odd[ORDER_COLUMN], odd["text"], strict=True), lambda text: (shown(text), _WANTED)
            )
            rows = rows.filter(mask)
            failed = rows["failure"] == "1"
            log.tally("healthy drives", int((~failed).sum()))
            parts.append(
                rows.filter(failed).select(
                    "time_s",
                    pl.concat_str("model", "disk_id", separator=".", ignore_nulls=True).alias("component"),
                    pl.col("node_id").alias("node"),
                    pl.col("rack_id").alias("rack"),
                    pl.lit(False).alias("up"),
                    pl.col("app").alias("reason"),
                )
            )
        events = pl.concat(parts).sort("time_s", maintain_order=True)
        return FailureTrace(events, None, self.name, str(source.path))
