"""The client's requests of a run, joined from the parts and streams that the engine knows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.planner import Planned
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import StreamRun


@dataclass(frozen=True)
class ClientRequests:
    """The client's requests, parts joined, in order of issue."""

    # Shape (n,). First part issued, last part completed [ns]; else the worst that a part came to: `FAILED`,
    # `PENDING`.
    issued_ns: IntArray
    completed_ns: IntArray
    lengths_bytes: IntArray  # Shape (n,).
    is_write: npt.NDArray[np.bool_]  # Shape (n,).
    groups: IntArray  # Shape (n,). Placement group of the part that completed last.

    @cached_property
    def done(self) -> npt.NDArray[np.bool_]:
        """Which requests completed."""
        completed: npt.NDArray[np.bool_] = self.completed_ns >= 0
        return completed

    @property
    def latencies_ns(self) -> IntArray:
        """Latencies of the completed requests, in order of issue [ns]."""
        return (self.completed_ns - self.issued_ns)[self.done]


def join_parts(stream: StreamRun, planned: Planned) -> ClientRequests:
    """Join the parts of requests that crossed objects."""
    issued = len(stream.issued_ns)
    owners = planned.owners[:issued]
    if not issued:
        empty = np.empty(0, dtype=np.int64)
        return ClientRequests(empty, empty, empty, np.empty(0, dtype=bool), empty)
    first = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    last, worst = (
        pick.reduceat(stream.completed_ns, first) for pick in (np.maximum, np.minimum)
    )
    groups = stream.groups
    if len(first) < issued:
        latest = np.lexsort((stream.completed_ns, owners))
        groups = groups[latest[np.append(first[1:], issued) - 1]]
    return ClientRequests(
        issued_ns=stream.issued_ns[first],
        completed_ns=np.where(worst < 0, worst, last),
        lengths_bytes=np.add.reduceat(planned.lengths_bytes[:issued], first),
        is_write=planned.is_write[:issued][first],
        groups=groups,
    )


def joined_requests(parts: Sequence[ClientRequests]) -> ClientRequests:
    """Join the requests of several streams, in order of issue; at one moment in the order of the streams."""
    if len(parts) == 1:
        return parts[0]
    issued_ns = np.concatenate([part.issued_ns for part in parts])
    order = np.argsort(issued_ns, kind="stable")
    return ClientRequests(
        issued_ns[order],
        np.concatenate([part.completed_ns for part in parts])[order],
        np.concatenate([part.lengths_bytes for part in parts])[order],
        np.concatenate([part.is_write for part in parts])[order],
        np.concatenate([part.groups for part in parts])[order],
    )


def joined_streams(streams: Sequence[StreamRun]) -> StreamRun:
    """Join what was noted of several streams, one behind the other."""
    if len(streams) == 1:
        return streams[0]
    names = ("issued_ns", "completed_ns", "templates", "bindings", "groups", "retries")
    columns = {
        name: np.concatenate([getattr(stream, name) for stream in streams])
        for name in names
    }
    return StreamRun(
        **columns,
        taken=np.sum([stream.taken for stream in streams], axis=0),
        taken_uses=sum(stream.taken_uses for stream in streams),
        counted=streams[0].counted,
    )
