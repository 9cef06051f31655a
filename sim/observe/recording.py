"""What a run says: latencies, rates, amplification, and which resource held it back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.ceph.planner import Planned
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, IntArray
from stripesim.sim.engine.program import POOL, ROW_BITS, UNBOUND, EngineRun, StreamRun, rows_of
from stripesim.sim.observe.steady_state import BATCHES, batch_means, mser5, throughput_interval


@dataclass(frozen=True)
class Requested:
    """The client's requests, parts joined, in order of issue.

    Parameters
    ----------
    issued_ns, completed_ns : ndarray of int64, shape (n,)
        First part issued, last part completed [ns]; else the worst that a part came to:
        `FAILED`, `PENDING`.
    lengths_bytes : ndarray of int64, shape (n,)
    is_write : ndarray of bool, shape (n,)
    """

    issued_ns: IntArray
    completed_ns: IntArray
    lengths_bytes: IntArray
    is_write: npt.NDArray[np.bool_]

    @cached_property
    def done(self) -> npt.NDArray[np.bool_]:
        """Which requests completed."""
        completed: npt.NDArray[np.bool_] = self.completed_ns >= 0
        return completed

    @property
    def latencies_ns(self) -> IntArray:
        """Latencies of the completed requests, in order of issue [ns]."""
        return (self.completed_ns - self.issued_ns)[self.done]


def join_parts(stream: StreamRun, planned: Planned) -> Requested:
    """Join the parts of requests that crossed objects."""
    issued = len(stream.issued_ns)
    owners = planned.owners[:issued]
    if not issued:
        empty = np.empty(0, dtype=np.int64)
        return Requested(empty, empty, empty, np.empty(0, dtype=bool))
    first = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    last, worst = (pick.reduceat(stream.completed_ns, first) for pick in (np.maximum, np.minimum))
    return Requested(
        issued_ns=stream.issued_ns[first],
        completed_ns=np.where(worst < 0, worst, last),
        lengths_bytes=np.add.reduceat(planned.lengths_bytes[:issued], first),
        is_write=planned.is_write[:issued][first],
    )


def joined_requests(parts: Sequence[Requested]) -> Requested:
    """Join the requests of several streams, in order of issue; at one moment in the order of the streams."""
    if len(parts) == 1:
        return parts[0]
    issued_ns = np.concatenate([part.issued_ns for part in parts])
    order = np.argsort(issued_ns, kind="stable")
    return Requested(
        issued_ns[order],
        np.concatenate([part.completed_ns for part in parts])[order],
        np.concatenate([part.lengths_bytes for part in parts])[order],
        np.concatenate([part.is_write for part in parts])[order],
    )


def joined_streams(streams: Sequence[StreamRun]) -> StreamRun:
    """Join what was noted of several streams, one behind the other."""
    if len(streams) == 1:
        return streams[0]
    names = ("issued_ns", "completed_ns", "templates", "bindings", "groups", "retries")
    columns = {name: np.concatenate([getattr(stream, name) for stream in streams]) for name in names}
    return StreamRun(
        **columns,
        taken=np.sum([stream.taken for stream in streams], axis=0),
        taken_uses=sum(stream.taken_uses for stream in streams),
        counted=streams[0].counted,
    )


def account(
    stream: StreamRun, book: Book, *, spawned: StreamRun | None = None, completed_only: bool = True
) -> dict[str, int]:
    """Sum what the completed requests account: by plan, or as the run took it.

    It is as the run took it where a branch stands, and everywhere in a run with a director.

    Parameters
    ----------
    stream : StreamRun
    book : Book
    spawned : StreamRun, optional
        What the stream's requests spawned; it is added.
    completed_only : bool
        Whether requests that a bound cut off are left out; what the run took never is.

    Returns
    -------
    dict of str to int
        One entry per name in `COUNTERS`, and ``uses``.
    """
    chosen = stream.completed_ns >= 0 if completed_only else np.ones(len(stream.issued_ns), bool)
    if stream.counted:
        chosen = np.zeros(len(stream.issued_ns), dtype=bool)
    # Which roles are bound depends on the placement group's row alone: a client binds all of its own.
    rows, _ = rows_of(stream.bindings[chosen])
    pairs, counts = np.unique(stream.templates[chosen] << ROW_BITS | rows, return_counts=True)
    totals = stream.taken.copy()
    uses = stream.taken_uses
    # Rows are alike in few ways.
    known: dict[tuple[int, bytes], tuple[IntArray, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        path = book.templates[pair >> ROW_BITS]
        if not path.planned:
            continue
        bound = np.append(book.bindings[pair & ((1 << ROW_BITS) - 1)] != UNBOUND, False)
        key = (pair >> ROW_BITS, bound.tobytes())
        if key not in known:
            known[key] = (path.totals(bound), path.uses(bound))
        totals += known[key][0] * count
        uses += known[key][1] * count
    if spawned is not None:
        more = account(spawned, book, completed_only=completed_only)
        totals += np.array([more[name] for name in COUNTERS], dtype=np.int64)
        uses += more["uses"]
    return {**dict(zip(COUNTERS, totals.tolist(), strict=True)), "uses": uses}


@dataclass(frozen=True)
class Bottleneck:
    """A class of resource, and how much it held a run back.

    Parameters
    ----------
    kind : str
        ``pg.lock``, ``ssd``, ``cpu`` …; of `bottleneck` ``none`` if nobody ever waited.
    wait_fraction : float
        Its share of all waiting.
    utilisation : float
        Of its busiest member, 0 to 1.
    """

    kind: str
    wait_fraction: float
    utilisation: float


def utilisation_by_kind(cluster: Cluster, run: EngineRun) -> dict[str, float]:
    """Utilisation of the busiest member of each class of resource, 0 to 1."""
    resources = cluster.resources
    used_ns = np.where(resources.disciplines == POOL, run.held_ns, run.busy_ns)
    fraction = used_ns / (resources.capacities * max(1, run.end_ns))
    kinds = np.array(resources.kinds)
    # A service begun before the end of a bounded run is counted whole.
    return {kind: min(1.0, float(fraction[kinds == kind].max())) for kind in dict.fromkeys(resources.kinds)}


def resource_use(cluster: Cluster, run: EngineRun) -> tuple[Bottleneck, ...]:
    """Say of each class of resource how busy it was and how much of all waiting was for it."""
    resources = cluster.resources
    waited: dict[str, int] = {}
    for kind, wait_ns in zip(resources.kinds, run.waited_ns.tolist(), strict=True):
        waited[kind] = waited.get(kind, 0) + wait_ns
    total_ns = sum(waited.values())
    busy = utilisation_by_kind(cluster, run)
    return tuple(
        Bottleneck(kind, wait_ns / total_ns if total_ns else 0.0, busy[kind])
        for kind, wait_ns in waited.items()
    )


def bottleneck(cluster: Cluster, run: EngineRun) -> Bottleneck:
    """Name what held the run back: the class of resource with the longest queues in all."""
    longest = max(resource_use(cluster, run), key=lambda use: use.wait_fraction)
    return longest if longest.wait_fraction > 0 else Bottleneck("none", 0.0, 0.0)


def completions_sha256(requested: Requested) -> str:
    """Fingerprint of every completion time, in order of issue."""
    return hashlib.sha256(requested.completed_ns.astype("<i8").tobytes()).hexdigest()


def steady_window(requested: Requested, run_end_ns: int) -> tuple[float, float, npt.NDArray[np.bool_]]:
    """Return the window of steady state: its start and end [ns], and which requests completed inside.

    Parameters
    ----------
    requested : Requested
        At least one of them completed.
    run_end_ns : int
        End of the run [ns].

    Notes
    -----
    From the end of the transient (MSER-5 over latencies in order of completion) to the issue of the last
    request: after that a closed loop runs dry. With fewer than 20 completions inside, everything.
    """
    done = requested.done
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    skipped = mser5(requested.latencies_ns[order].astype(np.float64))
    start_ns = float(times[skipped - 1]) if skipped else 0.0
    end_ns = float(run_end_ns if not done.all() else requested.issued_ns[-1])
    inside = done & (requested.completed_ns > start_ns) & (requested.completed_ns <= end_ns)
    if inside.sum() < 20:
        return 0.0, float(times[-1]), done
    return start_ns, end_ns, inside


def describe(
    cluster: Cluster, run: EngineRun, requested: Requested, counted: dict[str, int]
) -> dict[str, Any]:
    """Return the numbers of one result row.

    Parameters
    ----------
    cluster : Cluster
    run : EngineRun
    requested : Requested
        The foreground's requests.
    counted : dict of str to int
        From `account`, of the foreground.

    Notes
    -----
    Rates and latencies are those of the window from the end of the transient (MSER-5 over
    latencies in order of completion) to the issue of the last request: after that a closed
    loop runs dry. Per-byte and per-operation figures are those of the whole run, as
    counters read before and after a run give them.
    """
    done = requested.done
    row: dict[str, Any] = {"requests": int(done.sum()), "simulated_s": run.end_ns / 1e9}
    if not done.any():
        return row
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    latencies = requested.latencies_ns[order].astype(np.float64)
    lengths = requested.lengths_bytes[done][order].astype(np.float64)
    start_ns, end_ns, steady = steady_window(requested, run.end_ns)
    inside = steady[done][order]
    iops = throughput_interval(times, np.ones(len(times)), start_ns, end_ns)
    rate = throughput_interval(times, lengths, start_ns, end_ns)
    window = latencies[inside]
    # Batches in order of completion: neighbours in time are alike, batches nearly independent.
    spread = batch_means([float(batch.mean()) for batch in np.array_split(window, BATCHES) if len(batch)])
    p50, p95, p99 = np.percentile(window, [50, 95, 99])
    client_bytes = int(requested.lengths_bytes[done].sum())
    operations = int(done.sum())
    cores = cluster.hosts * cluster.models.cpu.cores_per_host
    cpu_ns_per_op = counted["cpu_ns"] / operations
    name = bottleneck(cluster, run)
    row |= {
        "iops": iops.mean,
        "throughput_bytes_per_s": rate.mean,
        "throughput_ci_low": rate.low,
        "throughput_ci_high": rate.high,
        "latency_mean_ns": float(window.mean()),
        "latency_ci_low": spread.low,
        "latency_ci_high": spread.high,
        "latency_p50_ns": float(p50),
        "latency_p95_ns": float(p95),
        "latency_p99_ns": float(p99),
        "latency_max_ns": float(window.max()),
    }
    for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes", "public_net_bytes"):
        row[f"{counter}_per_client_byte"] = counted[counter] / client_bytes
    data_bytes = counted["device_write_bytes"] - counted["device_log_bytes"]
    row["device_data_write_bytes_per_client_byte"] = data_bytes / client_bytes
    row |= {
        "cpu_ns_per_op": cpu_ns_per_op,
        "cpu_utilisation": cpu_ns_per_op * iops.mean / (cores * 1e9),
        "cpu_user_fraction": cluster.models.cpu.user_fraction,
        "context_switches_per_op": counted["context_switches"] / operations,
        "bottleneck": name.kind,
        "bottleneck_wait_fraction": name.wait_fraction,
        "bottleneck_utilisation": name.utilisation,
        "steady_state_start_s": start_ns / 1e9,
    }
    return row


__all__ = [
    "COUNTER_INDEX",
    "Bottleneck",
    "Requested",
    "account",
    "bottleneck",
    "completions_sha256",
    "describe",
    "join_parts",
    "joined_requests",
    "joined_streams",
    "resource_use",
    "steady_window",
    "utilisation_by_kind",
]
