"""Silent corruption: shards go bad, and scrubs find them."""

import numpy as np

from stripesim.sim.ceph.failures.activation import Activation
from stripesim.sim.ceph.failures.background.scrubs import deep_scrub_phase_ns
from stripesim.sim.ceph.failures.cluster_state import ClusterState
from stripesim.sim.ceph.failures.data_loss import DataLoss
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.failures.plan import Corruption


class CorruptShards:
    """Carries out the corruptions of a plan.

    Unless scrubs read, each corrupted PG is scrubbed free of charge when it falls due.
    """

    def __init__(
        self, state: ClusterState, data_loss: DataLoss, activation: Activation
    ) -> None:
        self._state = state
        self._data_loss = data_loss
        self._activation = activation
        for number, corruption in enumerate(state.plan.corruptions):
            state.clock.at(corruption.time_ns, self._corrupt, corruption, number)

    def on_scrubbed(self, group: Group) -> None:
        """Recover the bad shards of a PG that a scrub has compared."""
        bad_count = 0
        for copy in group.copies.values():
            bad_count += len(copy.corrupt)
            copy.missing |= copy.corrupt
            copy.corrupt = set()
        if not bad_count:
            return
        self._data_loss.count_lost(group, bad_count)
        self._state.note(
            "scrubbed", f"pg {group.number:x}: bad shards found: {bad_count}"
        )
        self._activation.activate(group)

    def _corrupt(self, corruption: Corruption, number: int) -> None:
        seed = self._state.plan.seed
        shards = self._shards_on(corruption.osd)
        draw = np.random.default_rng([seed, 7, number])
        drawn = draw.permutation(len(shards))[: corruption.shards_count].tolist()
        self._state.note("corrupted", f"{len(drawn)} shards on osd.{corruption.osd}")
        for index in drawn:
            group, item = shards[index]
            self._data_loss.corrupt(group, item, corruption.osd)
            if not self._state.plan.scrubs:
                self._scrub_when_due(group)

    def _shards_on(self, osd: int) -> list[tuple[Group, int]]:
        """List PG and object of the shards that an OSD holds."""
        shards = []
        for group in self._state.groups:
            copies = group.copies_on(osd)
            for item in sorted(group.objects):
                if any(item not in copy.missing for copy in copies):
                    shards.append((group, item))
        return shards

    def _scrub_when_due(self, group: Group) -> None:
        interval_ns = self._state.model.scrub_interval_ns
        phase_ns = deep_scrub_phase_ns(self._state.plan.seed, group.number, interval_ns)
        turns = -(-max(0, self._state.now_ns - phase_ns) // interval_ns)
        due_ns = phase_ns + turns * interval_ns
        self._state.clock.at(due_ns, self._scrub, group)

    def _scrub(self, group: Group) -> None:
        if group.interval.active:
            self.on_scrubbed(group)
        elif group.number not in self._state.timeline.lost:
            # A scrub waits until the PG serves again.
            tick_ns = self._state.model.monitor_tick_ns
            self._state.clock.after(tick_ns, self._scrub, group)
