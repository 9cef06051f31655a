"""Shared state of all parts of a run under faults: clock, map, PGs and actions for the engine."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim.models.placement import OsdWeights
from stripesim.models.recovery import RecoveryModel
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.cluster_map import ClusterMap
from stripesim.sim.ceph.failures.fullness import Fullness
from stripesim.sim.ceph.failures.groups import Group, PgLog, State
from stripesim.sim.ceph.failures.plan import FaultPlan
from stripesim.sim.ceph.failures.timeline import FaultTimeline
from stripesim.sim.ceph.layout import EngineGroups, ImageGroups
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.program import Action, SetGroup

# Writes of an object whose history is unknown: more than any log holds.
_UNKNOWN_WRITES_COUNT = 1 << 20


class Clock:
    """The current time, and handlers to call later, by time, then in the order in which they were set."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._entries: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._set_count = 0

    def at(self, time_ns: int, handler: Callable[..., None], *arguments: Any) -> None:
        """Call ``handler(*arguments)`` at a time [ns]."""
        heapq.heappush(self._entries, (time_ns, self._set_count, handler, arguments))
        self._set_count += 1

    def after(self, delay_ns: int, handler: Callable[..., None], *args: Any) -> None:
        """Call ``handler(*args)`` after a delay [ns]."""
        self.at(self.now_ns + delay_ns, handler, *args)

    def next_ns(self) -> int | None:
        """Return the time of the next handler [ns]."""
        return self._entries[0][0] if self._entries else None

    def run_due(self) -> None:
        """Call all handlers due now, including those set meanwhile."""
        while self._entries and self._entries[0][0] <= self.now_ns:
            _, _, handler, arguments = heapq.heappop(self._entries)
            handler(*arguments)


class EngineActions:
    """Collects the actions of one moment.

    Reads and writes of clients and background work of a PG are separate groups of the engine. A request of
    clients that needs several PGs waits while one of them does not serve. While writes are paused, they wait
    whatever the state of their PGs.
    """

    def __init__(self, groups: EngineGroups) -> None:
        self._groups = groups
        self._actions: list[Action] = []
        self._writes_are_paused = False
        self._writes = frozenset(groups.of_writes)
        self._held_pgs: set[int] = set()
        # PGs that hold each group of the engine, where there are any [count].
        self._holding_count: Counter[int] = Counter()

    def shadow(self, group: int) -> int:
        """Return the engine's group for a PG's background work."""
        return self._groups.background(group)

    def hold(self, group: int) -> None:
        """Cut off the requests of clients to a PG, and hold them."""
        parts = self._groups.of_pg(group)
        if group not in self._held_pgs:
            self._held_pgs.add(group)
            self._holding_count.update(parts)
        for part in parts:
            self._actions.append(SetGroup(part, held=True, interrupt=True))

    def release(self, group: int) -> None:
        """Release the requests of clients to a PG."""
        self._serve(group, interrupt=False)

    def send_again(self, group: int) -> None:
        """Cut off the requests of clients to a PG, and issue them again."""
        self._serve(group, interrupt=True)

    def cut_background(self, group: int) -> None:
        """Cut off the background work of a PG."""
        shadow = self.shadow(group)
        self._actions.append(SetGroup(shadow, held=False, interrupt=True))

    def pause_writes(self, *, paused: bool) -> None:
        """Hold new writes of all clients, or release them."""
        if paused == self._writes_are_paused:
            return
        self._writes_are_paused = paused
        for part in self._groups.of_writes:
            if not self._holding_count[part]:
                self._actions.append(SetGroup(part, held=paused, interrupt=False))

    def send_groups_again(self, parts: Iterable[int]) -> None:
        """Cut off the requests of some groups of the engine, and issue again those whose PGs serve."""
        for part in parts:
            held = self._waits(part)
            self._actions.append(SetGroup(part, held=held, interrupt=True))

    def _serve(self, group: int, *, interrupt: bool) -> None:
        parts = self._groups.of_pg(group)
        if group in self._held_pgs:
            self._held_pgs.discard(group)
            self._holding_count.subtract(parts)
        for part in parts:
            held = self._waits(part)
            self._actions.append(SetGroup(part, held=held, interrupt=interrupt))

    def _waits(self, part: int) -> bool:
        """Return True if a group of the engine has to wait for a PG or for room."""
        if self._holding_count[part]:
            return True
        return self._writes_are_paused and part in self._writes

    def add(self, action: Action) -> None:
        """Add any other action."""
        self._actions.append(action)

    def take(self) -> tuple[Action, ...]:
        """Return the actions, and begin with none."""
        actions = tuple(self._actions)
        self._actions.clear()
        return actions


