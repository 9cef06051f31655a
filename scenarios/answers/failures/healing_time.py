"""Estimate how long a cluster takes to heal: one simulated rebuild for each pool, then reservations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from stripesim.models.problems import ProblemsError, first_problem
from stripesim.scenarios.answers.failures.pool_failures import GroupMove, PoolFailures
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.clusters.cluster import ImportedCluster, ImportedPool
from stripesim.scenarios.clusters.pool_workload import load_of, object_bytes_of
from stripesim.scenarios.clusters.scenario import scenario_of, write_scenario
from stripesim.scenarios.clusters.usage import mean_object
from stripesim.scenarios.forms.rebuild import Rebuild, idle_rebuild
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.sim.ceph.failures.background.reservations import Backfill, schedule_s
from stripesim.sim.observe.progress import OnStep

# Scheme, OSDs and size of objects.
_Layout = tuple[str, tuple[int, ...], int]

#: Most pools whose rebuild is simulated, those with most objects first.
POOLS_MAX: Final = 4
#: Objects of each simulated rebuild [count]: seconds of processor time for 1,000 OSDs.
OBJECTS_COUNT: Final = 1600


@dataclass(frozen=True)
class HealingPace:
    """Time that a placement group takes to rebuild a shard, once it has its reservations.

    Attributes
    ----------
    start_s
        Time before the first and after the last shard moves: rounds of the map, peering [s].
    s_per_byte
        Time for each byte of the shard [s/B].
    low, high
        Ends of the 95 % interval, over the mean. None without an interval.
    slots
        Placement groups that an OSD leads, and again that it receives, at a time (``osd_max_backfills``).
    """

    start_s: float
    s_per_byte: float
    low: float | None
    high: float | None
    slots: int


@dataclass(frozen=True)
class HealingTime:
    """Time from the moment when OSDs are marked out until all their shards are rebuilt [s]."""

    duration_s: float
    low_s: float | None
    high_s: float | None


def healing_paces(
    cluster: ImportedCluster, pools: Sequence[PoolFailures], *, progress: OnStep
) -> tuple[dict[int, HealingPace], list[str]]:
    """Simulate the rebuild of an OSD for the pools with most objects.

    Parameters
    ----------
    cluster
        The cluster.
    pools
        Its pools.
    progress
        Called before each simulation.

    Returns
    -------
    paces
        The pace of each pool with data, by the pool's id. A pool that is not simulated has that of the pool
        with the most similar objects.
    notes
        Reasons why pools are not simulated.
    """
    layouts = _layouts(cluster, pools)
    paces: dict[int, HealingPace] = {}
    by_layout: dict[_Layout, HealingPace | None] = {}
    notes = []
    for each, layout in layouts:
        pool = each.pool
        if layout not in by_layout and len(by_layout) < POOLS_MAX:
            progress(f"rebuild of pool {pool.placed.name}")
            by_layout[layout], reason = _simulated_pace(cluster, each)
            if reason:
                notes.append(f"pool {pool.placed.name}: not simulated: {reason}")
    known = {layout: pace for layout, pace in by_layout.items() if pace is not None}
    for each, layout in layouts if known else ():
        nearest = min(known, key=partial(_size_ratio, layout))
        paces[each.pool.placed.id] = known.get(layout, known[nearest])
    return paces, notes


def rebuilds_count(cluster: ImportedCluster, pools: Sequence[PoolFailures]) -> int:
    """Return how many rebuilds `healing_paces` simulates."""
    layouts = {layout for _, layout in _layouts(cluster, pools)}
    return min(POOLS_MAX, len(layouts))


def _layouts(
    cluster: ImportedCluster, pools: Sequence[PoolFailures]
) -> list[tuple[PoolFailures, _Layout]]:
    """Return the pools with data and their layouts. Each object takes time, so those with most come first."""

    def objects_count(item: tuple[PoolFailures, _Layout]) -> float:
        each, (_, _, object_bytes) = item
        return float(each.client_bytes.sum()) / object_bytes

    filled = [
        (each, _layout(cluster, each)) for each in pools if each.shard_bytes.any()
    ]
    return sorted(filled, key=objects_count, reverse=True)


def _layout(cluster: ImportedCluster, each: PoolFailures) -> _Layout:
    """Return what pools share that rebuild at the same pace."""
    load = load_of(cluster, each.pool)
    object_bytes = object_bytes_of(mean_object((each.pool,)), each.pool, load)
    return each.pool.scheme, each.pool.osds, object_bytes


def _size_ratio(layout: _Layout, other: _Layout) -> float:
    """Return by how much the sizes of two layouts' objects differ, 1 if they are equal."""
    sizes = sorted((layout[-1], other[-1]))
    return sizes[1] / sizes[0]


