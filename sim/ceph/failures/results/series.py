"""Series over time: rate and latency of clients, and bytes moved by recovery."""

from typing import Any

import numpy as np

from stripesim.sim.ceph.failures.results.finished_run import FaultRun
from stripesim.sim.ceph.failures.results.recovery_results import (
    MOVED_COUNTERS,
    operation_totals,
)
from stripesim.sim.engine.graph import COUNTER_INDEX, IntArray

#: Bins of a series at most. Longer runs have wider bins.
SERIES_BINS_MAX = 1_000_000


def bin_width_ns(series_ns: int, end_ns: int) -> int:
    """Return the width of the bins of a series, a multiple of `series_ns` if there were too many."""
    bins_count = -(-max(1, end_ns) // series_ns)
    return series_ns * -(-bins_count // SERIES_BINS_MAX)


def foreground_series(run: FaultRun, width_ns: int) -> dict[str, Any]:
    """Return rate and latency of the requests completed in each bin."""
    requested = run.requested
    bins = _bins(run.end_ns, width_ns)
    bin_of = _bin_of(requested.completed_ns[requested.done], width_ns, len(bins))
    by_bin = np.argsort(bin_of, kind="stable")
    latencies = np.split(
        requested.latencies_ns[by_bin], np.searchsorted(bin_of[by_bin], bins[1:])
    )
    lengths_bytes = requested.lengths_bytes[requested.done]
    return {
        "time_s": (bins * width_ns / 1e9).tolist(),
        "iops": _per_s(bin_of, None, width_ns, len(bins)),
        "throughput_bytes_per_s": _per_s(bin_of, lengths_bytes, width_ns, len(bins)),
        "latency_p50_ns": [_percentile(part, 50) for part in latencies],
        "latency_p99_ns": [_percentile(part, 99) for part in latencies],
    }


def recovery_series(run: FaultRun, width_ns: int) -> dict[str, Any]:
    """Return bytes rebuilt, read, written and sent per second, by operations completed in each bin.

    A sample of the objects of PGs leaves out bucket indexes, which are complete.
    """
    done = run.rounds_done
    if run.plan.group_objects_count is not None:
        done = done & ~run.is_index
    bins = _bins(run.end_ns, width_ns)
    bin_of = _bin_of(run.recovery.completed_ns[done], width_ns, len(bins))
    totals = operation_totals(run.recovery, run.book)[done]
    rebuilt_bytes = run.bytes_done[done]
    series: dict[str, Any] = {
        "time_s": (bins * width_ns / 1e9).tolist(),
        "rebuilt_bytes_per_s": _per_s(bin_of, rebuilt_bytes, width_ns, len(bins)),
    }
    for counter in MOVED_COUNTERS:
        moved = totals[:, COUNTER_INDEX[counter]]
        series[f"{counter}_per_s"] = _per_s(bin_of, moved, width_ns, len(bins))
    return series


def _bins(end_ns: int, width_ns: int) -> IntArray:
    return np.arange(-(-max(1, end_ns) // width_ns), dtype=np.int64)


def _bin_of(times_ns: IntArray, width_ns: int, bins_count: int) -> IntArray:
    """Return the bin of each moment; the end of the run belongs to the last."""
    return np.minimum(times_ns // width_ns, bins_count - 1)


def _per_s(
    bin_of: IntArray, weights: IntArray | None, width_ns: int, bins_count: int
) -> list[float]:
    """Sum weights, or count, in each bin, per second."""
    sums = np.bincount(bin_of, weights=weights, minlength=bins_count)
    rates: list[float] = (sums * (1e9 / width_ns)).tolist()
    return rates


def _percentile(latencies_ns: IntArray, share: int) -> float | None:
    return float(np.percentile(latencies_ns, share)) if len(latencies_ns) else None
