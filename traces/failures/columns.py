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
