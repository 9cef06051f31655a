"""Compute statistics of a block trace."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stripesim.traces.columns import BlockTrace
from stripesim.traces.locality import BLOCK_BYTES, reuse

NS_PER_S = 1e9
NS_PER_US = 1e3

WINDOWS_MIN = 20
WINDOWS_MAX = 5_000_000
"""Numbers of windows that a variance of counts needs and that fit into memory."""

SIZES_SHOWN = 8

CACHE_SHARES = (0.01, 0.1, 0.5)
"""Sizes of LRU caches as shares of the footprint."""


def info(trace: BlockTrace) -> dict[str, Any]:
    """Summarise a block trace, as ``stripesim trace info`` shows it.

    Parameters
    ----------
    trace
        Block trace.

    Returns
    -------
    dict
        ``service_…`` is the time from dispatch to completion of device commands, ``response_…`` from issue to
        completion of requests. They differ by the wait in the host's queues and never substitute for each
        other. ``interarrival_cv2`` is variance over mean squared, and ``dispersion`` (by window [s]) the
        variance over the mean of requests per window. Both are 1 for Poisson arrivals. ``peak_to_mean``
        compares the busiest second with the mean. ``reuse_distance_p50_bytes`` is the median LRU stack
        distance of reused blocks, and ``hit_ratio`` that of LRU caches by share of the footprint. Percentiles
        of sizes are nearest ranks. Values that the format does not record are None.
    """
    requests = trace.requests
    sizes = requests["length_bytes"]
    duration_s = (
        int(requests["issue_ns"][-1]) - int(requests["issue_ns"][0])
    ) / NS_PER_S
    # Percentiles are sizes that occur (nearest ranks).
    ranks = np.quantile(sizes.to_numpy(), (0.5, 0.9, 0.99), method="inverted_cdf")
    return {
        "format": trace.format,
        "source": trace.source,
        "requests": requests.height,
        "read_ratio": int((~requests["is_write"]).sum()) / requests.height,
        "bytes_mean": float(sizes.to_numpy().mean()),
        **{
            f"bytes_p{percent}": size
            for percent, size in zip((50, 90, 99), ranks.tolist(), strict=True)
        },
        "duration_s": duration_s,
        "iops": requests.height / duration_s if duration_s else None,
        "sequential_fraction": sequential_fraction(requests),
        "devices": requests["device"].n_unique(),
        "footprint_bytes": footprint_bytes(requests),
        **_times("service", service_ns(trace)),
        **_times(
            "response",
            (requests["complete_ns"] - requests["issue_ns"]).drop_nulls().to_numpy(),
        ),
        **_times("read_service", service_ns(trace, is_write=False)),
        **_times("write_service", service_ns(trace, is_write=True)),
        **arrivals(requests),
        "sizes": _sizes(requests),
        **_locality(requests),
        **_depth(requests),
        "commands": None if trace.commands is None else trace.commands.height,
        "counts": dict(trace.counts),
        "faults": trace.faults.count,
    }


def service_ns(
    trace: BlockTrace, *, is_write: bool | None = None
) -> npt.NDArray[np.int64]:
    """Return the service times of completed commands, from dispatch to completion.

    Parameters
    ----------
    trace
        Block trace.
    is_write
        Select one direction, or both if None.

    Returns
    -------
    ndarray
        Times [ns], int64, empty if the format records no commands.
    """
    if trace.commands is None:
        return np.empty(0, dtype=np.int64)
    rows = trace.commands
    if is_write is not None:
        rows = rows.filter(rows["is_write"] == is_write)
    span = rows["complete_ns"] - rows["dispatch_ns"]
    return span.drop_nulls().to_numpy()


def follows_before(requests: pl.DataFrame) -> pl.Series:
    """Mark requests that start where the previous one on the same device ended."""
    end = (pl.col("offset_bytes") + pl.col("length_bytes")).shift(1).over("device")
    return requests.select(
        (pl.col("offset_bytes") == end).fill_null(False).alias("follows")
    ).to_series()


def sequential_fraction(requests: pl.DataFrame) -> float:
    """Return the share of requests that start where the previous one on the same device ended."""
    return int(follows_before(requests).sum()) / requests.height


def footprint_bytes(requests: pl.DataFrame) -> int:
    """Return the number of distinct bytes touched: the size of the union of all extents."""
    extents = (
        requests.select(
            "device",
            "offset_bytes",
            (pl.col("offset_bytes") + pl.col("length_bytes")).alias("end"),
        )
        .sort("device", "offset_bytes")
        .with_columns(
            pl.col("end")
            .cum_max()
            .shift(1)
            .over("device")
            .fill_null(0)
            .alias("reached")
        )
        .select(
            (pl.col("end") - pl.max_horizontal("offset_bytes", "reached"))
            .clip(0)
            .sum()
            .alias("bytes")
        )
    )
    return int(extents["bytes"][0])


def arrivals(requests: pl.DataFrame) -> dict[str, Any]:
    """Describe how requests arrive in time.

    Notes
    -----
    The index of dispersion for counts at window w is Var N(w) / E N(w). It is 1 at all windows for a Poisson
    process and grows with w if bursts last. Windows of which fewer than `WINDOWS_MIN` fit are omitted.

    References
    ----------
    Gusella: Characterizing the variability of arrival processes with indexes of dispersion, IEEE JSAC 1991.
    """
    issue = requests["issue_ns"].to_numpy()
    gaps = np.diff(issue)
    some = gaps if gaps.size and gaps.sum() else gaps[:0]
    values: dict[str, Any] = _times("interarrival", some)
    values["interarrival_cv2"] = (
        float(some.var()) / float(some.mean()) ** 2 if some.size else None
    )
    values["dispersion"] = {
        f"{w / NS_PER_S:g}": dispersion(issue, w) for w in windows_ns(issue)
    }
    values["peak_to_mean"] = None
    if WINDOWS_MIN <= (issue[-1] - issue[0]) // NS_PER_S <= WINDOWS_MAX:
        per_second = counts_per_window(issue, int(NS_PER_S))
        values["peak_to_mean"] = float(per_second.max() / per_second.mean())
    return values


def counts_per_window(
    issue_ns: npt.NDArray[np.int64], window_ns: int
) -> npt.NDArray[np.int64]:
    """Return the number of requests in each whole window, starting at the first request."""
    windows = int((issue_ns[-1] - issue_ns[0]) // window_ns)
    index = (issue_ns - issue_ns[0]) // window_ns
    return np.bincount(index[index < windows], minlength=windows).astype(np.int64)


def windows_ns(issue_ns: npt.NDArray[np.int64]) -> list[int]:
    """Return the windows [ns] for the dispersion of a trace, powers of ten from 1 ms."""
    if len(issue_ns) < WINDOWS_MIN:
        return []
    span = int(issue_ns[-1] - issue_ns[0])
    return [
        w for e in range(6, 15) if WINDOWS_MIN <= span // (w := 10**e) <= WINDOWS_MAX
    ]


def dispersion(issue_ns: npt.NDArray[np.int64], window_ns: int) -> float:
    """Return the index of dispersion at one window: variance / mean of requests per window."""
    counts = counts_per_window(issue_ns, window_ns)
    mean = float(counts.mean())
    if mean:
        return float(counts.var()) / mean
    return 0.0


def _sizes(requests: pl.DataFrame) -> list[dict[str, Any]]:
    often = requests.group_by("is_write", "length_bytes").len()
    often = often.sort(
        "len", "length_bytes", "is_write", descending=[True, False, False]
    ).head(SIZES_SHOWN)
    return [
        {
            "op": "write" if is_write else "read",
            "bytes": size,
            "share": count / requests.height,
        }
        for is_write, size, count in often.iter_rows()
    ]


def _locality(requests: pl.DataFrame) -> dict[str, Any]:
    reused = reuse(requests)
    again = reused.distances[reused.distances >= 0]
    half = float(np.median(again)) * BLOCK_BYTES if again.size else None
    ratios = reused.hit_ratio(
        [max(1, round(share * reused.blocks)) for share in CACHE_SHARES]
    )
    return {
        "reuse_ratio": again.size / reused.accesses,
        "reuse_distance_p50_bytes": half,
        "hottest_tenth_share": reused.hottest_tenth_share,
        "hit_ratio": {
            f"{share:g}": float(ratio)
            for share, ratio in zip(CACHE_SHARES, ratios, strict=True)
        },
        "reuse_requests": reused.requests,
    }


def depth_levels(requests: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Return the time [s] spent with each number of requests in flight, empty without completions."""
    known = requests.drop_nulls(["issue_ns", "complete_ns"])
    if not known.height:
        return np.empty(0)
    seconds, _ = in_flight(
        known["issue_ns"].to_numpy(), known["complete_ns"].to_numpy()
    )
    return seconds


