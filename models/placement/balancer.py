"""Balance placement groups over OSDs, one shard at a time, as Ceph's balancer does with upmap exceptions."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import NONE

# Limits that keep the search to seconds with tens of thousands of OSDs [count].
_MOVES_MAX = 20_000
_TAKERS_MAX = 64


def balanced_sets(
    sets: npt.ArrayLike,
    weights: Mapping[int, float],
    domains: Mapping[int, Hashable],
    *,
    max_deviation: float = 1.0,
    trees: Mapping[int, Hashable] | None = None,
) -> npt.NDArray[np.int64]:
    """Move shards from OSDs above their share to OSDs below it.

    Parameters
    ----------
    sets
        OSD of each shard of each placement group, or `NONE`, shape (groups, width).
    weights
        CRUSH weight times reweight of each OSD that may hold shards, keyed by OSD number.
    domains
        Failure domain of each OSD. A move never puts a second shard of a group into the same domain.
    max_deviation
        Shards above or below its share that an OSD may keep [count], like ``upmap_max_deviation`` of Ceph's
        balancer.
    trees
        Tree of each OSD, which a shard never leaves (`CrushMap.trees_of_rule`). None: there is one.

    Returns
    -------
    array of int
        The sets after the moves, shape (groups, width).

    Notes
    -----
    The OSD furthest above its share passes a shard to the OSD furthest below its share among those outside
    the failure domains that the group already uses. Once no OSD exceeds its share by more than
    `max_deviation`, only OSDs take shards that are further below theirs. The search ends when there is none,
    or when no OSD above its share has a legal move. Shards stay in their tree.

    Deviation: Ceph's calculation also removes existing upmap exceptions; this one starts from the given sets.
    Primaries are not balanced, as in Ceph without the read balancer.

    References
    ----------
    Ceph v16.2.15: ``src/osd/OSDMap.cc`` (``calc_pg_upmaps``), ``src/pybind/mgr/balancer/module.py``.
    """
    balance = _Balance(np.array(sets, dtype=np.int64), domains)
    osds = list(weights)
    shards = np.array([float(len(balance.groups_of[osd])) for osd in osds])
    total = sum(len(groups) for groups in balance.groups_of.values())
    per_weight = total / sum(weights.values()) if weights else 0.0
    over = shards - np.array(list(weights.values())) * per_weight
    can_give = np.ones(len(osds), dtype=bool)
    places_of = _places_of_trees(osds, trees or {})
    for _ in range(_MOVES_MAX):
        if not can_give.any():
            break
        giver = int(np.argmax(np.where(can_give, over, -np.inf)))
        if over[giver] <= 0:
            break
        takers = _emptiest(over, places_of[giver])
        if over[giver] <= max_deviation:
            takers = [taker for taker in takers if over[taker] < -max_deviation]
        if not takers:
            can_give[places_of[giver]] &= over[places_of[giver]] > over[giver]
            continue
        taken = balance.move(osds[giver], [osds[taker] for taker in takers])
        if taken is None:
            can_give[giver] = False
            continue
        over[giver] -= 1
        over[takers[taken]] += 1
    return balance.sets


def _places_of_trees(
    osds: Sequence[int], trees: Mapping[int, Hashable]
) -> list[npt.NDArray[np.int64]]:
    """Return for each OSD the places of all OSDs of its tree in the sequence."""
    of_trees: dict[Hashable, list[int]] = defaultdict(list)
    for place, osd in enumerate(osds):
        of_trees[trees.get(osd)].append(place)
    arrays = {
        tree: np.array(places, dtype=np.int64) for tree, places in of_trees.items()
    }
    return [arrays[trees.get(osd)] for osd in osds]


def _emptiest(
    over: npt.NDArray[np.float64], places: npt.NDArray[np.int64]
) -> list[int]:
    """Return those OSDs that are furthest below their share, in ascending order of deviation."""
    emptiest = places
    if len(places) > _TAKERS_MAX:
        emptiest = places[np.argpartition(over[places], _TAKERS_MAX)[:_TAKERS_MAX]]
    emptiest = emptiest[np.argsort(over[emptiest], kind="stable")]
    return [int(osd) for osd in emptiest if over[osd] < 0]


class _Balance:
    """Placement sets and shard counts, updated one move at a time."""

    def __init__(
        self, sets: npt.NDArray[np.int64], domains: Mapping[int, Hashable]
    ) -> None:
        self.sets = sets
        self._domains = domains
        # Dictionaries serve as sets that keep insertion order.
        self.groups_of: dict[int, dict[int, None]] = defaultdict(dict)
        self._occupied: list[Counter[Hashable]] = []
        for group, row in enumerate(sets.tolist()):
            members = [osd for osd in row if osd != NONE]
            self._occupied.append(Counter(map(self._domain, members)))
            for osd in members:
                self.groups_of[osd][group] = None

    def move(self, giver: int, takers: Sequence[int]) -> int | None:
        """Move one shard off an OSD and return the index of its taker, or None if no taker is eligible."""
        source = self._domain(giver)
        tried: set[Hashable] = set()
        for index, taker in enumerate(takers):
            target = self._domain(taker)
            if target in tried and target != source:
                continue
            tried.add(target)
            allowed = int(source == target)
            for group in self.groups_of[giver]:
                if self._occupied[group][target] > allowed:
                    continue
                if group in self.groups_of[taker]:
                    continue
                self._put(group, giver, taker)
                return index
        return None

    def _put(self, group: int, giver: int, taker: int) -> None:
        self._occupied[group][self._domain(giver)] -= 1
        self._occupied[group][self._domain(taker)] += 1
        del self.groups_of[giver][group]
        self.groups_of[taker][group] = None
        row = self.sets[group]
        row[row == giver] = taker

    def _domain(self, osd: int) -> Hashable:
        return self._domains.get(osd, ("osd", osd))
