"""Define the common form of all failure traces: events, and spans of being up or down."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from stripesim.traces.problems import Faults

EVENT_SCHEMA: dict[str, pl.DataType] = {
    "time_s": pl.Int64(),
    "component": pl.String(),
    "node": pl.String(),
    "rack": pl.String(),
    "up": pl.Boolean(),
    "reason": pl.String(),
}
"""Columns of `FailureTrace.events`, one row per change of state, sorted by `time_s`."""

SPAN_SCHEMA: dict[str, pl.DataType] = {
    "start_s": pl.Int64(),
    "stop_s": pl.Int64(),
    "component": pl.String(),
    "node": pl.String(),
    "rack": pl.String(),
    "up": pl.Boolean(),
    "reason": pl.String(),
    "left_cut": pl.Boolean(),
    "right_cut": pl.Boolean(),
    "entry_age_s": pl.Int64(),
}
"""Columns of `FailureTrace.spans`, sorted by `start_s`."""

YEAR_S = 365.25 * 86400
HOUR_S = 3600.0


@dataclass(frozen=True)
class FailureTrace:
    """A record of failures over time, as `stripesim.load_trace` returns it. Its length counts events.

    Attributes
    ----------
    events
        One row per change of a state: ``time_s`` (seconds like Unix time; some sources use local time),
        ``component`` (the part that fails), ``node`` (its location), ``rack`` (the smallest group above the
        node in the source: rack, cluster or system), ``up`` (the new state), ``reason`` (for going down, in
        the source's words). Unknown cells are null.
    spans
        Periods of one state from ``start_s`` to ``stop_s``. ``left_cut``: it started before the record.
        ``right_cut``: its end was not observed. ``entry_age_s``: age of the component at the start, if
        recorded. None if the source records only failures.
    format
        Format that the file was read as.
    source
        Name of the file.
    population
        Number of observed components, including those that never failed, or None if unknown.
    faults
        Faults of the file.
    counts
        Numbers of lines that are not events.
    """

    events: pl.DataFrame
    spans: pl.DataFrame | None
    format: str
    source: str
    population: int | None = None
    faults: Faults = field(default_factory=Faults)
    counts: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.events.height


def events_of(spans: pl.DataFrame) -> pl.DataFrame:
    """Return the events that start spans. Spans cut on the left give the initial states."""
    return spans.select(
        pl.col("start_s").alias("time_s"), *list(EVENT_SCHEMA)[1:]
    ).sort("time_s", maintain_order=True)


def outages_of(trace: FailureTrace) -> pl.DataFrame:
    """Return the outages of a trace in order of their start, in whole seconds after its first event.

    Without spans, an outage lasts from an event that a component is down to the next that it is up.

    Returns
    -------
    polars.DataFrame
        Columns ``component``, ``node``, ``start_s`` and ``stop_s``, which is null for an outage whose end
        was not observed.
    """
    if trace.spans is not None:
        first_s = trace.spans["start_s"].min()
        is_seen = ~trace.spans["right_cut"]
        spans = trace.spans.with_columns(pl.when(is_seen).then("stop_s"))
    else:
        first_s = trace.events["time_s"].min()
        is_change = pl.col("up").ne_missing(pl.col("up").shift(1)).over("component")
        next_s = pl.col("start_s").shift(-1).over("component")
        starts = trace.events.rename({"time_s": "start_s"}).filter(is_change)
        spans = starts.with_columns(next_s.alias("stop_s"))
    down = spans.filter(~spans["up"])
    return down.select(
        "component", "node", pl.col("start_s") - first_s, pl.col("stop_s") - first_s
    )
