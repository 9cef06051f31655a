"""Data loss: shards on failed OSDs, and permanently lost objects."""

from collections.abc import Callable, Set

from stripesim.sim.ceph.failures.client_writes import ClientWrites
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.failures.plan import Failure


class DataLoss:
    """Counts lost shards and finds permanently lost objects.

    `lost_shards_count` is the number of shards on failed OSDs, and of bad shards found by scrubs.
    `lost_bytes` is their size [B]. `shard_bytes` returns that of a shard of a PG.
    """

    def __init__(
        self,
        state: ClusterState,
        writes: ClientWrites,
        shard_bytes: Callable[[int], int],
    ) -> None:
        self.lost_shards_count = 0
        self.lost_bytes = 0
        self._shard_bytes = shard_bytes
        self._state = state
        self._writes = writes
        # OSDs whose data is gone for good.
        self._gone: set[int] = set()

    def count_held(self, osds: Set[int]) -> None:
        """Count the shards that failing OSDs hold as lost."""
        self._writes.note_completed()
        for group in self._state.groups:
            for (osd, _), copy in group.copies.items():
                if osd in osds:
                    self.count_lost(group, len(group.objects - copy.missing))

    def count_lost(self, group: Group, shards_count: int) -> None:
        """Count shards of a PG as lost."""
        self.lost_shards_count += shards_count
        self.lost_bytes += shards_count * self._shard_bytes(group.number)

    def lose(self, failure: Failure) -> None:
        """Find permanently lost objects, if the data of a failure is gone for good."""
        if not failure.loses_data:
            return
        osds = set(failure.osds)
        self._gone |= osds
        before = self._lost_count()
        for group in self._state.groups:
            if group.is_held_by(osds):
                self._find_lost(group, group.objects)
        more = self._lost_count() - before
        if more:
            self._state.note(
                "lost",
                f"{more} objects: fewer shards are left than the code needs",
            )

    def replace(self, osd: int) -> None:
        """Empty an OSD that comes back with a new device."""
        for group in self._state.groups:
            group.wipe(osd)
        self._gone.discard(osd)

    def corrupt(self, group: Group, item: int, osd: int) -> None:
        """Corrupt the shard of an object on an OSD."""
        for copy in group.copies_on(osd):
            copy.corrupt.add(item)
        self._find_lost(group, {item})

    def _find_lost(self, group: Group, items: Set[int]) -> None:
        lost = {item for item in items if not group.is_decodable(item, self._gone)}
        if lost:
            self._state.timeline.lost.setdefault(group.number, set()).update(lost)

    def _lost_count(self) -> int:
        return sum(map(len, self._state.timeline.lost.values()))