def in_flight(
    start_ns: npt.NDArray[np.int64], end_ns: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the time [s] and the number of ends at each number of spans in flight.

    Parameters
    ----------
    start_ns, end_ns
        Spans [ns], at least one, shape (n,).

    Returns
    -------
    tuple of ndarray
        float64 by number in flight, from 0. An end counts at the number before it.
    """
    times = np.concatenate((end_ns, start_ns))
    steps = np.repeat([-1, 1], len(start_ns))
    # At equal times, ends come before starts. A span of zero duration is never in flight.
    order = np.lexsort((steps, times))
    level = np.maximum(np.cumsum(steps[order]), 0)
    before = np.concatenate(([0], level[:-1]))
    levels = int(level.max()) + 1
    gaps_s = np.diff(times[order], prepend=times[order[0]]) / NS_PER_S
    seconds = np.bincount(before, weights=gaps_s, minlength=levels)
    ends = np.bincount(before[steps[order] < 0], minlength=levels)
    return seconds.astype(np.float64), ends.astype(np.float64)


def _depth(requests: pl.DataFrame) -> dict[str, float | None]:
    levels = depth_levels(requests)
    total = float(levels.sum())
    if not total:
        return {"queue_depth_mean": None, "queue_depth_max": None}
    mean = float((levels * np.arange(len(levels))).sum()) / total
    return {
        "queue_depth_mean": mean,
        "queue_depth_max": float(np.flatnonzero(levels).max()),
    }


def _times(name: str, spans_ns: npt.NDArray[np.int64]) -> dict[str, float | None]:
    keys = (f"{name}_mean_us", f"{name}_p50_us", f"{name}_p99_us")
    if not spans_ns.size:
        return dict.fromkeys(keys)
    values = (spans_ns.mean(), *np.quantile(spans_ns, [0.5, 0.99]))
    return {
        key: float(value) / NS_PER_US for key, value in zip(keys, values, strict=True)
    }
