"""Count what each host that restarts holds, exactly from CRUSH, on the cluster as it is by then."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.placement import Movement, OsdWeights
from stripesim.scenarios.cells.build import CellInputs, build_cell, build_pool
from stripesim.scenarios.cells.changes import drained_hosts, weights_after
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import (
    osd_hosts,
    padded_osd_hosts,
    up_sets,
)
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import ChangeSpec, FaultsSpec
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.results.finished_run import BoolArray
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray


@dataclass(frozen=True)
class ClusterThen:
    """The cluster once the changes before a restart are made."""

    scenario: Scenario  # With the changes before, for the hosts that they add.
    weights: OsdWeights  # Of the OSDs by then.
    pool: Pool

    @classmethod
    def before(cls, scenario: Scenario, index: int) -> "ClusterThen":
        """Return the cluster before a change. Earlier restarts leave it as it was."""
        earlier = tuple(
            change for change in scenario.changes[:index] if change.kind != "restart"
        )
        then = scenario.replaced(changes=earlier)
        weights = weights_after(then, padded_osd_hosts(then))
        return cls(then, weights, _pool_of(then, weights))

    def up_sets(self, later: OsdWeights) -> IntArray:
        """Return the up set of each placement group after further changes of weights."""
        return up_sets(self.scenario, self.pool.scheme, self.weights.then(later))

    def inputs_of(self, scenario: Scenario) -> CellInputs:
        """Build the inputs of the cell of a scenario with other faults or loads on this cluster."""
        inputs = build_cell(scenario, cells(scenario)[0], weights=self.weights)
        if inputs.faults is None:
            return inputs
        # The changes are made before the run begins.
        faults = replace(inputs.faults, changes=(), up_sets=self.up_sets)
        if (index_up_sets := faults.index_up_sets) is not None:
            faults = replace(
                faults,
                index_up_sets=lambda later: index_up_sets(self.weights.then(later)),
            )
        return replace(inputs, faults=faults)


def _pool_of(scenario: Scenario, weights: OsdWeights) -> Pool:
    """Return the pool of a scenario, with the gateways and the index of a load on buckets."""
    if not scenario.workload.is_s3:
        scheme = parse_scheme(scenario.schemes[0])
        return build_pool(scenario, scheme, build_models(scenario), weights=weights)
    failing = scenario.replaced(faults=scenario.faults or FaultsSpec())
    return build_cell(failing, cells(failing)[0], weights=weights).pool


@dataclass(frozen=True)
class RestartedHosts:
    """Effects of the restart of each host, counted from the acting sets.

    Placement groups are those of the pool and of the index of buckets, shards those of the pool.
    """

    hosts: tuple[int, ...]
    groups_counts: tuple[int, ...]  # Placement groups with a member on each host.
    shards_counts: tuple[int, ...]
    inactive_counts: tuple[int, ...]  # Groups below min_size while it is down.
    gateways_counts: tuple[int, ...]  # Gateways on each host.

    @property
    def busiest(self) -> int:
        """Number of the host to simulate: the one with most shards, of those with a gateway if any has."""
        return max(
            range(len(self.hosts)),
            key=lambda number: (
                self.shards_counts[number] > 0,
                self.gateways_counts[number] > 0,
                self.shards_counts[number],
            ),
        )


def restarted_hosts(
    scenario: Scenario, index: int, cluster: ClusterThen
) -> RestartedHosts:
    """Count placement groups, shards and gateways on each host that a change restarts."""
    pool = cluster.pool
    hosts = _numbers_of_hosts(scenario, index, pool)
    pools = [(pool.cluster.acting, pool.scheme)]
    gateways = pool.cluster.gateways
    of_gateways: list[int] = []
    if gateways is not None:
        pools.append((gateways.index_sets, gateways.index_scheme))
        if gateways.on_osd_hosts:
            of_gateways = gateways.hosts.tolist()
    groups, shards, inactive = [], [], []
    for host in hosts:
        counts = [
            _HostCounts.of(acting, scheme, pool.cluster.osd_hosts == host)
            for acting, scheme in pools
        ]
        groups.append(sum(count.groups for count in counts))
        shards.append(counts[0].shards)
        inactive.append(sum(count.inactive for count in counts))
    return RestartedHosts(
        hosts,
        tuple(groups),
        tuple(shards),
        tuple(inactive),
        tuple(of_gateways.count(host) for host in hosts),
    )


class _HostCounts(NamedTuple):
    """Placement groups with a member on a host, their shards on it, and those below min_size without it."""

    groups: int
    shards: int
    inactive: int

    @classmethod
    def of(
        cls, acting: IntArray, scheme: RedundancyScheme, is_of_host: BoolArray
    ) -> "_HostCounts":
        """Count those of a pool with some acting sets, by whether an OSD is on the host."""
        present = acting != NO_OSD
        on_host = present & is_of_host[np.where(present, acting, 0)]
        left = present.sum(axis=1) - on_host.sum(axis=1)
        is_hit = on_host.any(axis=1)
        least = scheme.min_size
        return cls(
            int(is_hit.sum()), int(on_host.sum()), int((is_hit & (left < least)).sum())
        )


def _numbers_of_hosts(scenario: Scenario, index: int, pool: Pool) -> tuple[int, ...]:
    """Return the hosts that restart: those that the change names, or else all with shards of the pool."""
    if scenario.changes[index].hosts is not None:
        return tuple(dict.fromkeys(drained_hosts(scenario, index)))
    acting = pool.cluster.acting
    hosts = pool.cluster.osd_hosts[acting[acting != NO_OSD]]
    return tuple(np.unique(hosts).tolist())


def moved_when_out(
    cluster: ClusterThen,
    change: ChangeSpec,
    restarted: RestartedHosts,
    downtime_s: float,
) -> tuple[dict[str, int], list[str]]:
    """Return the PGs and shards that move if OSDs are marked out meanwhile, and a warning."""
    none = {"pgs_moved": 0, "shards_moved": 0}
    limits = limits_of(cluster.scenario)
    out_s = limits.down_out_interval_ns / 1e9
    if change.noout or downtime_s <= out_s:
        return none, []
    before = cluster.up_sets(OsdWeights())
    hosts = osd_hosts(cluster.scenario)
    movements = []
    for host in restarted.hosts:
        out = tuple(np.flatnonzero(hosts == host).tolist())
        after = cluster.up_sets(OsdWeights(out=out))
        is_replicated = cluster.pool.scheme.kind == "replicated"
        movements.append(Movement.between(before, after, is_replicated=is_replicated))
    moved = {
        "pgs_moved": sum(each.groups_count for each in movements),
        "shards_moved": sum(each.shards_count for each in movements),
    }
    out_warning = (
        f"without noout, OSDs are out after {out_s:g} s (mon_osd_down_out_interval): "
        f"{moved['shards_moved']:,} shards move away and back; set noout, or keep hosts down for less"
    )
    return moved, [out_warning]
