"""What a run says: latencies, rates, amplification, and which resource held it back."""

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
from stripesim.sim.observe.window import Window


def account(
    stream: StreamRun,
    book: Book,
    *,
    spawned: StreamRun | None = None,
    completed_only: bool = True,
) -> dict[str, int]:
    """Sum what the completed requests account: by plan, or as the run took it.

    It is as the run took it where a branch stands, and everywhere in a run with a director.
    """
    chosen = (
        stream.completed_ns >= 0
        if completed_only
        else np.ones(len(stream.issued_ns), bool)
    )
    if stream.counted:
        chosen = np.zeros(len(stream.issued_ns), dtype=bool)
    # Which roles are bound depends on the placement group's row alone: a client binds all of its own.
    rows, _ = rows_of(stream.bindings[chosen])
    pairs, counts = np.unique(
        stream.templates[chosen] << ROW_BITS | rows, return_counts=True
    )
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


def completions_sha256(requested: ClientRequests) -> str:
    """Fingerprint of every completion time, in order of issue."""
    return hashlib.sha256(requested.completed_ns.astype("<i8").tobytes()).hexdigest()


def woken_ns(cluster: Cluster, run: EngineRun) -> IntArray:
    """Return what waking threads took of the processors, by resource [ns]."""
    found: IntArray = run.sleeps * cluster.resources.wake_ns - run.warm_ns
    return found


def with_wake_ups(
    cluster: Cluster, run: EngineRun, counted: dict[str, int]
) -> dict[str, int]:
    """Add to what the plans account what the run counted: threads that went to sleep and had to be woken."""
    threads = cluster.models.threads
    kinds = np.array(cluster.resources.kinds)
    sleeps = {kind: int(run.sleeps[kinds == kind].sum()) for kind in THREAD_KINDS}
    sleeps["worker"] = round(sleeps["worker"] * threads.queue_wakes_count)
    # The key-value thread wakes those that write and flush.
    in_syncs = round(sleeps["kv"] * threads.sync_wakes_count)
    voluntary = counted["context_switches"] + sum(sleeps.values()) + in_syncs
    return {
        **counted,
        "context_switches": voluntary
        + round(voluntary * threads.preemptions_per_wake_count),
        "cpu_ns": counted["cpu_ns"] + int(woken_ns(cluster, run).sum()),
    }


def bins_with_wake_ups(cluster: Cluster, run: EngineRun) -> Floats:
    """Return a run's counters by time with what `with_wake_ups` adds; a wake-up always costs all of it."""
    bins, threads, resources = (
        run.bins.astype(np.float64),
        cluster.models.threads,
        cluster.resources,
    )
    known = min(len(bins), len(run.sleep_bins))
    sleeps = run.sleep_bins[:known] * np.isin(resources.kind_names, THREAD_KINDS)
    counts = np.array(
        [1 + threads.sync_wakes_count * (kind == "kv") for kind in resources.kind_names]
    )
    wakes_ns = dict(zip(resources.kinds, resources.wake_ns.tolist(), strict=True))
    bins[:known, COUNTER_INDEX["context_switches"]] += sleeps @ counts
    bins[:, COUNTER_INDEX["context_switches"]] *= 1 + threads.preemptions_per_wake_count
    bins[:known, COUNTER_INDEX["cpu_ns"]] += sleeps @ np.array(
        [*map(wakes_ns.get, resources.kind_names)]
    )
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

    Rates and latencies are those of the window. Per-byte and per-operation figures, and the processors'
    utilisation, are those of the whole run, as counters read before and after a run give them.
    """
    counted = with_wake_ups(cluster, run, counted)
    done = requested.done
    row: dict[str, Any] = {"requests": int(done.sum()), "simulated_s": run.end_ns / 1e9}
    if window is None:
        return row
    row |= _measured(requested, window, is_drawn=is_drawn)
    client_bytes = int(requested.lengths_bytes[done].sum())
    operations = int(done.sum())
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
    row: dict[str, Any] = {
        "iops": float(inside.sum() / span_s) if span_s > 0 else 0.0,
        "throughput_bytes_per_s": float(lengths[inside].sum() / span_s)
        if span_s > 0
        else 0.0,
        "latency_mean_ns": float(sample.mean()),
        "latency_p50_ns": float(p50),
        "latency_p95_ns": float(p95),
        "latency_p99_ns": float(p99),
        "latency_max_ns": float(sample.max()),
    }
    row |= dict.fromkeys(
        f"{name}_ci_{end}"
        for name in ("throughput", "latency")
        for end in ("low", "high")
    )
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
    """Return the ends of the intervals of throughput and mean latency, as far as batches can give them.

    In a closed loop the two are tied by Little's law: where the batches say nothing of the one, they say
    nothing of the other.
    """
    spans_ns, starts = batches_of(times, start_ns)
    found: dict[str, float] = {}
    if not len(starts):
        return found
    counts = np.diff(np.r_[starts, len(times)]).astype(np.float64)
    for name, key, amounts, sizes in (
        ("throughput", "throughput_bytes_per_s", lengths * 1e9, spans_ns),
        ("latency", "latency_mean_ns", latencies, counts),
    ):
        interval = ratio_interval(np.add.reduceat(amounts, starts), sizes)
        if interval.low is None or interval.high is None:
            break
        # About the figure that the row shows; the batches leave out what lies behind the last.
        found |= {
            f"{name}_ci_low": max(0.0, row[key] + interval.low - interval.mean),
            f"{name}_ci_high": row[key] + interval.high - interval.mean,
        }
    return found
