"""Fail each host and each drive of an imported cluster in turn: ``import ceph-report --failures``."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.answers.failures.healing_time import (
    HealingPace,
    healing_paces,
    healing_time,
    rebuilds_count,
)
from stripesim.scenarios.answers.failures.pool_failures import GroupMove, PoolFailures
from stripesim.scenarios.answers.failures.room import Shift, used_after, without_room
from stripesim.scenarios.clusters.cluster import (
    FullRatios,
    ImportedCluster,
    osds_text,
)
from stripesim.scenarios.clusters.usage import data_by_osd
from stripesim.sim.observe.progress import OnStep, silent

FloatArray = npt.NDArray[np.float64]

#: Failures between two steps of the progress.
_STEP: Final = 10

#: A placement group that moves, with its pool.
PoolMove = tuple[PoolFailures, GroupMove]


@dataclass(frozen=True)
class PermanentFailure:
    """A host or a drive that fails for good."""

    kind: Literal["host", "osd"]
    name: str
    osds: tuple[int, ...]


@dataclass(frozen=True)
class Disks:
    """Capacity and use of all OSDs by id, and the ratios at which Ceph warns and refuses."""

    size_bytes: FloatArray
    used_bytes: FloatArray  # once the shards that already move have moved
    ratios: FullRatios

    def fullest(self, used_bytes: FloatArray, failed: Sequence[int]) -> dict[str, Any]:
        """Return the fullest OSD that is left, its fill, and the highest threshold that it exceeds."""
        shares = self.shares(used_bytes)
        shares[list(failed)] = 0.0
        osd = int(np.argmax(shares))
        ratio = float(shares[osd])
        if not ratio:
            return dict.fromkeys(
                ("fullest_osd", "fullest_used_ratio", "full_ratio_reached")
            )
        return {
            "fullest_osd": osd,
            "fullest_used_ratio": ratio,
            "full_ratio_reached": self._reached(ratio),
        }

    def shares(self, used_bytes: FloatArray) -> FloatArray:
        """Return the used share of each OSD, 0 if its size is unknown."""
        shares = np.zeros(len(used_bytes))
        has_size = self.size_bytes > 0
        np.divide(used_bytes, self.size_bytes, out=shares, where=has_size)
        return shares

    def _reached(self, ratio: float) -> str | None:
        for name in ("full", "backfillfull", "nearfull"):
            if ratio > getattr(self.ratios, name):
                return name
        return None


@dataclass
class _Totals:
    """Placement groups and bytes of clients, summed over pools."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, name: str, pool: PoolFailures, groups: Any) -> None:
        self.counts[f"pgs_{name}"] += len(groups)
        self.counts[f"bytes_{name}"] += int(pool.client_bytes[groups].sum())


def failures_of(
    cluster: ImportedCluster, *, progress: OnStep = silent
) -> dict[str, Any]:
    """Fail each host and each drive of a cluster in turn.

    Parameters
    ----------
    cluster
        The cluster.
    progress
        Called before simulations and while failures are computed.

    Returns
    -------
    dict
        ``failures`` and ``before_failure``, as documented in the reference of JSON documents.

    Notes
    -----
    Placement is exact: CRUSH with the failed OSDs marked out, without the upmaps that the monitors would
    drop. A group's bytes are those that the cluster counts, if a file has them (``ceph pg dump``). The time
    to heal follows from one simulated rebuild for each pool and the exact order of reservations.
    """
    pools = [PoolFailures(cluster, pool) for pool in cluster.pools if pool.rule_name]
    failures = possible_failures(cluster)
    steps_count = rebuilds_count(cluster, pools) + math.ceil(len(failures) / _STEP)
    paces, notes = healing_paces(
        cluster, pools, progress=partial(progress, total=steps_count)
    )
    disks = _disks(cluster, pools)
    rows = []
    for number, failure in enumerate(failures):
        if number % _STEP == 0:
            progress(f"failure {number + 1} of {len(failures)}", steps_count)
        rows.append(_row(failure, pools, disks, paces))
    return {
        "failures": rows,
        "before_failure": {
            **disks.fullest(disks.used_bytes, ()),
            "used_ratio": disks.shares(disks.used_bytes).tolist(),
            "nearfull_ratio": cluster.ratios.nearfull,
            "backfillfull_ratio": cluster.ratios.backfillfull,
            "full_ratio": cluster.ratios.full,
            "assumptions": _assumptions(cluster, paces),
            "notes": [*notes, *_pending_notes(pools), *_log_notes(pools)],
        },
    }


