"""Numbers of a result row: latencies, rates, amplification and processor time."""

import hashlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.cluster import THREAD_KINDS, Cluster
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, IntArray
from stripesim.sim.engine.program import (
    BY_CLIENT,
    UNBOUND,
    EngineRun,
    StreamRun,
    rows_of,
)
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.intervals import Floats, batches_of, ratio_interval
from stripesim.sim.observe.limits import RunLimits, limits_text
from stripesim.sim.observe.result_row import FaultNumbers, ResultRow
from stripesim.sim.observe.scope import RowScope
from stripesim.sim.observe.window import Window

# Bindings to look up at a time [count].
_BINDINGS_AT_A_TIME = 1 << 12


def account(
    stream: StreamRun,
    book: Book,
    *,
    spawned: StreamRun | None = None,
    completed_only: bool = True,
) -> dict[str, int]:
    """Sum the counters of completed requests.

    The engine counts requests with branches, and all requests of a run with a director. The plan
    states the counters of the others.

    Parameters
    ----------
    stream
        The engine's record of a stream.
    book
        Templates and bindings of the run.
    spawned
        Record of the requests that it spawned.
    completed_only
        False to include planned requests that did not complete.

    Returns
    -------
    dict
        Amount per counter, and the number of ``uses``.
    """
    planned = np.full(len(stream.issued_ns), not stream.counted)
    if completed_only:
        planned &= stream.completed_ns >= 0
    templates = stream.templates[planned]
    deciding = _deciding_rows(book, templates, stream.bindings[planned])
    bindings, numbers = np.unique(deciding, return_inverse=True)
    # Few distinct patterns of bound roles exist, and a path is summed for all of its patterns together.
    patterns, pattern_of = _bound_patterns(book, bindings)
    # Templates and numbers of patterns fit in one integer, which sorts faster than pairs.
    pairs, counts = np.unique(
        templates * len(patterns) + pattern_of[numbers], return_counts=True
    )
    totals = stream.taken.copy()
    uses = stream.taken_uses
    known, firsts = np.unique(pairs // len(patterns), return_index=True)
    stops = [*firsts.tolist(), len(pairs)][1:]
    for template, first, stop in zip(known.tolist(), firsts, stops, strict=True):
        path = book.templates[template]
        if path.planned:
            of_template = patterns[pairs[first:stop] % len(patterns)]
            sums = counts[first:stop] @ path.totals(of_template)
            totals += sums[:-1]
            uses += int(sums[-1])
    if spawned is not None:
        more = account(spawned, book, completed_only=completed_only)
        totals += np.array([more[name] for name in COUNTERS], dtype=np.int64)
        uses += more["uses"]
    return {**dict(zip(COUNTERS, totals.tolist(), strict=True)), "uses": uses}


def _deciding_rows(book: Book, templates: IntArray, bindings: IntArray) -> IntArray:
    """Return the part of each binding that decides which roles are bound.

    A client binds all its roles, so the placement group's row alone decides. Only the map of an image may
    leave roles unbound, where two of its replicas share a host.
    """
    rows, clients = rows_of(bindings)
    if clients.max(initial=-1) < 0:
        return rows
    deciding = rows.copy()
    for template in np.unique(templates).tolist():
        used = np.unique(book.templates[template].roles)
        used = used[used >= 0]
        of_template = templates == template
        joined = np.unique(clients[of_template])
        joined = joined[joined >= 0]
        by_client = used[book.bindings[rows[of_template][0], used] == BY_CLIENT]
        if (book.bindings[np.ix_(joined, by_client)] == UNBOUND).any():
            deciding[of_template] = bindings[of_template]
    return deciding


def _bound_patterns(
    book: Book, bindings: IntArray
) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """Return the distinct patterns of bound roles, and the number of each binding's pattern.

    A pattern is True for each bound role, and False for the last one, of steps without a role. A role of an
    absent client counts as bound. The shapes are (patterns, roles + 1) and (bindings,).
    """
    roles = book.bindings.shape[1]
    known: dict[bytes, int] = {}
    pattern_of = np.empty(len(bindings), dtype=np.int64)
    # In parts, so that the rows of all roles exist only for some bindings at a time.
    for first in range(0, len(bindings), _BINDINGS_AT_A_TIME):
        part = slice(first, first + _BINDINGS_AT_A_TIME)
        packed = np.packbits(_bound_roles(book, bindings[part]), axis=1)
        # Looking up each row is several times faster than sorting rows.
        pattern_of[part] = [
            known.setdefault(row.tobytes(), len(known)) for row in packed
        ]
    patterns = np.zeros((len(known), roles + 1), dtype=bool)
    for number, row in enumerate(known):
        bits = np.unpackbits(np.frombuffer(row, dtype=np.uint8), count=roles)
        patterns[number, :roles] = bits
    return patterns, pattern_of


def _bound_roles(book: Book, bindings: IntArray) -> npt.NDArray[np.bool_]:
    """Return which roles each binding binds, shape (bindings, roles)."""
    rows, clients = rows_of(bindings)
    own = book.bindings[rows]
    bound: npt.NDArray[np.bool_] = own != UNBOUND
    joined = np.flatnonzero(clients >= 0)
    by_client = own[joined] == BY_CLIENT
    bound[joined] &= ~by_client | (book.bindings[clients[joined]] != UNBOUND)
    return bound


def completions_sha256(requested: ClientRequests) -> str:
    """Return a fingerprint of all completion times, in order of issue."""
    return hashlib.sha256(requested.completed_ns.astype("<i8").tobytes()).hexdigest()


def woken_ns(cluster: Cluster, run: EngineRun) -> IntArray:
    """Return the processor time of waking threads [ns], by resource."""
    times_ns: IntArray = run.sleeps * cluster.resources.wake_ns - run.warm_ns
    return times_ns


def with_wake_ups(
    cluster: Cluster,
    run: EngineRun,
    counted: dict[str, int],
    wakes_fraction: float = 1.0,
) -> dict[str, int]:
    """Add wake-ups of threads to the counters of a run.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.
    counted
        Counters without wake-ups.
    wakes_fraction
        Part of the run's wake-ups to add [0 to 1].

    Returns
    -------
    dict
        The counters, with more ``context_switches`` and ``cpu_ns``.
    """
    threads = cluster.models.threads
    kinds = cluster.resources.numbered_kinds
    sleeps = {kind: int(run.sleeps[kinds.are(kind)].sum()) for kind in THREAD_KINDS}
    sleeps["worker"] = round(sleeps["worker"] * threads.queue_wakes_count)
    # The key-value thread wakes the threads that write and flush.
    in_syncs = round(sleeps["kv"] * threads.sync_wakes_count)
    woken = round((sum(sleeps.values()) + in_syncs) * wakes_fraction)
    voluntary = counted["context_switches"] + woken
    preemptions = round(voluntary * threads.preemptions_per_wake_count)
    waking_ns = int(woken_ns(cluster, run).sum())
    return {
        **counted,
        "context_switches": voluntary + preemptions,
        "cpu_ns": counted["cpu_ns"] + round(waking_ns * wakes_fraction),
    }


def bins_with_wake_ups(cluster: Cluster, run: EngineRun) -> Floats:
    """Return a run's counters by time including wake-ups, each at its full cost.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.

    Returns
    -------
    ndarray of float64
        Counters by time, shape (bins, len(COUNTERS)).
    """
    resources = cluster.resources
    threads = cluster.models.threads
    bins = run.bins.astype(np.float64)
    switches = bins[:, COUNTER_INDEX["context_switches"]]
    cpu_ns = bins[:, COUNTER_INDEX["cpu_ns"]]
    kinds = np.array(resources.kind_names)
    # All resources of a kind take the same time to wake.
    wake_ns = np.zeros(len(kinds), dtype=np.int64)
    wake_ns[resources.kind_indices] = resources.wake_ns
    known = min(len(bins), len(run.sleep_bins))
    sleeps = run.sleep_bins[:known] * np.isin(kinds, THREAD_KINDS)
    switches[:known] += sleeps @ (1 + threads.sync_wakes_count * (kinds == "kv"))
    cpu_ns[:known] += sleeps @ wake_ns
    switches *= 1 + threads.preemptions_per_wake_count
    return bins


def describe(
    cluster: Cluster,
    run: EngineRun,
    scope: RowScope,
    *,
    is_drawn: bool,
    limits: RunLimits,
    faults: FaultNumbers | None = None,
) -> ResultRow:
    """Return the numbers of one result row.

    Rates and latencies describe the window. Figures per byte and per operation, and processor
    utilisation, describe the whole run, like counters that are read before and after a run.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.
    scope
        The workloads that the row covers.
    is_drawn
        True if requests are independent draws, so that batches give intervals. A saturated run has none.
    limits
        The limits of the run.
    faults
        Numbers of a run under faults.

    Returns
    -------
    ResultRow
        The row.
    """
    counted = with_wake_ups(cluster, run, scope.counted, scope.wakes_fraction)
    requested = scope.requested
    offered = scope.offered
    window = scope.window
    operations = int(requested.done.sum())
    row = ResultRow(
        requests=operations,
        offered_iops=offered.iops,
        saturated=offered.is_saturated,
        bottleneck=limits.bottleneck,
        bottleneck_utilisation=limits.bottleneck_utilisation,
        bottleneck_mean_utilisation=limits.bottleneck_mean_utilisation,
        bottleneck_wait_fraction=limits.bottleneck_wait_fraction,
        latency_at=limits.latency_at,
        latency_at_fraction=limits.latency_at_fraction,
        limits=limits_text(limits.near),
        simulated_s=run.end_ns / 1e9,
        engine_wall_s=run.wall_s,
        faults=faults,
    )
    if window is None:
        return row
    # No part of a saturated run represents another, since its queue grows throughout.
    has_intervals = is_drawn and not offered.is_saturated
    row = _measured(row, scope, window, has_intervals=has_intervals)
    row = _with_amplification(row, requested, counted)
    cores = int(cluster.cores.sum())
    return replace(
        row,
        cpu_ns_per_op=counted["cpu_ns"] / operations,
        cpu_utilisation=min(1.0, counted["cpu_ns"] / (cores * run.end_ns)),
        cpu_user_fraction=cluster.models.cpu.user_fraction,
        context_switches_per_op=counted["context_switches"] / operations,
        steady_state_start_s=window.transient_ns / 1e9,
        window_start_s=window.start_ns / 1e9,
        window_end_s=window.end_ns / 1e9,
    )


def _with_amplification(
    row: ResultRow, requested: ClientRequests, counted: dict[str, int]
) -> ResultRow:
    """Return a row with its bytes per byte of clients, which requests without data do not have."""
    client_bytes = int(requested.lengths_bytes[requested.done].sum())
    if not client_bytes:
        return row
    data_bytes = counted["device_write_bytes"] - counted["device_log_bytes"]
    return replace(
        row,
        device_read_bytes_per_client_byte=counted["device_read_bytes"] / client_bytes,
        device_write_bytes_per_client_byte=counted["device_write_bytes"] / client_bytes,
        device_data_write_bytes_per_client_byte=data_bytes / client_bytes,
        private_net_bytes_per_client_byte=counted["private_net_bytes"] / client_bytes,
        public_net_bytes_per_client_byte=counted["public_net_bytes"] / client_bytes,
    )


def _measured(
    row: ResultRow, scope: RowScope, window: Window, *, has_intervals: bool
) -> ResultRow:
    """Return a row with the rates and latencies of its window."""
    requested = scope.requested
    done = requested.done
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    latencies = requested.latencies_ns[order].astype(np.float64)
    lengths = requested.lengths_bytes[done][order].astype(np.float64)
    inside = (times > window.start_ns) & (times <= window.end_ns)
    span_s = (window.end_ns - window.start_ns) / 1e9
    sample = latencies[window.holds(requested)[done][order]]
    p50, p95, p99 = np.percentile(sample, [50, 95, 99])
    iops = 0.0
    throughput = 0.0
    in_flight = None
    if span_s > 0:
        iops = float(inside.sum() / span_s)
        throughput = float(lengths[inside].sum() / span_s)
        in_flight = requested.in_flight_mean(
            window.start_ns, window.end_ns, timeout_ns=scope.timeout_ns
        )
    row = replace(
        row,
        iops=iops,
        throughput_bytes_per_s=throughput,
        latency_mean_ns=float(sample.mean()),
        latency_p50_ns=float(p50),
        latency_p95_ns=float(p95),
        latency_p99_ns=float(p99),
        latency_max_ns=float(sample.max()),
        requests_in_flight=in_flight,
    )
    if not has_intervals:
        return row
    spans_ns, starts = batches_of(
        times[inside], latencies[inside], window.start_ns, is_closed=scope.is_closed
    )
    if not len(starts):
        return row
    return _with_intervals(row, lengths[inside], latencies[inside], spans_ns, starts)


def _with_intervals(
    row: ResultRow,
    lengths: Floats,
    latencies: Floats,
    spans_ns: Floats,
    starts: IntArray,
) -> ResultRow:
    """Return a row with the intervals of throughput and mean latency, as far as batches give them.

    Little's law ties the two in a closed loop, so without an interval of throughput there is none of latency.
    The batches have these spans [ns] and first requests.
    """
    throughput = _ends(
        row.throughput_bytes_per_s, np.add.reduceat(lengths * 1e9, starts), spans_ns
    )
    if throughput is None:
        return row
    row = replace(
        row, throughput_ci_low=throughput[0], throughput_ci_high=throughput[1]
    )
    counts = np.diff(np.r_[starts, len(lengths)]).astype(np.float64)
    latency = _ends(row.latency_mean_ns, np.add.reduceat(latencies, starts), counts)
    if latency is None:
        return row
    return replace(row, latency_ci_low=latency[0], latency_ci_high=latency[1])


def _ends(
    value: float | None, amounts: Floats, sizes: Floats
) -> tuple[float, float] | None:
    """Return the ends of the interval of a ratio, centred on a value; None if batches give none."""
    interval = ratio_interval(amounts, sizes)
    if value is None or interval.low is None or interval.high is None:
        return None
    # The value also counts the completions after the last batch, so it differs from the batches' mean.
    low = max(0.0, value + interval.low - interval.mean)
    return low, value + interval.high - interval.mean
