"""Removal of obsolete copies of clean PGs."""

from collections.abc import Callable
from typing import NamedTuple

from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.groups import Group


class RemovalStep(NamedTuple):
    """Transactions of one step in deleting an OSD's copy of a PG."""

    group: Group
    osd: int
    transactions_count: int


class PgRemovals:
    """Deletes obsolete copies in batches of objects, with pauses.

    `on_space` is called whenever an OSD has freed space.

    An OSD drops the PG's log, deletes all objects, then deletes the collection.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PG.cc`` (``on_removal``, ``do_delete_work``).
    """

    def __init__(self, state: ClusterState, on_space: Callable[[], None]) -> None:
        self._state = state
        self._on_space = on_space
        self._steps: list[RemovalStep] = []

    def begin(self, group: Group, osd: int, objects_count: int) -> None:
        """Start deleting a copy of a PG."""
        self._steps.append(RemovalStep(group, osd, transactions_count=1))
        self._delete_some(group, osd, objects_count)

    def take(self) -> list[RemovalStep]:
        """Return and clear the steps of this moment."""
        steps = self._steps
        self._steps = []
        return steps

    def _delete_some(self, group: Group, osd: int, objects_count: int) -> None:
        model = self._state.model
        deleted_count = min(objects_count, model.delete_chunk_count)
        left_count = objects_count - deleted_count
        self._steps.append(RemovalStep(group, osd, transactions_count=1))
        self._state.count_shards(group, osd, -deleted_count)
        if deleted_count:
            self._on_space()
            self._state.clock.after(
                model.delete_sleep_ns, self._delete_some, group, osd, left_count
            )
