"""Finds times that run backwards."""

from __future__ import annotations

import polars as pl

from stripesim.traces.problems import FaultLog

BACKWARD_COUNT = "lines earlier than the line above"
"""Name in `BlockTrace.counts`, for formats that are published out of order."""


class ClockWatch:
    """Compares each row's time with that of the row above it, across the chunks of a file.

    Where rows are in order of time each step backwards is a fault, else it is counted. The row stays in the
    trace, which is sorted in the end. Comparing with the row above, not with the latest time so far, keeps
    one time far in the future from making faults of all that follow.
    """

    def __init__(self, log: FaultLog, *, ordered: bool) -> None:
        self._log = log
        self._ordered = ordered
        self._last_ns: int | None = None

    def check(self, times_ns: pl.Series, places: pl.Series) -> None:
        """Look at one chunk: times [ns] in file order, and the line or record of each."""
        if not len(times_ns):
            return
        above = times_ns.shift(1, fill_value=times_ns[0] if self._last_ns is None else self._last_ns)
        self._last_ns = int(times_ns[-1])
        back = times_ns < above
        if not back.any():
            return
        if not self._ordered:
            self._log.tally(BACKWARD_COUNT, int(back.sum()))
            return
        for place, step_ns in zip(places.filter(back), (above - times_ns).filter(back), strict=True):
            self._log.add(
                int(place),
                f"a time {step_ns / 1e9:.9f} s before that above",
                "times that do not run backwards",
            )
