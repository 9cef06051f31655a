"""The one form that every failure trace is read into: events, and spans of being up or down."""

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
    """A record of what failed when."""

    #: `time_s` (Unix-like seconds; some sources hold local time), `component` (what fails), `node` (where it
    #: sits), `rack` (the smallest group above the node that the source tells: rack, cluster or system), `up`
    #: (state from then on), `reason` (of going down, in the source's words). Unknown cells are null.
    events: pl.DataFrame
    #: Times of one state: from `start_s` to `stop_s`. `left_cut`: it had begun before the record did;
    #: `right_cut`: its end was not seen. `entry_age_s`: age of the component at the start, where recorded.
    #: None where the source tells failures alone.
    spans: pl.DataFrame | None
    #: `format`, `source`: how it was read, and from what file
    format: str
    source: str
    #: Number of components watched, including those that never failed; None if the source does not say
    population: int | None = None
    faults: Faults = field(default_factory=Faults)  #: Faults of the file
    counts: Mapping[str, int] = field(
        default_factory=dict
    )  #: Counts of lines that are not events

    def __len__(self) -> int:
        return self.events.height


def events_of(spans: pl.DataFrame) -> pl.DataFrame:
    """Return the events that begin spans; one cut on the left gives the state at the start of the record."""
    return spans.select(
        pl.col("start_s").alias("time_s"), *list(EVENT_SCHEMA)[1:]
    ).sort("time_s", maintain_order=True)