def possible_failures(cluster: ImportedCluster) -> list[PermanentFailure]:
    """Return the failure of each host, by name, then of each OSD, by id, if it is up and in."""
    working = [osd for osd in cluster.osds if osd.is_in and osd.up]
    members: dict[str, list[int]] = defaultdict(list)
    for osd in working:
        members[osd.host].append(osd.id)
    hosts = [
        PermanentFailure("host", name, tuple(osds))
        for name, osds in sorted(members.items())
    ]
    return [
        *hosts,
        *(PermanentFailure("osd", f"osd.{osd.id}", (osd.id,)) for osd in working),
    ]


def _row(
    failure: PermanentFailure,
    pools: Sequence[PoolFailures],
    disks: Disks,
    paces: dict[int, HealingPace],
) -> dict[str, Any]:
    """Return the effects of one failure."""
    failed = set(failure.osds)
    totals = _Totals()
    moves: list[PoolMove] = []
    undersized_count = 0
    for pool in pools:
        left = pool.left_without(failed)
        totals.add("at_min_size", pool, left.at_min_size)
        totals.add("inactive", pool, left.inactive)
        totals.add("lost", pool, left.lost)
        moved, undersized = pool.moves_without(failed, left.lost.tolist())
        undersized_count += len(undersized)
        moves += [(pool, move) for move in moved]
    shifts = [_shift(pool, move) for pool, move in moves]
    after = used_after(disks.used_bytes, shifts)
    stuck = _without_room(disks, shifts)
    time = healing_time(moves, paces)
    sizes_bytes = [float(pool.shard_bytes[move.group]) for pool, move in moves]
    shards = [len(move.targets) for _, move in moves]
    return {
        "kind": failure.kind,
        "name": failure.name,
        "osds": list(failure.osds),
        "pgs_moved": len(moves),
        "shards_moved": sum(shards),
        "bytes_moved": round(np.dot(sizes_bytes, shards)),
        **disks.fullest(after, failure.osds),
        "pgs_toofull": len(stuck),
        "bytes_toofull": round(sum(sizes_bytes[i] * shards[i] for i in stuck)),
        "duration_s": None if time is None else time.duration_s,
        "duration_low_s": None if time is None else time.low_s,
        "duration_high_s": None if time is None else time.high_s,
        **totals.counts,
        "pgs_undersized": undersized_count,
        "moves": _columns(moves),
        "use": _use(moves, disks, after, failed),
    }


def _shift(pool: PoolFailures, move: GroupMove) -> Shift:
    size_bytes = float(pool.allocated_bytes[move.group])
    is_backfilled = not pool.has_whole_log[move.group]
    return Shift(move.sources, move.targets, size_bytes, is_backfilled)


def _without_room(disks: Disks, shifts: Sequence[Shift]) -> list[int]:
    """Return the indices of moves that find no room."""
    limit_bytes = disks.size_bytes * disks.ratios.backfillfull
    # An OSD of unknown size refuses nothing.
    full_bytes = disks.size_bytes * disks.ratios.full
    for bytes_of_osds in (limit_bytes, full_bytes):
        bytes_of_osds[disks.size_bytes <= 0] = np.inf
    arriving = [Shift((), shift.targets, shift.shard_bytes) for shift in shifts]
    if (used_after(disks.used_bytes, arriving) <= limit_bytes).all():
        return []
    return without_room(disks.used_bytes, shifts, limit_bytes, full_bytes)


def _columns(moves: Sequence[PoolMove]) -> dict[str, list[Any]]:
    """Return each shard that moves, as columns. A copy that none gave up comes from no OSD."""
    columns: dict[str, list[Any]] = {"pg": [], "from": [], "to": [], "bytes": []}
    for pool, move in moves:
        size_bytes = round(float(pool.shard_bytes[move.group]))
        for source, target in move.steps:
            if target is None:
                continue
            columns["pg"].append(f"{pool.pool.placed.id}.{move.group:x}")
            columns["from"].append(source)
            columns["to"].append(target)
            columns["bytes"].append(size_bytes)
    return columns


