"""Map the engine's streams and parts of requests to the client's requests."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.planner import Planned
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import FAILED, StreamRun


@dataclass(frozen=True)
class ClientRequests:
    """The client's requests in order of issue, with their parts joined.

    Attributes
    ----------
    issued_ns
        Issue of each request's first part [ns], shape (n,).
    completed_ns
        Completion of each request's last part [ns], shape (n,). An incomplete request has the worst
        state of its parts: `FAILED` or `PENDING`.
    lengths_bytes
        Length of each request [B], shape (n,).
    is_write
        True for each write, shape (n,).
    groups
        Placement group of the part of each request that completed last, shape (n,).
    ages_ns
        Time that each request has been in flight when the run starts [ns], shape (n,). 0, except for the
        first requests of a run that starts in its steady state.
    """

    issued_ns: IntArray
    completed_ns: IntArray
    lengths_bytes: IntArray
    is_write: npt.NDArray[np.bool_]
    groups: IntArray
    ages_ns: IntArray

    @cached_property
    def done(self) -> npt.NDArray[np.bool_]:
        """True for each request that completed, shape (n,)."""
        completed: npt.NDArray[np.bool_] = self.completed_ns >= 0
        return completed

    @property
    def latencies_ns(self) -> IntArray:
        """Latencies of the completed requests in order of issue [ns]."""
        return (self.completed_ns - self.issued_ns + self.ages_ns)[self.done]

    def in_flight_mean(
        self, start_ns: float, end_ns: float, *, timeout_ns: int = 0
    ) -> float:
        """Return the time-average of the requests in flight between two moments.

        Parameters
        ----------
        start_ns, end_ns
            The moments [ns].
        timeout_ns
            Time after its issue at which a request failed [ns], if any did.
        """
        ends_ns = np.where(self.done, self.completed_ns, np.int64(2**62))
        failed = self.completed_ns == FAILED
        ends_ns[failed] = self.issued_ns[failed] + timeout_ns
        inside_ns = np.minimum(ends_ns, end_ns) - np.maximum(self.issued_ns, start_ns)
        return float(np.maximum(inside_ns, 0).sum() / max(1.0, end_ns - start_ns))


def join_parts(stream: StreamRun, planned: Planned) -> ClientRequests:
    """Join the parts of requests that cross object boundaries.

    Parameters
    ----------
    stream
        The engine's record of a stream.
    planned
        The plan of the same stream.

    Returns
    -------
    ClientRequests
        The client's requests.
    """
    issued = len(stream.issued_ns)
    owners = planned.owners[:issued]
    if not issued:
        empty = np.empty(0, dtype=np.int64)
        flags = np.empty(0, dtype=bool)
        return ClientRequests(empty, empty, empty, flags, empty, empty)
    first = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    last = np.maximum.reduceat(stream.completed_ns, first)
    worst = np.minimum.reduceat(stream.completed_ns, first)
    groups = planned.groups[:issued]
    if len(first) < issued:
        latest = np.lexsort((stream.completed_ns, owners))
        groups = groups[latest[np.append(first[1:], issued) - 1]]
    return ClientRequests(
        issued_ns=stream.issued_ns[first],
        completed_ns=np.where(worst < 0, worst, last),
        lengths_bytes=np.add.reduceat(planned.lengths_bytes[:issued], first),
        is_write=planned.is_write[:issued][first],
        groups=groups,
        ages_ns=np.zeros(len(first), dtype=np.int64),
    )


def joined_requests(parts: Sequence[ClientRequests]) -> ClientRequests:
    """Merge the requests of several streams by time of issue. Ties keep the order of the streams."""
    if len(parts) == 1:
        return parts[0]
    columns = _concatenated(parts, [field.name for field in fields(ClientRequests)])
    order = np.argsort(columns["issued_ns"], kind="stable")
    return ClientRequests(**{name: column[order] for name, column in columns.items()})


def joined_streams(streams: Sequence[StreamRun]) -> StreamRun:
    """Concatenate the engine's records of several streams."""
    if len(streams) == 1:
        return streams[0]
    names = ("issued_ns", "completed_ns", "templates", "bindings", "groups", "retries")
    return StreamRun(
        **_concatenated(streams, names),
        taken=np.sum([stream.taken for stream in streams], axis=0),
        taken_uses=sum(stream.taken_uses for stream in streams),
        counted=streams[0].counted,
    )


def _concatenated(parts: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    return {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in names
    }
