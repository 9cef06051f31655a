"""Numbers of a result row: latencies, rates, amplification and processor time."""

import hashlib
from typing import Any

import numpy as np

from stripesim.sim.ceph.cluster import THREAD_KINDS, Cluster
from stripesim.sim.ceph.pool import Book
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, IntArray
from stripesim.sim.engine.program import (
    ROW_BITS,
    UNBOUND,
    EngineRun,
    StreamRun,
    rows_of,
)
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.intervals import Floats, batches_of, ratio_interval
from stripesim.sim.observe.window import NO_INTERVALS, Window


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
    # The placement group's row alone decides which roles are bound, since a client binds all
    # its roles.
    rows, _ = rows_of(stream.bindings[planned])
    pairs, counts = np.unique(
        stream.templates[planned] << ROW_BITS | rows, return_counts=True
    )
    totals = stream.taken.copy()
    uses = stream.taken_uses
    # Few distinct binding patterns exist, so memoise them.
    known: dict[tuple[int, bytes], tuple[IntArray, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        template = pair >> ROW_BITS
        row = pair & ((1 << ROW_BITS) - 1)
        path = book.templates[template]
        if not path.planned:
            continue
        bound = np.append(book.bindings[row] != UNBOUND, False)
        key = (template, bound.tobytes())
        if key not in known:
            known[key] = (path.totals(bound), path.uses(bound))
        path_totals, path_uses = known[key]
        totals += path_totals * count
        uses += path_uses * count
    if spawned is not None:
        more = account(spawned, book, completed_only=completed_only)
        totals += np.array([more[name] for name in COUNTERS], dtype=np.int64)
        uses += more["uses"]
    return {**dict(zip(COUNTERS, totals.tolist(), strict=True)), "uses": uses}


def completions_sha256(requested: ClientRequests) -> str:
    """Return a fingerprint of all completion times, in order of issue."""
    return hashlib.sha256(requested.completed_ns.astype("<i8").tobytes()).hexdigest()


def woken_ns(cluster: Cluster, run: EngineRun) -> IntArray:
    """Return the processor time of waking threads [ns], by resource."""
    times_ns: IntArray = run.sleeps * cluster.resources.wake_ns - run.warm_ns
    return times_ns


def with_wake_ups(
    cluster: Cluster, run: EngineRun, counted: dict[str, int]
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

    Returns
    -------
    dict
        The counters, with more ``context_switches`` and ``cpu_ns``.
    """
    threads = cluster.models.threads
    kinds = np.array(cluster.resources.kinds)
    sleeps = {kind: int(run.sleeps[kinds == kind].sum()) for kind in THREAD_KINDS}
    sleeps["worker"] = round(sleeps["worker"] * threads.queue_wakes_count)
    # The key-value thread wakes the threads that write and flush.
    in_syncs = round(sleeps["kv"] * threads.sync_wakes_count)
    voluntary = counted["context_switches"] + sum(sleeps.values()) + in_syncs
    preemptions = round(voluntary * threads.preemptions_per_wake_count)
    return {
        **counted,
        "context_switches": voluntary + preemptions,
        "cpu_ns": counted["cpu_ns"] + int(woken_ns(cluster, run).sum()),
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
    wake_ns = dict(zip(resources.kinds, resources.wake_ns.tolist(), strict=True))
    known = min(len(bins), len(run.sleep_bins))
    sleeps = run.sleep_bins[:known] * np.isin(kinds, THREAD_KINDS)
    switches[:known] += sleeps @ (1 + threads.sync_wakes_count * (kinds == "kv"))
    cpu_ns[:known] += sleeps @ np.array([wake_ns[kind] for kind in kinds])
    switches *= 1 + threads.preemptions_per_wake_count
    return bins


def describe(
    cluster: Cluster,
    run: EngineRun,
    requested: ClientRequests,
    counted: dict[str, int],
    window: Window | None,
    *,
    is_drawn: bool,
) -> dict[str, Any]:
    """Return the numbers of one result row.

    Rates and latencies describe the window. Figures per byte and per operation, and processor
    utilisation, describe the whole run, like counters that are read before and after a run.

    Parameters
    ----------
    cluster
        The cluster.
    run
        The engine's result.
    requested
        The client's requests.
    counted
        Counters of the run, without wake-ups.
    window
        The part of the run to measure, or None if no request completed.
    is_drawn
        True if requests are independent draws, so that batches give intervals.

    Returns
    -------
    dict
        Columns of the row.
    """
    counted = with_wake_ups(cluster, run, counted)
    operations = int(requested.done.sum())
    row: dict[str, Any] = {"requests": operations, "simulated_s": run.end_ns / 1e9}
    if window is None:
        return row
    row |= _measured(requested, window, is_drawn=is_drawn)
    client_bytes = int(requested.lengths_bytes[requested.done].sum())
    cores = int(cluster.cores.sum())
    for counter in (
        "device_read_bytes",
        "device_write_bytes",
        "private_net_bytes",
        "public_net_bytes",
    ):
        row[f"{counter}_per_client_byte"] = counted[counter] / client_bytes
    data_bytes = counted["device_write_bytes"] - counted["device_log_bytes"]
    row["device_data_write_bytes_per_client_byte"] = data_bytes / client_bytes
    return row | {
        "cpu_ns_per_op": counted["cpu_ns"] / operations,
        "cpu_utilisation": min(1.0, counted["cpu_ns"] / (cores * run.end_ns)),
        "cpu_user_fraction": cluster.models.cpu.user_fraction,
        "context_switches_per_op": counted["context_switches"] / operations,
        "steady_state_start_s": window.transient_ns / 1e9,
        "window_start_s": window.start_ns / 1e9,
        "window_end_s": window.end_ns / 1e9,
    }


def _measured(
    requested: ClientRequests, window: Window, *, is_drawn: bool
) -> dict[str, Any]:
    done = requested.done
    order = np.argsort(requested.completed_ns[done], kind="stable")
    times = requested.completed_ns[done][order].astype(np.float64)
    latencies = requested.latencies_ns[order].astype(np.float64)
    lengths = requested.lengths_bytes[done][order].astype(np.float64)
    inside = (times > window.start_ns) & (times <= window.end_ns)
    span_s = (window.end_ns - window.start_ns) / 1e9
    sample = latencies[window.holds(requested)[done][order]]
    p50, p95, p99 = np.percentile(sample, [50, 95, 99])
    rate = 0.0
    throughput = 0.0
    if span_s > 0:
        rate = float(inside.sum() / span_s)
        throughput = float(lengths[inside].sum() / span_s)
    row: dict[str, Any] = {
        "iops": rate,
        "throughput_bytes_per_s": throughput,
        "latency_mean_ns": float(sample.mean()),
        "latency_p50_ns": float(p50),
        "latency_p95_ns": float(p95),
        "latency_p99_ns": float(p99),
        "latency_max_ns": float(sample.max()),
    }
    row |= NO_INTERVALS
    if is_drawn:
        row |= _intervals(
            row, times[inside], lengths[inside], latencies[inside], window.start_ns
        )
    return row


def _intervals(
    row: dict[str, Any],
    times: Floats,
    lengths: Floats,
    latencies: Floats,
    start_ns: float,
) -> dict[str, float]:
    """Return the bounds of the intervals of throughput and mean latency, if batches give any.

    Little's law ties the two in a closed loop, so without an interval of throughput there is none of latency.
    """
    spans_ns, starts = batches_of(times, start_ns)
    ends: dict[str, float] = {}
    if not len(starts):
        return ends
    counts = np.diff(np.r_[starts, len(times)]).astype(np.float64)
    for name, key, amounts, sizes in (
        ("throughput", "throughput_bytes_per_s", lengths * 1e9, spans_ns),
        ("latency", "latency_mean_ns", latencies, counts),
    ):
        interval = ratio_interval(np.add.reduceat(amounts, starts), sizes)
        if interval.low is None or interval.high is None:
            break
        # Centre it on the figure in the row, because batches exclude the completions after the
        # last one.
        ends |= {
            f"{name}_ci_low": max(0.0, row[key] + interval.low - interval.mean),
            f"{name}_ci_high": row[key] + interval.high - interval.mean,
        }
    return ends
