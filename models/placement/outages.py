"""Place the groups of a pool while OSDs are out, for the groups that a failure affects.

Start with `PoolOutages`. A failure of one drive in a thousand changes few groups, so a study of all failures
computes each group only a few times.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import NONE
from stripesim.models.placement.pg_sets import OsdMap, PlacedPool, Rows, pg_sets
from stripesim.models.placement.upmaps import (
    pool_domains,
    usable_osds,
    without_broken_upmaps,
)

IntArray = npt.NDArray[np.int64]


class PoolOutages:
    """The placement groups of a pool, and where each is once OSDs are down and marked out.

    Notes
    -----
    CRUSH draws the same candidates whether an OSD is in or out. It rejects an OSD that is out, and draws
    again. So only groups change whose draws include the OSD. Before the failure, CRUSH accepted this
    draw, so the OSD is in the group's set before upmaps. Groups with an upmap to or from the OSD are computed
    too.

    With ``chooseleaf indep`` of type osd, CRUSH may leave an OSD that is out in a set, because it fills the
    place before it looks at the weight (``crush_choose_indep``). The OSD is down, so the place is empty.
    """

    def __init__(self, osd_map: OsdMap, pool: PlacedPool) -> None:
        self._osd_map = osd_map
        self._pool = pool
        self._usable = usable_osds(osd_map, pool)
        self._domain_of = pool_domains(osd_map.crush, pool)
        self._groups_of = _groups_of_osds(osd_map, pool)

    def without(self, osds: Iterable[int]) -> tuple[IntArray, Rows]:
        """Mark OSDs down and out, drop the upmaps that the monitors would, and place the affected groups.

        Parameters
        ----------
        osds
            OSDs that fail.

        Returns
        -------
        groups
            Groups that may be elsewhere, ascending, int64 of shape (n,).
        rows
            Up set of each, int32 of shape (n, width).
        """
        out = sorted(osds)
        affected = {group for osd in out for group in self._groups_of.get(osd, ())}
        groups = np.array(sorted(affected), dtype=np.int64)
        weights = self._osd_map.weights.copy()
        weights[out] = 0
        after = replace(self._osd_map, weights=weights, pg_temp={}, primary_temp={})
        after = without_broken_upmaps(
            after,
            self._pool,
            self._with_upmaps(groups),
            usable=self._usable.difference(out),
            domain_of=self._domain_of,
        )
        up = after.up.copy()
        up[out] = False
        return groups, pg_sets(replace(after, up=up), self._pool, groups).up

    def _with_upmaps(self, groups: IntArray) -> IntArray:
        """Return the groups that have an upmap."""
        osd_map = self._osd_map
        if not (osd_map.pg_upmap or osd_map.pg_upmap_items):
            return groups[:0]
        pool = self._pool.id
        known = [
            (pool, group) in osd_map.pg_upmap or (pool, group) in osd_map.pg_upmap_items
            for group in groups.tolist()
        ]
        return groups[known]


def _groups_of_osds(osd_map: OsdMap, pool: PlacedPool) -> dict[int, set[int]]:
    """Return the groups that CRUSH or an upmap places on each OSD, or that an upmap moves from it."""
    # OSDs that are down still belong to the sets that CRUSH draws.
    present = replace(osd_map, up=osd_map.exists)
    plain = replace(present, pg_upmap={}, pg_upmap_items={}, pg_upmap_primaries={})
    groups_of: dict[int, set[int]] = defaultdict(set)
    for cluster_map in (plain, present):
        rows = pg_sets(cluster_map, pool).up
        for group, row in enumerate(rows.tolist()):
            for osd in row:
                groups_of[osd].add(group)
    for (pool_id, group), osds in osd_map.pg_upmap.items():
        if pool_id == pool.id and group < pool.pg_num:
            for osd in osds:
                groups_of[osd].add(group)
    for (pool_id, group), pairs in osd_map.pg_upmap_items.items():
        if pool_id == pool.id and group < pool.pg_num:
            for pair in pairs:
                for osd in pair:
                    groups_of[osd].add(group)
    groups_of.pop(NONE, None)
    return dict(groups_of)
