"""Compute the shards that each planned change moves from CRUSH alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.placement import Movement, OsdWeights
from stripesim.scenarios.cells.changes import planned_changes
from stripesim.scenarios.cells.placement import padded_osd_hosts, up_sets
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import PlannedChange
from stripesim.sim.ceph.failures.cluster_map import ClusterMap, UpSet
from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class ExactMovement:
    """Shard movement caused by one change."""

    change: PlannedChange
    movement: Movement
    up_before: Sequence[UpSet]
    up_after: Sequence[UpSet]

    @property
    def unplaced_groups_count(self) -> int:
        """Number of PGs with too few OSDs in CRUSH after the change [count]."""
        return sum(NO_OSD in up_set for up_set in self.up_after)


def exact_movements(scenario: Scenario, scheme: str) -> list[ExactMovement]:
    """Return the movement of each planned change, in the order of the scenario.

    Parameters
    ----------
    scenario
        A scenario with changes.
    scheme
        Name of the redundancy scheme of the pool.

    Returns
    -------
    list of ExactMovement
        Movement between the CRUSH up sets, including weights, weight sets and OSDs that are out.
    """
    code: RedundancyScheme = parse_scheme(scheme)
    osd_hosts = padded_osd_hosts(scenario)

    def sets_with(weights: OsdWeights) -> IntArray:
        return up_sets(scenario, code, weights)

    is_replicated = code.kind == "replicated"
    cluster_map = ClusterMap(len(osd_hosts), sets_with, is_replicated=is_replicated)
    movements = []
    for change in planned_changes(scenario, osd_hosts):
        update = cluster_map.apply(change.changes)
        movement = Movement.between(
            update.up_before, update.up_after, is_replicated=is_replicated
        )
        movements.append(
            ExactMovement(change, movement, update.up_before, update.up_after)
        )
    return movements