def healing_time(
    moves: Sequence[tuple[PoolFailures, GroupMove]], paces: dict[int, HealingPace]
) -> HealingTime | None:
    """Return the time that placement groups need under their reservations, or None if no pace is known.

    Parameters
    ----------
    moves
        Groups that move, each with its pool.
    paces
        What `healing_paces` returns.
    """
    backfills = []
    times_s = []
    for pool, move in moves:
        size_bytes = float(pool.shard_bytes[move.group])
        if not size_bytes:
            continue
        pace = paces.get(pool.pool.placed.id)
        if pace is None:
            return None
        backfills.append(_backfill(move))
        times_s.append(size_bytes * pace.s_per_byte)
    if not backfills:
        return HealingTime(0.0, 0.0, 0.0)
    first = next(iter(paces.values()))
    duration_s = schedule_s(backfills, group_s=times_s, slots=first.slots)
    if first.low is None or first.high is None:
        return HealingTime(first.start_s + duration_s, None, None)
    return HealingTime(
        first.start_s + duration_s,
        first.start_s + duration_s * first.low,
        first.start_s + duration_s * first.high,
    )


def _backfill(move: GroupMove) -> Backfill:
    targets = tuple(osd for osd in move.targets if osd != move.lead)
    return Backfill(move.lead, targets)


def _simulated_pace(
    cluster: ImportedCluster, pool: PoolFailures
) -> tuple[HealingPace | None, str]:
    """Return the pace of a pool by a simulated rebuild, or the reason why there is none."""
    try:
        with TemporaryDirectory() as folder:
            scenario = _loaded(cluster, pool.pool, Path(folder))
            rebuild = idle_rebuild(
                scenario, pool.pool.scheme, sample_objects=OBJECTS_COUNT
            )
            slots = limits_of(scenario).max_backfills_count
    except ProblemsError as problem:
        return None, first_problem(problem)
    if rebuild.reason is not None:
        return None, rebuild.reason
    return _pace(pool, rebuild, slots)


def _loaded(cluster: ImportedCluster, pool: ImportedPool, folder: Path) -> Scenario:
    """Return the scenario of a pool."""
    path = folder / "pool.toml"
    write_scenario(scenario_of(cluster, pool, "pool.crush.txt"), path)
    return load_scenario(str(path))


def _pace(
    pool: PoolFailures, rebuild: Rebuild, slots: int
) -> tuple[HealingPace | None, str]:
    """Divide the time of a rebuild by the bytes that its longest chain of reservations moves.

    The simulated pool has equally full groups, so the chain is counted in groups. Those that CRUSH only moves
    come after the rebuild.
    """
    pace = rebuild.pace_bytes_per_s or rebuild.bytes_per_s
    all_moves, _ = pool.moves_without(rebuild.lost_osds, lost=())
    failed = set(rebuild.lost_osds)
    moves = [move for move in all_moves if not failed.isdisjoint(move.sources)]
    turns = schedule_s([_backfill(move) for move in moves], group_s=1.0, slots=slots)
    if not pace or not turns:
        return (
            None,
            "its rebuild does not finish; it counts at the pace of another pool",
        )
    # The groups lost len(moves) shards of equal size, and the chain moves `turns` of them.
    s_per_byte = len(moves) / (turns * pace)
    low = high = None
    if rebuild.pace_low and rebuild.pace_high:
        low = pace / rebuild.pace_high
        high = pace / rebuild.pace_low
    start_s = max(0.0, (rebuild.seconds or 0.0) - rebuild.lost_bytes / pace)
    return HealingPace(start_s, s_per_byte, low, high, slots), ""
