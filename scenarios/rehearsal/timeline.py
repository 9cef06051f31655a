"""Follow a rehearsal over time, at the pace of the complete pool: fill, PG states, clients and recovery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.rehearsal.samples import Sample
from stripesim.sim.ceph.failures.groups import State

Floats = npt.NDArray[np.float64]

# Moments of the timeline, and OSDs shown one by one [count].
_MOMENTS: Final = 160
_OSDS_MAX: Final = 40
# Fewest requests in a bin of the clients' series, and its bins [count].
_BIN_REQUESTS: Final = 1_000
_BINS: Final = (16, 160)
_QUANTILES: Final = {"min": 0.0, "p5": 0.05, "median": 0.5, "p95": 0.95, "max": 1.0}


@dataclass(frozen=True)
class TimeScale:
    """Maps the time of a sample to that of the complete pool, piece by piece.

    Only the time in which objects move is longer in the complete pool. The quiet times and the peering before
    the first object and after the last one keep their lengths.
    """

    sampled_s: Floats  #: Times in the sample, ascending [s]
    whole_s: Floats  #: The same moments in the complete pool, ascending [s]
    is_stretched: bool

    def to_whole(self, time_s: npt.ArrayLike) -> Floats:
        """Return the moments of the complete pool [s]."""
        return np.interp(time_s, self.sampled_s, self.whole_s)

    def to_sampled(self, time_s: npt.ArrayLike) -> Floats:
        """Return the moments of the sample [s]."""
        return np.interp(time_s, self.whole_s, self.sampled_s)


def time_scale(sample: Sample, durations_s: Sequence[float | None]) -> TimeScale | None:
    """Return the scale of a sample, or None if a change begins before the previous one is clean."""
    knots = [(0.0, 0.0)]
    is_stretched = False
    for row, duration_s in zip(sample.rows, durations_s, strict=False):
        last_s, last_whole_s = knots[-1]
        begin_s = row["at_s"]
        if begin_s < last_s:
            return None
        begin_whole_s = last_whole_s + begin_s - last_s
        knots.append((begin_s, begin_whole_s))
        clean_s = row["clean_s"]
        moved = row["backfills"]
        if clean_s is None or duration_s is None or not moved["pg"]:
            if clean_s is not None:
                knots.append((clean_s, begin_whole_s + clean_s - begin_s))
            continue
        end_whole_s = begin_whole_s + duration_s
        first_s = min(moved["start_s"])
        final_s = max(moved["end_s"])
        final_whole_s = end_whole_s - (clean_s - final_s)
        knots.append((first_s, begin_whole_s + first_s - begin_s))
        knots.append((final_s, final_whole_s))
        knots.append((clean_s, end_whole_s))
        is_stretched |= duration_s > 1.01 * row["duration_s"]
    last_s, last_whole_s = knots[-1]
    end_s = max(sample.end_ns / 1e9, last_s)
    knots.append((end_s, last_whole_s + end_s - last_s))
    sampled_s, whole_s = np.array(knots).T
    return TimeScale(sampled_s, np.maximum.accumulate(whole_s), is_stretched)


def timeline_of(
    sample: Sample, durations_s: Sequence[float | None]
) -> dict[str, Any] | None:
    """Return the course of a rehearsal with its first settings.

    Parameters
    ----------
    sample
        A simulation of a part of the pool.
    durations_s
        Duration of each change with all objects [s].

    Returns
    -------
    dict or None
        ``time_s``, ``pg_states``, ``recovery``, ``clients`` and ``fill`` at the pace of the complete pool,
        and ``changes`` with the moments of each change. None if changes overlap.
    """
    scale = time_scale(sample, durations_s)
    if scale is None:
        return None
    last_s = max(
        (row["clean_s"] or sample.end_ns / 1e9 for row in sample.rows), default=0.0
    )
    last_s = min(last_s + 0.5, sample.end_ns / 1e9)
    edges_s = np.linspace(0.0, float(scale.to_whole(last_s)), _MOMENTS + 1)
    middle_s = (edges_s[1:] + edges_s[:-1]) / 2
    fill = _fill(sample, scale, middle_s)
    begins_s = [float(scale.to_whole(row["at_s"])) for row in sample.rows]
    changes: list[dict[str, Any]] = []
    for index in range(len(durations_s)):
        if index >= len(sample.rows):
            changes.append({"peak_at_s": None, "crossings": []})
            continue
        changes.append(_moments(sample, scale, index))
    return {
        "time_s": middle_s.tolist(),
        "begins_s": begins_s,
        "is_extrapolated": scale.is_stretched,
        "pg_states": _pg_states(sample, scale, middle_s),
        "recovery": _recovery(sample, scale, edges_s),
        "clients": _clients(sample, scale, float(edges_s[-1])),
        "fill": fill,
        "changes": changes,
    }


def _pg_states(sample: Sample, scale: TimeScale, middle_s: Floats) -> dict[str, Any]:
    """Count PGs by state. In an extrapolated timeline PGs that peer beside moving objects count as clean."""
    table = sample.pg_states
    times_s = np.array(table["time_s"])
    at = np.searchsorted(times_s, scale.to_sampled(middle_s), side="right") - 1
    counts = {str(state): np.array(table[state])[np.maximum(at, 0)] for state in State}
    if scale.is_stretched:
        # Each PG peers for about a second, which a sample would stretch with everything else.
        for state in (State.PEERING, State.WAIT):
            counts[str(State.CLEAN)] = counts[str(State.CLEAN)] + counts[str(state)]
            counts[str(state)] = np.zeros_like(counts[str(state)])
    return {state: values.tolist() for state, values in counts.items() if values.any()}


def _recovery(sample: Sample, scale: TimeScale, edges_s: Floats) -> dict[str, Any]:
    """Return bytes moved per second, so that their sum is that of the complete pool."""
    series = sample.recovery
    times_s = np.array(series["time_s"])
    width_s = 1.0
    if len(times_s) > 1:
        width_s = float(times_s[1] - times_s[0])
    ends_s = np.append(times_s, times_s[-1] + width_s)
    scaled = {}
    for name, rates in series.items():
        if name == "time_s":
            continue
        moved = np.append(0.0, np.cumsum(rates)) * width_s
        of_edges = np.interp(scale.to_sampled(edges_s), ends_s, moved)
        scaled[name] = (
            sample.objects_ratio * np.diff(of_edges) / np.diff(edges_s)
        ).tolist()
    return scaled


def _clients(sample: Sample, scale: TimeScale, end_s: float) -> dict[str, Any] | None:
    """Return rate and latencies of clients; if extrapolated, of requests whose PG did not peer."""
    if not sample.has_load:
        return None
    requested = sample.requested
    counted = requested.done.copy()
    if scale.is_stretched:
        counted &= ~sample.blocked
    completed_s = scale.to_whole(requested.completed_ns[counted] / 1e9)
    latencies_ns = (requested.completed_ns - requested.issued_ns)[counted]
    bins_count = int(np.clip(len(completed_s) // _BIN_REQUESTS, *_BINS))
    # Bins with about as many requests each: quiet times are short in the complete pool.
    edges_s = np.linspace(0.0, end_s, bins_count + 1)
    sampled_s = np.diff(scale.to_sampled(edges_s))
    bin_of = np.searchsorted(edges_s[1:-1], completed_s, side="right")
    iops: list[float | None] = []
    p50s_ns: list[float | None] = []
    p99s_ns: list[float | None] = []
    for index in range(bins_count):
        mine_ns = latencies_ns[bin_of == index]
        if len(mine_ns) < 2:
            iops.append(None if scale.is_stretched else 0.0)
            p50s_ns.append(None)
            p99s_ns.append(None)
            continue
        rate = len(mine_ns) / float(sampled_s[index])
        if scale.is_stretched and sample.in_flight_count is not None:
            rate = sample.in_flight_count / (float(mine_ns.mean()) / 1e9)
        iops.append(rate)
        p50_ns, p99_ns = np.percentile(mine_ns, [50, 99]).tolist()
        p50s_ns.append(p50_ns)
        p99s_ns.append(p99_ns)
    return {
        "time_s": ((edges_s[1:] + edges_s[:-1]) / 2).tolist(),
        "iops": iops,
        "latency_p50_ns": p50s_ns,
        "latency_p99_ns": p99s_ns,
    }


def _fill(sample: Sample, scale: TimeScale, middle_s: Floats) -> dict[str, Any] | None:
    """Return the used share of the fullest OSDs over time, and its distribution over all OSDs."""
    if sample.fill is None:
        return None
    used = sample.fill.used_bytes.astype(np.float64).copy()
    columns = [sample.history[key] for key in ("time_s", "osd", "used_bytes")]
    times_s = scale.to_sampled(middle_s)
    shares = np.empty((len(times_s), len(used)))
    position = 0
    for moment, time_s in enumerate(times_s):
        while position < len(columns[0]) and columns[0][position] <= time_s:
            used[columns[1][position]] = columns[2][position]
            position += 1
        shares[moment] = used / sample.fill.capacity_bytes
    peaks = shares.max(axis=0)
    fullest = np.argsort(-peaks, kind="stable")[:_OSDS_MAX]
    osds = np.sort(fullest) if len(used) <= _OSDS_MAX else fullest
    return {
        "osds": osds.tolist(),
        "osds_count": len(used),
        "used_ratio": shares[:, osds].T.round(4).tolist(),
        "distribution": {
            name: np.quantile(shares, share, axis=1).round(4).tolist()
            for name, share in _QUANTILES.items()
        },
        "nearfull_ratio": sample.fill.nearfull_ratio,
        "backfillfull_ratio": sample.fill.backfillfull_ratio,
        "full_ratio": sample.fill.full_ratio,
    }


def _moments(sample: Sample, scale: TimeScale, index: int) -> dict[str, Any]:
    """Return when the fullest OSD is fullest, and when OSDs cross a threshold, after a command [s]."""
    moments: dict[str, Any] = {"peak_at_s": None, "crossings": []}
    ratios = sample.peak_ratios(index)
    if sample.fill is None or ratios is None:
        return moments
    row = sample.rows[index]
    begin_s = row["at_s"]
    begin_whole_s = float(scale.to_whole(begin_s))
    fullest = int(ratios.argmax())
    # The fullest OSD may be so before the change, and lose data.
    moments["peak_at_s"] = 0.0
    peak_bytes = float(ratios[fullest]) * float(sample.fill.capacity_bytes[fullest])
    columns = (sample.history[key] for key in ("time_s", "osd", "used_bytes"))
    for time_s, osd, used_bytes in zip(*columns, strict=True):
        within = begin_s <= time_s <= sample.end_s(index)
        if within and osd == fullest and used_bytes >= peak_bytes - 1:
            moments["peak_at_s"] = float(scale.to_whole(time_s)) - begin_whole_s
            break
    moments["crossings"] = [
        _crossing(crossing, scale, begin_whole_s)
        for crossing in sample.history["crossings"]
        if begin_s <= crossing["time_s"] <= sample.end_s(index)
    ]
    return moments


def _crossing(
    crossing: Mapping[str, Any], scale: TimeScale, begin_whole_s: float
) -> dict[str, Any]:
    time_s = float(scale.to_whole(crossing["time_s"])) - begin_whole_s
    return {"osd": crossing["osd"], "state": crossing["state"], "time_s": time_s}
