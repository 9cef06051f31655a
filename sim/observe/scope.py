"""Scope of a result row: the workloads of a run, their requests, and the part of the run to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.window import OfferedLoad, Window

if TYPE_CHECKING:
    from stripesim.sim.ceph.planner import Foreground


@dataclass(frozen=True, kw_only=True)
class WorkloadRun:
    """Issue, completion and failure of the requests of one workload.

    Attributes
    ----------
    sources
        Its streams.
    requested
        The requests of all its clients.
    first
        The requests of its first stream.
    counted
        Counters of its requests, and of those that they spawned.
    is_closed
        True if clients keep requests in flight, False if they issue them at given times.
    is_drawn
        True if each request is an independent draw.
    is_synthetic
        False for a trace.
    dry_ns
        Time when the first of its streams issued its last request [ns].
    """

    sources: tuple[Foreground, ...]
    requested: ClientRequests
    first: ClientRequests
    counted: dict[str, int]
    is_closed: bool
    is_drawn: bool
    is_synthetic: bool
    dry_ns: int

    @property
    def requests_in_flight(self) -> int:
        """Requests that its closed loops keep in flight, 0 for an open loop."""
        return sum(source.queue_depth for source in self.sources)

    @property
    def timeout_ns(self) -> int:
        """Timeout of its requests [ns], 0 for none."""
        return max(getattr(source, "timeout_ns", 0) for source in self.sources)


@dataclass(frozen=True, kw_only=True)
class RowScope:
    """The workloads that a row covers: all of a run, or one of several.

    Attributes
    ----------
    loads
        The workloads.
    requested
        Their requests.
    counted
        Counters of their requests.
    offered
        What their open loops offered.
    window
        The part of the run to measure, or None if no request completed.
    wakes_fraction
        Its part of the wake-ups of threads [0 to 1]. A thread wakes for requests of several workloads, so
        each workload has the part of the uses of resources that its requests make.
    """

    loads: Sequence[WorkloadRun]
    requested: ClientRequests
    counted: dict[str, int]
    offered: OfferedLoad
    window: Window | None
    wakes_fraction: float = 1.0

    @property
    def is_closed(self) -> bool:
        """True if all clients keep requests in flight."""
        return all(load.is_closed for load in self.loads)

    @property
    def requests_in_flight(self) -> int:
        """Requests that closed loops keep in flight."""
        return sum(load.requests_in_flight for load in self.loads)

    @property
    def dry_ns(self) -> int:
        """Time when the first stream issued its last request [ns]."""
        return min(load.dry_ns for load in self.loads)

    @property
    def timeout_ns(self) -> int:
        """Timeout of the requests [ns], 0 for none."""
        return max(load.timeout_ns for load in self.loads)

    @property
    def is_drawn(self) -> bool:
        """True if each request is an independent draw."""
        return all(load.is_drawn for load in self.loads)

    @property
    def is_synthetic(self) -> bool:
        """False if a workload is a trace."""
        return all(load.is_synthetic for load in self.loads)
