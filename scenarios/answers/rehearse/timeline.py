"""Follow a rehearsal over time, at the pace of the complete pool: fill, PG states, clients and recovery."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.models.placement import Movement
from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.finished_run import BoolArray
from stripesim.sim.engine.graph import IntArray

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
        times_s = np.asarray(time_s, dtype=np.float64)
        return np.asarray(np.interp(times_s, self.sampled_s, self.whole_s))

    def to_sampled(self, time_s: npt.ArrayLike) -> Floats:
        """Return the moments of the sample [s]."""
        times_s = np.asarray(time_s, dtype=np.float64)
        return np.asarray(np.interp(times_s, self.whole_s, self.sampled_s))


@dataclass(frozen=True)
class BackfillCourse:
    """Shards that a change moves, with the times of their PGs in the complete pool."""

    movement: Movement
    #: Start and end of the backfill of each PG that moves, ascending by PG, in parts of the whole [0 to 1]
    spans: Sequence[tuple[float, float]]


def time_scale(sample: Sample, durations_s: Sequence[float | None]) -> TimeScale:
    """Return the scale of a sample whose changes do not overlap.

    `durations_s` is the duration of each change with all objects [s], or, if the cluster never becomes clean,
    the time until its last backfill ends.
    """
    knots = [(0.0, 0.0)]
    is_stretched = False
    for row, duration_s in zip(sample.rows, durations_s, strict=False):
        last_s, last_whole_s = knots[-1]
        begin_s = row["at_s"]
        begin_whole_s = last_whole_s + begin_s - last_s
        knots.append((begin_s, begin_whole_s))
        clean_s = row["clean_s"]
        moved = row["backfills"]
        if duration_s is None or not moved["pg"]:
            if clean_s is not None:
                knots.append((clean_s, begin_whole_s + clean_s - begin_s))
            continue
        end_whole_s = begin_whole_s + duration_s
        first_s = min(moved["start_s"])
        final_s = max(moved["end_s"])
        end_s = final_s if clean_s is None else clean_s
        final_whole_s = end_whole_s - (end_s - final_s)
        knots.append((first_s, begin_whole_s + first_s - begin_s))
        knots.append((final_s, final_whole_s))
        knots.append((end_s, end_whole_s))
        is_stretched |= duration_s > 1.01 * (end_s - begin_s)
    last_s, last_whole_s = knots[-1]
    end_s = max(sample.end_ns / 1e9, last_s)
    knots.append((end_s, last_whole_s + end_s - last_s))
    sampled_s, whole_s = np.array(knots).T
    return TimeScale(sampled_s, np.maximum.accumulate(whole_s), is_stretched)


def timeline_of(
    sample: Sample,
    durations_s: Sequence[float | None],
    courses: Sequence[BackfillCourse],
) -> dict[str, Any] | None:
    """Return the course of a rehearsal with its first settings.

    Parameters
    ----------
    sample
        A simulation of a part of the pool.
    durations_s
        Duration of each change with all objects [s]. See `time_scale`.
    courses
        Shards that each change moves, and the schedule of the complete pool.

    Returns
    -------
    dict or None
        ``time_s``, ``pg_states``, ``recovery``, ``clients`` and ``fill`` at the pace of the complete pool,
        and ``changes`` with the moments of each change. None if changes overlap.

    Notes
    -----
    An extrapolated timeline follows the schedule of full-size PGs: a shard fills its target steadily and
    leaves its source at the end. In the simulated part, PGs are so small that they mostly wait for maps.
    """
    if sample.has_overlap:
        return None
    scale = time_scale(sample, durations_s)
    last_s = max((_last_s(sample, row) for row in sample.rows), default=0.0)
    last_s = min(last_s + 0.5, sample.end_ns / 1e9)
    edges_s = np.linspace(0.0, float(scale.to_whole(last_s)), _MOMENTS + 1)
    middle_s = (edges_s[1:] + edges_s[:-1]) / 2
    moving = None
    is_clean = all(row["clean_s"] is not None for row in sample.rows)
    is_clean &= all(duration_s is not None for duration_s in durations_s)
    if scale.is_stretched and is_clean:
        moving = _moving(sample, scale, courses)
    shares = None
    if sample.fill is not None:
        fill_s = middle_s.copy()
        if not is_clean:
            # What the last backfill fills counts as well.
            fill_s[-1] = edges_s[-1]
        shares = _shares(sample, scale, fill_s, moving)
    changes = [
        _moments(sample, scale, index, middle_s, shares)
        for index in range(len(durations_s))
    ]
    return {
        "time_s": middle_s.tolist(),
        "begins_s": [float(scale.to_whole(row["at_s"])) for row in sample.rows],
        "is_extrapolated": scale.is_stretched,
        "pg_states": _pg_states(sample, scale, middle_s, moving),
        "recovery": _recovery(sample, scale, edges_s, moving),
        "clients": _clients(sample, scale, float(edges_s[-1])),
        "fill": None if shares is None else _fill(sample, shares),
        "changes": changes,
    }


def _last_s(sample: Sample, row: Mapping[str, Any]) -> float:
    """Return when the cluster is clean, or when its last backfill ends if it never is [s].

    Backfills that never end have no pace in the complete pool.
    """
    if row["clean_s"] is not None:
        return float(row["clean_s"])
    return max(row["backfills"]["end_s"], default=sample.end_ns / 1e9)


@dataclass(frozen=True)
class _Moving:
    """PGs and shards that move, with the times of their backfills [s]."""

    waits_from_s: Floats  # Time of the new map, by PG.
    starts_s: Floats  # By PG.
    ends_s: Floats  # By PG.
    targets: IntArray  # OSD that each shard fills.
    target_groups: IntArray  # Index of its PG.
    sources: IntArray  # OSD that each shard leaves.
    source_groups: IntArray  # Index of its PG.

    def done(self, times_s: Floats) -> Floats:
        """Return the share of each PG that is backfilled, shape (times, PGs)."""
        lengths_s = np.maximum(self.ends_s - self.starts_s, 1e-9)
        share: Floats = np.clip(
            (times_s[:, None] - self.starts_s) / lengths_s, 0.0, 1.0
        )
        return share


def _moving(
    sample: Sample, scale: TimeScale, courses: Sequence[BackfillCourse]
) -> _Moving:
    """Place the schedule of each change between its first and its last object."""
    columns: dict[str, list[npt.NDArray[Any]]] = {
        field.name: [np.zeros(0)] for field in fields(_Moving)
    }
    groups_before = 0
    for row, course in zip(sample.rows, courses, strict=True):
        moved = row["backfills"]
        if not moved["pg"]:
            continue
        movement = course.movement
        groups = np.unique(movement.groups)
        first_s, last_s = scale.to_whole([min(moved["start_s"]), max(moved["end_s"])])
        spans = np.array(course.spans) * (last_s - first_s) + first_s
        map_s = float(scale.to_whole(row["map_s"]))
        # A shard of a PG that nothing fills leaves without a backfill.
        leaves = np.isin(movement.left_groups, groups)
        columns["waits_from_s"].append(np.full(len(groups), map_s))
        columns["starts_s"].append(spans[:, 0])
        columns["ends_s"].append(spans[:, 1])
        columns["targets"].append(movement.targets)
        of_targets = np.searchsorted(groups, movement.groups)
        columns["target_groups"].append(of_targets + groups_before)
        columns["sources"].append(movement.sources[leaves])
        of_sources = np.searchsorted(groups, movement.left_groups[leaves])
        columns["source_groups"].append(of_sources + groups_before)
        groups_before += len(groups)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    for name in ("targets", "target_groups", "sources", "source_groups"):
        joined[name] = joined[name].astype(np.int64)
    return _Moving(**joined)


def _pg_states(
    sample: Sample, scale: TimeScale, middle_s: Floats, moving: _Moving | None
) -> dict[str, Any]:
    """Count PGs by state. An extrapolated timeline has no peering, which takes a second or two."""
    table = sample.pg_states
    if moving is not None:
        total = sum(table[state][0] for state in State)
        time_s = middle_s[:, None]
        waiting = ((moving.waits_from_s <= time_s) & (time_s < moving.starts_s)).sum(
            axis=1
        )
        filling = ((moving.starts_s <= time_s) & (time_s < moving.ends_s)).sum(axis=1)
        counts = {
            str(State.CLEAN): total - waiting - filling,
            str(State.BACKFILL_WAIT): waiting,
            str(State.BACKFILLING): filling,
        }
        return {state: values.tolist() for state, values in counts.items()}
    times_s = np.array(table["time_s"])
    at = np.searchsorted(times_s, scale.to_sampled(middle_s), side="right") - 1
    counts = {str(state): np.array(table[state])[np.maximum(at, 0)] for state in State}
    return {state: values.tolist() for state, values in counts.items() if values.any()}


def _recovery(
    sample: Sample, scale: TimeScale, edges_s: Floats, moving: _Moving | None
) -> dict[str, Any]:
    """Return bytes moved per second, so that their sum is that of the complete pool."""
    series = sample.recovery
    times_s = np.array(series["time_s"])
    width_s = 1.0
    if len(times_s) > 1:
        width_s = float(times_s[1] - times_s[0])
    ends_s = np.append(times_s, times_s[-1] + width_s)
    scaled = {}
    done = None
    if moving is not None:
        done = moving.done(edges_s)[:, moving.target_groups].sum(axis=1)
        done /= max(1, len(moving.targets))
    for name, rates in series.items():
        if name == "time_s":
            continue
        moved = np.append(0.0, np.cumsum(rates)) * width_s
        of_edges = np.interp(scale.to_sampled(edges_s), ends_s, moved)
        if done is not None:
            of_edges = moved[-1] * done
        per_s = sample.objects_ratio * np.diff(of_edges) / np.diff(edges_s)
        scaled[name] = per_s.tolist()
    return scaled


def _clients(sample: Sample, scale: TimeScale, end_s: float) -> dict[str, Any] | None:
    """Return rate and latencies of clients; if extrapolated, of requests that peering did not delay."""
    if not sample.has_load:
        return None
    requested = sample.requested
    counted = requested.done.copy()
    if scale.is_stretched:
        counted &= ~_delayed_by_peering(sample)
    counted &= requested.completed_ns / 1e9 <= float(scale.to_sampled(end_s))
    completed_s = scale.to_whole(requested.completed_ns[counted] / 1e9)
    latencies_ns = (requested.completed_ns - requested.issued_ns)[counted]
    bins_count = int(np.clip(len(completed_s) // _BIN_REQUESTS, *_BINS))
    # Bins with about as many requests each: quiet times are short in the complete pool.
    edges_s = np.linspace(0.0, end_s, bins_count + 1)
    sampled_s = np.diff(scale.to_sampled(edges_s))
    bin_of = np.searchsorted(edges_s[1:-1], completed_s, side="right")
    issued_s = scale.to_whole(requested.issued_ns[requested.done] / 1e9)
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
        elif scale.is_stretched:
            # Requests that arrive at given times are as many as in the sample, delayed or not.
            arrived = (issued_s >= edges_s[index]) & (issued_s < edges_s[index + 1])
            rate = float(arrived.sum()) / float(sampled_s[index])
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


def _delayed_by_peering(sample: Sample) -> BoolArray:
    """Mark requests that waited for a PG to peer, or were issued before the backlog of peering was gone."""
    issued_s = sample.requested.issued_ns / 1e9
    delayed = sample.blocked.copy()
    for row in sample.rows:
        begins = [row["at_s"]]
        if row["backfills"]["pg"]:
            begins.append(min(row["backfills"]["start_s"]))
        if row["clean_s"] is not None:
            begins.append(row["clean_s"])
        for begin_s in begins:
            calm_s = sample.calm_s(begin_s)
            delayed |= (issued_s >= begin_s) & (issued_s < calm_s)
    return delayed


def _shares(
    sample: Sample, scale: TimeScale, times_s: Floats, moving: _Moving | None
) -> Floats:
    """Return the used share of each OSD over time, shape (times, OSDs)."""
    assert sample.fill is not None
    used = sample.fill.used_bytes.astype(np.float64).copy()
    if moving is not None:
        done = moving.done(times_s)
        shard_bytes = float(sample.fill.shard_bytes * sample.group_objects_count)
        over_time = np.tile(used, (len(times_s), 1))
        arrived = done[:, moving.target_groups] * shard_bytes
        left = (done[:, moving.source_groups] >= 1.0) * shard_bytes
        for moment in range(len(times_s)):
            np.add.at(over_time[moment], moving.targets, arrived[moment])
            np.subtract.at(over_time[moment], moving.sources, left[moment])
        return over_time / sample.fill.capacity_bytes
    columns = [sample.history[key] for key in ("time_s", "osd", "used_bytes")]
    shares = np.empty((len(times_s), len(used)))
    position = 0
    for moment, time_s in enumerate(scale.to_sampled(times_s)):
        while position < len(columns[0]) and columns[0][position] <= time_s:
            used[columns[1][position]] = columns[2][position]
            position += 1
        shares[moment] = used / sample.fill.capacity_bytes
    return shares


def _fill(sample: Sample, shares: Floats) -> dict[str, Any]:
    """Return the used share of the fullest OSDs over time, and its distribution over all OSDs."""
    assert sample.fill is not None
    osds_count = shares.shape[1]
    fullest = np.argsort(-shares.max(axis=0), kind="stable")[:_OSDS_MAX]
    osds = np.sort(fullest) if osds_count <= _OSDS_MAX else fullest
    return {
        "osds": osds.tolist(),
        "osds_count": osds_count,
        "used_ratio": shares[:, osds].T.round(4).tolist(),
        "distribution": {
            name: np.quantile(shares, share, axis=1).round(4).tolist()
            for name, share in _QUANTILES.items()
        },
        "nearfull_ratio": sample.fill.nearfull_ratio,
        "backfillfull_ratio": sample.fill.backfillfull_ratio,
        "full_ratio": sample.fill.full_ratio,
    }


def _moments(
    sample: Sample,
    scale: TimeScale,
    index: int,
    middle_s: Floats,
    shares: Floats | None,
) -> dict[str, Any]:
    """Return when the fullest OSD is fullest, and when OSDs cross a threshold, after a command [s]."""
    moments: dict[str, Any] = {"peak_at_s": None, "crossings": []}
    ratios = sample.peak_ratios(index)
    if sample.fill is None or shares is None or ratios is None:
        return moments
    begin_s = float(scale.to_whole(sample.rows[index]["at_s"]))
    end_s = float(scale.to_whole(sample.end_s(index)))
    within = np.flatnonzero((middle_s >= begin_s) & (middle_s <= end_s))
    if not len(within):
        return moments
    before = shares[max(0, within[0] - 1)]
    fullest = int(ratios.argmax())
    mine = shares[within, fullest]
    peak = int(mine.argmax())
    moments["peak_at_s"] = 0.0
    if mine[peak] > before[fullest]:
        moments["peak_at_s"] = float(middle_s[within[peak]]) - begin_s
    thresholds = {
        "nearfull": sample.fill.nearfull_ratio,
        "backfillfull": sample.fill.backfillfull_ratio,
        "full": sample.fill.full_ratio,
    }
    for state, ratio in thresholds.items():
        above = shares[within] >= ratio
        crosses = above.any(axis=0) & (before < ratio)
        for osd in np.flatnonzero(crosses).tolist():
            moment = within[int(above[:, osd].argmax())]
            time_s = float(middle_s[moment]) - begin_s
            crossing = {"osd": osd, "state": state, "time_s": time_s}
            moments["crossings"].append(crossing)
    return moments
