"""The map of a cluster: the OSDs that are up and in, and the up set of each PG."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from stripesim.models.placement import OsdWeights
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.engine.graph import IntArray

UpSet = tuple[int, ...]
# Changes of OSDs, after which CRUSH is asked again, and records that move nothing.
ChangeKind = Literal[
    "down", "up", "auto_out", "out", "in", "weight", "up_thru", "pg_temp", "stretch"
]
OSD_CHANGES: tuple[ChangeKind, ...] = ("down", "up", "auto_out", "out", "in", "weight")


@dataclass(frozen=True)
class MapChange:
    """One change of an OSD, of a PG for ``pg_temp``, or of the whole cluster for ``stretch``.

    The monitors mark an OSD out (``auto_out``) for being down, operators do for other reasons (``out``).
    """

    kind: ChangeKind
    subject: int
    weight: int = 0  #: New CRUSH weight, for ``weight``, 16.16 fixed point


@dataclass(frozen=True)
class MapUpdate:
    """A new map: its changes, and the up set of each PG before and after.

    All data movement begins with such an update, whatever caused it.
    """

    epoch: int
    changes: Sequence[MapChange]
    up_before: Sequence[UpSet]
    up_after: Sequence[UpSet]
    #: OSD that CRUSH lists first among those that are up, of each PG
    first_before: Sequence[int]
    first_after: Sequence[int]

    @property
    def osd_changes(self) -> list[MapChange]:
        """Changes of OSDs, in order."""
        return [change for change in self.changes if change.kind in OSD_CHANGES]

    def subjects(self, *kinds: ChangeKind) -> set[int]:
        """Return the OSDs or PGs of all changes of some kinds."""
        return {change.subject for change in self.changes if change.kind in kinds}


class ClusterMap:
    """The current map.

    For another kind of change, `_apply` changes what CRUSH is asked; the rest follows from the up sets.

    Parameters
    ----------
    osds
        Number of OSDs.
    crush
        Weights of OSDs → OSD of each shard of each PG, shape (groups, width).
    is_replicated
        True if replicas keep their places in an up set.
    index_crush
        As `crush`, for the replicated pool of bucket indexes, whose PGs follow. None: there is none.
    """

    def __init__(
        self,
        osds: int,
        crush: Callable[[OsdWeights], IntArray],
        *,
        is_replicated: bool,
        index_crush: Callable[[OsdWeights], IntArray] | None = None,
    ) -> None:
        self.osds = osds
        self.epoch = 1
        self.up = set(range(osds))
        self.out: set[int] = set()
        # When the flag ``norebalance`` ends [ns].
        self.norebalance_until_ns = 0
        # Those of them that are in again when they come up (mon_osd_auto_mark_auto_out_in).
        self._auto_out: set[int] = set()
        # CRUSH weights that differ from those of the first map.
        self._crush_weights: dict[int, int] = {}
        # Per OSD, the last epoch in which the monitors knew it to be alive: that of its map when it asked
        # (``OSDMonitor::prepare_alive``).
        self.up_thru = dict.fromkeys(range(osds), 1)
        self._crush = crush
        self._index_crush = index_crush
        self._is_replicated = is_replicated
        self._data_groups = 0
        self.up_sets: list[UpSet] = [tuple(row) for row in self.raw_up_sets()]
        self.first_osds = [_first_osd(up_set) for up_set in self.up_sets]

    def apply(self, changes: Sequence[MapChange]) -> MapUpdate:
        """Begin the next epoch and return its changes."""
        self.epoch += 1
        for change in changes:
            self._apply(change)
        up_before = self.up_sets
        first_before = self.first_osds
        if any(change.kind in OSD_CHANGES for change in changes):
            self._place()
        return MapUpdate(
            epoch=self.epoch,
            changes=changes,
            up_before=up_before,
            up_after=self.up_sets,
            first_before=first_before,
            first_after=self.first_osds,
        )

    def lose(self, lost: Set[int], missing: Set[int]) -> None:
        """Begin without OSDs: `lost` ones are down and out, `missing` ones are down only."""
        self.up -= lost | missing
        self.out |= lost
        self._place()

    def raw_up_sets(self) -> list[list[int]]:
        """Return the OSDs that CRUSH names for each PG, those that are down included."""
        weights = OsdWeights(
            out=tuple(sorted(self.out)),
            crush=tuple(sorted(self._crush_weights.items())),
        )
        rows: list[list[int]] = self._crush(weights).tolist()
        self._data_groups = len(rows)
        if self._index_crush is not None:
            rows += self._index_crush(weights).tolist()
        return rows

    def _place(self) -> None:
        rows = self.raw_up_sets()
        self.up_sets = [
            aligned_up_set(
                before,
                row,
                self.up,
                is_replicated=self._is_replicated or number >= self._data_groups,
            )
            for number, (before, row) in enumerate(zip(self.up_sets, rows, strict=True))
        ]
        self.first_osds = [
            _first_osd([osd for osd in row if osd in self.up]) for row in rows
        ]

    def _apply(self, change: MapChange) -> None:
        osd = change.subject
        match change.kind:
            case "down":
                self.up.discard(osd)
            case "up":
                self.up.add(osd)
                if osd in self._auto_out:
                    self._mark_in(osd)
            case "auto_out":
                self.out.add(osd)
                self._auto_out.add(osd)
            case "out":
                self.out.add(osd)
                self._auto_out.discard(osd)
            case "in":
                self._mark_in(osd)
            case "weight":
                self._crush_weights[osd] = change.weight
            case "up_thru":
                # The OSD asked with the map before this one.
                self.up_thru[osd] = self.epoch - 1

    def _mark_in(self, osd: int) -> None:
        self.out.discard(osd)
        self._auto_out.discard(osd)


def _first_osd(osds: Sequence[int]) -> int:
    return next((osd for osd in osds if osd != NO_OSD), NO_OSD)


def aligned_up_set(
    before: Sequence[int], raw: Sequence[int], up: Set[int], *, is_replicated: bool
) -> UpSet:
    """Return the up set of a PG: the OSDs that CRUSH names and that are up.

    Shards of an erasure code have fixed places. Replicas stay where they were `before`.
    """
    osds = [osd if osd in up else NO_OSD for osd in raw]
    if not is_replicated:
        return tuple(osds)
    newcomers = [osd for osd in osds if osd != NO_OSD and osd not in before]
    aligned = []
    for osd in before:
        if osd != NO_OSD and osd in osds:
            aligned.append(osd)
        else:
            aligned.append(newcomers.pop(0) if newcomers else NO_OSD)
    return tuple(aligned)
