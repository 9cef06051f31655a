"""Members that a placement group needs to serve clients, over two sites in stretch mode."""

from stripesim.models.coding import RedundancyScheme
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import ServingOsds


class ServingRule:
    """Decides whether a PG has enough members to serve clients.

    A PG needs `min_size` members. In stretch mode it also needs one at each site. While no OSD of a site is
    up, the cluster is in degraded stretch mode: half of `min_size` is enough, at the site that is left. It is
    healthy again once the site is back and all PGs are clean.

    Deviation: Ceph also waits until the site's monitors are out of the quorum, which are not simulated.

    References
    ----------
    Ceph v16.2.15, ``src/mon/OSDMonitor.cc`` (``trigger_degraded_stretch_mode``,
    ``trigger_healthy_stretch_mode``), ``src/osd/PeeringState.cc`` (``stretch_set_can_peer``),
    ``doc/rados/operations/stretch-mode.rst``.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._min_size = state.pool.scheme.min_size
        sites = state.plan.stretch_sites
        self._site_of: list[int] = [] if sites is None else sites.tolist()
        self._is_degraded = False

    def follow_map(self) -> bool:
        """Enter or leave degraded stretch mode. Return True if the rule changes, which PGs peer again for."""
        if not self._site_of:
            return False
        is_degraded = not self._is_whole or self._is_degraded
        if self.becomes_healthy:
            is_degraded = False
        if is_degraded == self._is_degraded:
            return False
        self._is_degraded = is_degraded
        state = "degraded" if is_degraded else "healthy"
        self._state.note("stretch mode", f"{state}: min_size {self._least}")
        return True

    @property
    def becomes_healthy(self) -> bool:
        """True if the next map ends degraded stretch mode: the site is back and all PGs are clean."""
        all_clean = self._state.timeline.all_clean
        return self._is_degraded and self._is_whole and all_clean

    @property
    def _is_whole(self) -> bool:
        """True if an OSD of each site is up."""
        return {self._site_of[osd] for osd in self._state.map.up} == set(self._site_of)

    def allows(
        self, members: ServingOsds, scheme: RedundancyScheme | None = None
    ) -> bool:
        """Return True if a PG has enough members to serve clients.

        Its scheme is that of the pool, unless `scheme` names another.
        """
        least = self._least if scheme is None else scheme.min_size
        if members.served_count < least:
            return False
        if not self._site_of or self._is_degraded:
            return True
        serving = [osd for osd in members.acting if osd != NO_OSD]
        return {self._site_of[osd] for osd in serving} == set(self._site_of)

    @property
    def _least(self) -> int:
        if self._is_degraded:
            return self._min_size // 2
        return self._min_size