@dataclass(frozen=True)
class ClusterState:
    """The plan, the clock, the timeline, the map, the PGs, and actions for the engine."""

    pool: Pool
    plan: FaultPlan
    clock: Clock
    timeline: FaultTimeline
    map: ClusterMap
    #: PGs of the pool, and after them those of the pool of bucket indexes, if there is one
    groups: list[Group]
    actions: EngineActions
    fullness: Fullness

    @property
    def model(self) -> RecoveryModel:
        """Constants of the monitors and OSDs."""
        return self.plan.model

    @property
    def now_ns(self) -> int:
        """The current time [ns]."""
        return self.clock.now_ns

    def note(self, kind: str, text: str) -> None:
        """Add an event to the timeline."""
        self.timeline.note(self.now_ns, kind, text)

    def enter(self, group: Group, state: State) -> None:
        """Set the state of a PG."""
        self.timeline.enter(self.now_ns, group.number, state)

    def is_index(self, group: Group) -> bool:
        """Return True for a PG of the pool of bucket indexes."""
        return group.number >= self.pool.cluster.groups

    def count_shards(self, group: Group, osd: int, shards_count: int) -> None:
        """Add written shards of a PG to an OSD (negative: deleted ones). Indexes fill no space."""
        if self.is_index(group):
            return
        crossed = self.fullness.add(self.now_ns, osd, shards_count)
        if crossed is not None:
            self.note(crossed, f"osd.{osd}")
        self.pause_if_full()

    def pause_if_full(self) -> None:
        """Hold the writes of clients while an OSD is full."""
        self.actions.pause_writes(paused=self.fullness.stops_writes)

    def state_of(self, group: Group) -> State:
        """Return the state of a PG."""
        return self.timeline.states[group.number]


def initial_state(
    pool: Pool, plan: FaultPlan, engine_groups: EngineGroups | None = None
) -> ClusterState:
    """Return the state of a cluster before the first failure.

    Parameters
    ----------
    pool, plan
        The pool, and what happens to its cluster.
    engine_groups
        Groups of the engine. Default: those of requests to images.

    Raises
    ------
    ProblemsError
        If the plan does not fit the cluster.
    ValueError
        If the plan's CRUSH disagrees with the pool about where PGs are.
    """
    cluster = pool.cluster
    plan.check(cluster.osd_hosts)
    if not np.array_equal(plan.up_sets(OsdWeights()), cluster.acting):
        raise ValueError(
            "faults: up_sets: got other sets for no OSD out than the pool has, wanted the same"
        )
    is_replicated = pool.scheme.kind == "replicated"
    cluster_map = ClusterMap(
        cluster.osds,
        plan.up_sets,
        is_replicated=is_replicated,
        index_crush=plan.index_up_sets,
    )
    state = ClusterState(
        pool=pool,
        plan=plan,
        clock=Clock(),
        timeline=FaultTimeline(len(cluster_map.up_sets)),
        map=cluster_map,
        groups=_initial_groups(pool, plan, cluster_map),
        actions=EngineActions(engine_groups or ImageGroups(cluster.groups)),
        fullness=Fullness(plan.fill),
    )
    if state.fullness.stops_writes:
        state.clock.at(0, state.pause_if_full)
    for group in state.groups:
        if NO_OSD in group.up:
            state.timeline.narrow.add(group.number)
            state.enter(group, State.DEGRADED)
    return state


