"""Fill of OSDs over time, while old and new copies of shards coexist."""

from typing import Literal

from stripesim.sim.ceph.failures.plan import FillPlan

FillState = Literal["nearfull", "backfillfull", "full"]


class Fullness:
    """Counts the bytes on each OSD and records when one reaches a fill ratio.

    `history` lists time [ns], OSD and bytes used after each change. Without a plan nothing is counted.

    Notes
    -----
    While an OSD is full, writes of clients wait, whatever OSDs they go to: the map's flag ``full`` applies to
    whole pools, and clients obey it. Reads go on. Objects that clients create during the run are not counted.

    References
    ----------
    Ceph v16.2.15, ``src/osd/OSD.cc`` (``OSDService::recalc_full_state``, ``tentative_backfill_full``),
    ``src/osd/PG.cc`` (``try_reserve_recovery_space``), ``src/osdc/Objecter.cc``
    (``target_should_be_paused``).
    """

    def __init__(self, fill: FillPlan | None) -> None:
        self.history: list[tuple[int, int, int]] = []
        # Time [ns], OSD and state of each OSD that has become fuller than a ratio.
        self.crossings: list[tuple[int, int, FillState]] = []
        self._fill = fill
        self._used_bytes: list[int] = []
        self._states: list[FillState | None] = []
        self._full_count = 0
        if fill is not None:
            self._used_bytes = [int(used) for used in fill.used_bytes.tolist()]
            self._states = [self._state(osd) for osd in range(len(self._used_bytes))]
            self._full_count = self._states.count("full")
            self.crossings += [
                (0, osd, state)
                for osd, state in enumerate(self._states)
                if state is not None
            ]

    def add(self, now_ns: int, osd: int, shards_count: int) -> FillState | None:
        """Add written shards (negative: deleted ones) to an OSD; return the ratio that it newly reaches."""
        if self._fill is None or not shards_count:
            return None
        self._used_bytes[osd] += shards_count * self._fill.shard_bytes
        self.history.append((now_ns, osd, self._used_bytes[osd]))
        before = self._states[osd]
        state = self._state(osd)
        self._states[osd] = state
        self._full_count += (state == "full") - (before == "full")
        if state is None or state == before or shards_count < 0:
            return None
        self.crossings.append((now_ns, osd, state))
        return state

    @property
    def stops_writes(self) -> bool:
        """True while an OSD is full and clients write."""
        if self._fill is None or not self._fill.clients_write:
            return False
        return self._full_count > 0

    def has_room(self, osd: int, shards_count: int, *, is_backfill: bool) -> bool:
        """Return True if an OSD may receive a number of shards without reaching its ratio."""
        if self._fill is None:
            return True
        ratio = self._fill.full_ratio
        used_bytes = self._used_bytes[osd]
        if is_backfill:
            ratio = self._fill.backfillfull_ratio
            used_bytes += shards_count * self._fill.shard_bytes
        return used_bytes < ratio * float(self._fill.capacity_bytes[osd])

    def _state(self, osd: int) -> FillState | None:
        assert self._fill is not None
        ratio = self._used_bytes[osd] / self._fill.capacity_bytes[osd]
        if ratio >= self._fill.full_ratio:
            return "full"
        if ratio >= self._fill.backfillfull_ratio:
            return "backfillfull"
        if ratio >= self._fill.nearfull_ratio:
            return "nearfull"
        return None
