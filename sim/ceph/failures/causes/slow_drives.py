"""Slow drives: all service times of some OSDs' drives grow by a factor, and shrink again."""

from collections.abc import Sequence

from stripesim.sim.ceph.failures.cluster_map import MapUpdate
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.plan import SlowDrives
from stripesim.sim.ceph.failures.timeline import osd_names
from stripesim.sim.engine.program import SLOWDOWN_UNIT, Slow


class Slowness:
    """Carries out the slow drives of a plan, and records when placement groups use one.

    Notes
    -----
    Ceph never marks an OSD down or out for being slow. It warns (``slow ops``), and an operator decides.
    Deviation: an OSD whose threads do not progress for ``osd_op_thread_timeout`` (15 s) answers no more
    pings in Ceph.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._slow_osds: set[int] = set()
        for slow in state.plan.slow_drives:
            state.clock.at(slow.time_ns, self._begin, slow)
            if slow.end_ns is not None:
                state.clock.at(slow.end_ns, self._end, slow)

    def on_map(self, update: MapUpdate) -> None:
        """Process OSDs that placement groups leave or join."""
        if self._slow_osds and update.osd_changes:
            self._note_use()

    def _begin(self, slow: SlowDrives) -> None:
        self._set(slow.osds, slow.slowdown)
        self._slow_osds |= set(slow.osds)
        factor = slow.slowdown / SLOWDOWN_UNIT
        self._state.note("slow", f"{osd_names(slow.osds)} ×{factor:g}")
        self._note_use()

    def _end(self, slow: SlowDrives) -> None:
        self._set(slow.osds, SLOWDOWN_UNIT)
        self._slow_osds -= set(slow.osds)
        self._state.note("not slow", osd_names(slow.osds))
        self._note_use()

    def _set(self, osds: Sequence[int], slowdown: int) -> None:
        cluster = self._state.pool.cluster
        drives: list[int] = []
        for osd in osds:
            drives += cluster.drive_resources(osd).tolist()
        self._state.actions.add(Slow(tuple(drives), slowdown))

    def _note_use(self) -> None:
        is_used = any(
            not self._slow_osds.isdisjoint(up_set) for up_set in self._state.map.up_sets
        )
        self._state.timeline.note_slowness(self._state.now_ns, is_used)