def _use(
    moves: Sequence[PoolMove], disks: Disks, after: FloatArray, failed: set[int]
) -> dict[str, list[Any]]:
    """Return what each OSD receives, and its use and fill after, as columns by OSD."""
    received: dict[int, float] = defaultdict(float)
    touched: set[int] = set()
    for pool, move in moves:
        touched.update(move.sources, move.targets)
        for target in move.targets:
            received[target] += float(pool.shard_bytes[move.group])
    osds = sorted(touched.difference(failed))
    return {
        "osd": osds,
        "received_bytes": [round(received[osd]) for osd in osds],
        "used_bytes": [round(float(after[osd])) for osd in osds],
        "used_ratio": disks.shares(after)[osds].tolist(),
    }


def _disks(cluster: ImportedCluster, pools: Sequence[PoolFailures]) -> Disks:
    """Return the capacity of OSDs that are in, and their use once shards that already move have moved."""
    count = len(cluster.osd_map.exists)
    size_bytes = np.zeros(count)
    used_bytes = np.zeros(count)
    data = data_by_osd(cluster)
    for osd in cluster.osds:
        if not osd.is_in:
            continue
        # Ceph's ratios count a separate database device, as in use.
        size_bytes[osd.id] = osd.counted_bytes
        used_bytes[osd.id] = osd.used_bytes or 0
        if osd.used_bytes is None:
            used_bytes[osd.id] = data.get(osd.id, 0.0) + osd.database_bytes
    for pool in pools:
        pending = pool.pending()
        np.add.at(used_bytes, pending.targets, pool.allocated_bytes[pending.groups])
        np.add.at(
            used_bytes, pending.sources, -pool.allocated_bytes[pending.left_groups]
        )
    return Disks(size_bytes, used_bytes, cluster.ratios)


def _pending_notes(pools: Sequence[PoolFailures]) -> list[str]:
    count = sum(pool.pending().groups_count for pool in pools)
    if not count:
        return []
    return [f"{count} placement groups already move; counted at their destination"]


def _log_notes(pools: Sequence[PoolFailures]) -> list[str]:
    count = sum(int(pool.has_whole_log.sum()) for pool in pools)
    if not count:
        return []
    return [
        f"{count} placement groups hold all their writes in their logs: they recover by the log, which no "
        "backfillfull_ratio refuses"
    ]


def _assumptions(
    cluster: ImportedCluster, paces: Mapping[int, HealingPace]
) -> list[str]:
    """List the assumptions behind the numbers of this cluster."""
    sizes = "each placement group has the bytes that the cluster counts"
    uncounted = [
        pool.placed.name
        for pool in cluster.pools
        if pool.placed.id not in cluster.group_data
        and (pool.stored_bytes or pool.omap_bytes)
    ]
    if uncounted:
        sizes = (
            f"placement groups of {', '.join(uncounted)} are equally full: no file has the bytes of each "
            "(add the output of ceph pg dump)"
        )
    lines = [
        "the failed OSDs are marked out and stay out; Ceph does so 10 minutes after they are down "
        "(mon_osd_down_out_interval)",
        sizes,
        "clients write nothing meanwhile, and no balancer runs",
    ]
    returning = np.flatnonzero(cluster.osd_map.returning_osds).tolist()
    if returning:
        lines.append(
            f"OSDs that are down now will be back ({osds_text(returning)}): their shards serve no clients "
            "until then, but are neither lost nor rebuilt elsewhere"
        )
    if not cluster.group_data:
        lines.append(
            "placement groups are backfilled, not recovered by their logs: no file has the start of each log "
            "(add the output of ceph pg dump)"
        )
    if paces:
        slots = next(iter(paces.values())).slots
        lines.append(
            "time to heal: from the moment of out, without clients; one rebuild for each of the pools "
            f"with most objects is simulated, other failures follow their reservations ({slots} for each "
            "OSD, osd_max_backfills); each object waits for the drive's own write and flush of the log, and "
            "a busy drive may take longer"
        )
    return lines
