"""Take the numbers from a run that `stripesim.sim.observe.audit` compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, Literal, NamedTuple

import numpy as np

from stripesim.sim.ceph.clients.stationary import busiest_osd, requests_at
from stripesim.sim.ceph.cluster import NO_OSD, Cluster
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE
from stripesim.sim.engine.graph import USE, Template
from stripesim.sim.engine.program import (
    GATE,
    PAIRED_UNIT,
    POOL,
    EngineRun,
    Program,
)
from stripesim.sim.observe.audit import (
    PERIODS_MIN,
    QUEUED_MAX,
    ROUNDS_MIN,
    BusiestQueue,
    RowNumbers,
    RunNumbers,
)
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.recording import account
from stripesim.sim.observe.result_row import ResultRow
from stripesim.sim.observe.scope import RowScope
from stripesim.sim.observe.window import Window

# Interfaces that send and receive, by network.
_SENDERS: Final = {
    "public": ("client.tx", "public.tx", "gateway.tx"),
    "private": ("private.tx",),
}
_RECEIVERS: Final = {
    "public": ("client.rx", "public.rx", "gateway.rx"),
    "private": ("private.rx",),
}


class FaultTotals(NamedTuple):
    """Effects of failures and changes in a run."""

    rebuilt_bytes: int  # Bytes of shards rebuilt or copied.
    held_bytes: int  # Bytes that there were to rebuild, at most.
    slowdown: float  # Longest service time of a slow drive, by its normal one.


def row_numbers(
    pool: Pool,
    row: ResultRow,
    scope: RowScope,
    *,
    newest_only: bool,
    has_faults: bool,
    is_saturated: bool,
    is_bounded: bool,
) -> RowNumbers:
    """Return the numbers of one row.

    Parameters
    ----------
    pool, row, scope
        The pool, the row, and the workloads that it covers.
    newest_only
        True if clients wait for their newest request alone.
    has_faults
        True under failures or changes.
    is_saturated
        True if open loops offer more than the cluster serves, so that the latency has no steady value.
    is_bounded
        True if time bounds the run.
    """
    assert scope.window is not None
    requested = scope.requested
    window = scope.window
    dry_ns = scope.dry_ns
    asked = scope.requests_in_flight if scope.is_closed else 0
    # The latency of traces has no steady value either.
    is_stationary = scope.is_synthetic and not is_saturated
    assert row.iops is not None
    assert row.latency_mean_ns is not None
    issued = len(requested.issued_ns)
    loop: Literal["closed", "open", "whole"] = "closed"
    if not asked:
        loop = "open" if is_stationary and not has_faults else "whole"
    elif has_faults:
        # The latency leaves out requests that failed or hang to the end.
        loop = "whole"

    def in_flight(start_ns: float, end_ns: float) -> float:
        return requested.in_flight_mean(start_ns, end_ns, timeout_ns=scope.timeout_ns)

    edge_fraction = _edge_fraction(requested, window) if window.is_whole else 0.0
    latencies_ns = requested.latencies_ns
    return RowNumbers(
        loop=loop,
        requests=row.requests,
        issued=issued,
        iops=row.iops,
        latency_mean_ns=row.latency_mean_ns,
        half_fraction=max(
            _half_fraction(
                row.throughput_bytes_per_s,
                row.throughput_ci_low,
                row.throughput_ci_high,
            ),
            _half_fraction(
                row.latency_mean_ns, row.latency_ci_low, row.latency_ci_high
            ),
        ),
        asked=asked,
        # A client that issues all its requests at once keeps none in flight.
        keeps_depth=not newest_only and dry_ns > window.start_ns,
        # One of several loads may end within the window of all.
        is_steady=not window.is_whole and dry_ns >= window.end_ns,
        in_flight=in_flight(window.start_ns, window.end_ns),
        in_flight_kept=in_flight(window.start_ns, min(dry_ns, window.end_ns)),
        in_flight_s=float(latencies_ns.sum()) / 1e9,
        edge_fraction=edge_fraction,
        length_key="workload.duration_s" if is_bounded else "workload.requests",
        least=0 if has_faults else _least_requests(pool, row, requested, asked),
        halves=_halves(requested, window),
        queue=_busiest_queue(pool, requested, window),
    )


def _least_requests(
    pool: Pool, row: ResultRow, requested: ClientRequests, asked: int
) -> int:
    """Return the requests that a closed loop has to issue at least, 0 for other loads."""
    least = ROUNDS_MIN * asked
    if not asked or "osd.cpu" not in (row.limits or ""):
        return least
    shares = pool.cluster.resources.shares
    period_ns = max((share.period_ns for share in shares), default=0)
    if row.simulated_s * 1e9 >= PERIODS_MIN * period_ns:
        return least
    periods = row.simulated_s * 1e9 / period_ns
    return max(least, ceil(len(requested.issued_ns) * PERIODS_MIN / periods))


def _edge_fraction(requested: ClientRequests, window: Window) -> float:
    """Return how far requests in flight at the end of a whole run part rate × latency from the time-average.

    They count with their whole latency, of which a part is after the end, and do not count in the rate.
    """
    left = requested.completed_ns > window.end_ns
    after_ns = float((requested.completed_ns[left] - window.end_ns).sum())
    inside_ns = float(requested.latencies_ns.sum()) - after_ns
    done = max(1, int(requested.done.sum()))
    return int(left.sum()) / done + after_ns / max(1.0, inside_ns)


def _halves(requested: ClientRequests, window: Window) -> tuple[int, int] | None:
    """Count the requests in each half of the window, of a run that starts with ages."""
    if not requested.ages_ns.any():
        return None
    times_ns = requested.completed_ns[window.holds(requested)]
    first = int((times_ns <= (window.start_ns + window.end_ns) / 2).sum())
    return first, len(times_ns) - first


def _busiest_queue(
    pool: Pool, requested: ClientRequests, window: Window
) -> BusiestQueue | None:
    """Count the requests at the OSD with most of them in flight, of a run that starts with ages."""
    if window.is_whole or not requested.ages_ns.any():
        return None
    issued_ns = requested.issued_ns
    completed_ns = requested.completed_ns
    middle_ns = (window.start_ns + window.end_ns) / 2
    waits = issued_ns <= middle_ns
    waits &= (completed_ns > middle_ns) | ~requested.done
    groups = requested.groups
    is_write = requested.is_write
    osd = busiest_osd(pool, groups[waits], is_write[waits])
    is_there = requests_at(pool, osd, groups, is_write)
    arrives = (issued_ns > window.start_ns) & (issued_ns <= window.end_ns)
    return BusiestQueue(
        waiting=int((waits & is_there).sum()),
        arrived=int((arrives & is_there).sum()),
        completed=int((window.holds(requested) & is_there).sum()),
    )


def _half_fraction(value: float | None, low: float | None, high: float | None) -> float:
    if not value or low is None or high is None:
        return 0.0
    return (high - low) / 2 / value


def run_numbers(
    pool: Pool,
    program: Program,
    run: EngineRun,
    row: ResultRow,
    scope: RowScope,
    *,
    uses_planned: tuple[int, int] | None,
    is_one_load: bool,
    faults: FaultTotals | None,
) -> RunNumbers:
    """Return the numbers that all rows of a run share.

    Parameters
    ----------
    pool, program, run
        The pool, what the engine ran, and its result.
    row, scope
        The row of all requests, and the workloads that it covers.
    uses_planned
        What `planned_uses` returns. None under faults, which end requests halfway.
    is_one_load
        False if further streams use the cluster, whose requests have other demands.
    faults
        What failures or changes did, or None without any.
    """
    assert scope.window is not None
    requested = scope.requested
    window = scope.window
    cluster = pool.cluster
    resources = cluster.resources
    used_ns = np.where(resources.disciplines == POOL, run.held_ns, run.busy_ns)
    # The tickets of a gate are not servers.
    used_ns = np.where(resources.disciplines == GATE, 0, used_ns)
    streams = [*run.streams, *run.spawned]
    is_complete = all(bool((stream.completed_ns >= 0).all()) for stream in streams)
    has_faults = faults is not None
    service_max_ns = 0
    if program.until_ns is not None or has_faults:
        service_max_ns = _longest_service_ns(cluster, program, faults)
    rate_per_s = row.iops
    has_other_demands = not is_one_load or has_faults or bool(row.saturated)
    # Deferred writes reach the disks when the requests of the window have completed.
    has_other_demands |= cluster.models.deferral is not None
    if has_other_demands or _ends_with_a_queue(requested, window):
        rate_per_s = None
    written = requested.lengths_bytes[requested.is_write & requested.done]
    return RunNumbers(
        kinds=resources.kind_names,
        kind_indices=resources.kind_indices,
        capacities=resources.capacities,
        used_ns=used_ns,
        span_ns=run.end_ns,
        service_max_ns=service_max_ns,
        uses=run.uses,
        uses_planned=uses_planned,
        written_bytes=int(written.sum()),
        factor=1.0 if has_faults else _written_factor(pool),
        device_write_bytes=scope.counted["device_write_bytes"],
        sent_ns=_busy_by_network(cluster, run, _SENDERS),
        received_ns=_busy_by_network(cluster, run, _RECEIVERS),
        is_delivered=is_complete and not has_faults,
        rebuilt_bytes=faults.rebuilt_bytes if faults else 0,
        held_bytes=faults.held_bytes if faults else 0,
        rate_per_s=rate_per_s,
        requests=max(1, row.requests),
        half_fraction=_half_fraction(
            row.throughput_bytes_per_s, row.throughput_ci_low, row.throughput_ci_high
        ),
    )


def _ends_with_a_queue(requested: ClientRequests, window: Window) -> bool:
    """Return True if requests complete after the window of a whole run, so that cheap ones overtake them."""
    late = requested.completed_ns > window.end_ns
    return window.is_whole and float(late.mean()) > QUEUED_MAX


def planned_uses(run: EngineRun, book: Book, completed: int) -> tuple[int, int]:
    """Return the uses that are performed at least, and those of all requests that were issued [count].

    `completed` are those of completed requests and of background work. Where requests are in flight at the
    end, steps that follow the reply of completed ones, such as those that apply a write, may also be left.
    """
    streams = [*run.streams, *run.spawned]
    if all(bool((stream.completed_ns >= 0).all()) for stream in streams):
        return completed, completed
    after_reply = np.array([_uses_after_reply(path) for path in book.templates])
    done = [stream.templates[stream.completed_ns >= 0] for stream in streams]
    left = sum(int(after_reply[templates].sum()) for templates in done)
    every = [account(stream, book, completed_only=False) for stream in streams]
    return completed - left, sum(counted["uses"] for counted in every)


def _uses_after_reply(path: Template) -> int:
    """Count the uses of a path that its reply does not wait for, or not surely.

    A step that waits for the first of several others is a reason to wait for none of them.
    """
    starts = path.successor_starts.tolist()
    successors = path.successors.tolist()
    ways_in = np.bincount(path.successors, minlength=path.steps)
    waits_for_all = (path.predecessors >= ways_in).tolist()
    waited_for = [False] * path.steps
    waited_for[path.reply] = True
    # Successors have higher numbers.
    for step in range(path.reply - 1, -1, -1):
        following = successors[starts[step] : starts[step + 1]]
        waited_for[step] = any(
            waited_for[after] and waits_for_all[after] for after in following
        )
    is_use = path.words == USE
    return int((is_use & ~np.array(waited_for)).sum())


def _written_factor(pool: Pool) -> float:
    """Return the bytes written for a byte of a client, in the group with the fewest members."""
    members = int((pool.cluster.acting != NO_OSD).sum(axis=1).min())
    return max(1.0, members / pool.scheme.k)


def _longest_service_ns(
    cluster: Cluster, program: Program, faults: FaultTotals | None
) -> int:
    """Return the longest service that may begin before the end of a run [ns]."""
    demand_ns = max(
        (int(one.demands_ns.max(initial=0)) for one in program.book.templates),
        default=0,
    )
    resources = cluster.resources
    factor = program.factor_tables.max() / FACTOR_ONE
    factor *= 1 + resources.paired_slowdown / PAIRED_UNIT
    if faults is not None:
        factor *= faults.slowdown
    return int(demand_ns * factor) + int(resources.wake_ns.max(initial=0))


def _busy_by_network(
    cluster: Cluster, run: EngineRun, members: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Sum the busy time of interfaces by network [ns]."""
    kinds = cluster.resources.numbered_kinds
    return {
        network: int(run.busy_ns[kinds.are(*names)].sum())
        for network, names in members.items()
    }