def _initial_groups(
    pool: Pool, plan: FaultPlan, cluster_map: ClusterMap
) -> list[Group]:
    """Return the PGs of the data and then those of a bucket index, as the run begins."""
    up_sets = cluster_map.up_sets
    items = _initial_items(pool, plan)
    index_scheme = pool.scheme
    if pool.cluster.gateways is not None and plan.index_up_sets is not None:
        index_scheme = pool.cluster.gateways.index_scheme
        items += pool.cluster.gateways.shards_of_groups
    log_lengths = _initial_log_lengths(pool, plan, up_sets)
    writes_count = plan.object_writes_count
    if writes_count is None:
        writes_count = _UNKNOWN_WRITES_COUNT
    # A sample of objects represents those that clients store, too.
    recovered_one_in = plan.recovered_one_in if plan.group_objects_count is None else 0

    def group(number: int, *, is_data: bool) -> Group:
        deletions_count = plan.log_deletions_count if is_data else 0
        log = PgLog(
            log_lengths[number],
            # A deleted object was written once, and deleted.
            entries_count=len(items[number]) * writes_count + 2 * deletions_count,
            deletions_count=deletions_count,
            async_recovery_min=plan.model.async_recovery_min_count,
        )
        return Group(
            number,
            pool.scheme if is_data else index_scheme,
            up_sets[number],
            items[number],
            pool.leaders if is_data else None,
            log=log,
            first_osd=cluster_map.first_osds[number],
            recovered_one_in=recovered_one_in if is_data else 1,
        )

    data_groups_count = pool.cluster.groups
    return [
        group(number, is_data=number < data_groups_count)
        for number in range(len(up_sets))
    ]


def _initial_log_lengths(
    pool: Pool, plan: FaultPlan, up_sets: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """Return the lengths to which each PG's log is trimmed, see `PgLog`."""
    # The primary trims the log, by the PGs of its OSD: here those that the OSD begins with.
    groups_of_osd = Counter(
        osd for up_set in up_sets for osd in up_set if osd != NO_OSD
    )
    data_sets = up_sets[: pool.cluster.groups]
    index_sets = up_sets[pool.cluster.groups :]
    primary_osds = [
        up_set[lead] for up_set, lead in zip(data_sets, pool.primaries, strict=True)
    ]
    primary_osds += [
        next(osd for osd in up_set if osd != NO_OSD) for up_set in index_sets
    ]
    return [plan.model.log_lengths(groups_of_osd[osd]) for osd in primary_osds]


def _initial_items(pool: Pool, plan: FaultPlan) -> list[list[int]]:
    """Return the objects of each PG."""
    items: list[list[int]] = [[] for _ in range(pool.cluster.groups)]
    if plan.group_objects is not None:
        stops = np.cumsum(plan.group_objects).tolist()
        starts = [0, *stops[:-1]]
        return [list(range(*ends)) for ends in zip(starts, stops, strict=True)]
    count = plan.group_objects_count
    if count is not None:
        firsts = range(0, count * pool.cluster.groups, count)
        return [list(range(first, first + count)) for first in firsts]
    image_end = plan.image_objects
    spans = [(0, image_end, image_end + plan.other_objects_count)]
    if plan.prefilled:
        spans += [(image, 0, image_end) for image in range(plan.images_count)]
    for image, start, end in spans:
        objects = np.arange(start, end, dtype=np.int64)
        groups = pool.groups_of(np.full_like(objects, image), objects)
        for item, number in zip(objects.tolist(), groups.tolist(), strict=True):
            items[number].append(item)
    # Objects of several images with the same number share an entry in a PG that has them.
    return [sorted(set(of_group)) for of_group in items]
