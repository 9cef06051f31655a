"""Restart hosts one after another: degraded objects, duration and clients, from one simulated restart.

A restart of minutes has too many requests to simulate. So the host is down for some seconds, clients write to
fewer objects, and logs are shorter. The share of objects written meanwhile stays that of the whole. Rounds of
the map and peering take as long as they do.

Clients of buckets store new objects, so fewer are stored in the shorter time. The gateway of the host stops
with it. The host is down for longer than clients wait for another gateway.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.placement import Movement, OsdWeights
from stripesim.models.recovery import RecoveryModel, min_size
from stripesim.scenarios.answers.rehearse.client_effect import (
    NO_CLIENTS,
    WeightedRequests,
    clients_between,
    clients_during,
    described,
    requests_during,
)
from stripesim.scenarios.answers.rehearse.pool_copy import DURATIONS
from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.scenarios.cells.build import CellInputs, build_cell, build_pool
from stripesim.scenarios.cells.changes import drained_hosts, weights_after
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import (
    osd_hosts,
    padded_osd_hosts,
    up_sets,
)
from stripesim.scenarios.schema.keys import WorkloadSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import ChangeSpec, EventSpec, FaultsSpec
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import SyntheticLoops, SyntheticStream
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.finished_run import BoolArray
from stripesim.sim.ceph.gateway.paths import WRITING_OPS
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.run import Run, simulate

Floats = npt.NDArray[np.float64]

#: Downtime of a host that restarts, unless the scenario states it [s]: an assumption.
DOWNTIME_S: Final = 300.0
# What a rehearsed restart rests on.
_ASSUMPTIONS: Final = (
    "Hosts restart one at a time, each once all placement groups are clean. Daemons stop in order, so peers "
    "know at once.",
    "The host with most shards is simulated, down for some seconds while clients write to a part of the "
    "objects. Others take as long in proportion to their shards.",
    "An object that clients wrote meanwhile is recovered whole. Ceph since Octopus sends only the changed "
    "parts of a replicated object that recovers by the log, so it is faster where writes are few and small.",
    "The interval takes downtimes as stated, and the time after them as uncertain as the timed changes of "
    "study changes, which move data. No restart was timed.",
)
# Time of clients before the host stops, and after the cluster is clean [s].
_QUIET_S: Final = 1.0
# Shortest simulated downtime [s]: the map, peering and the wait for it are over by then. With a gateway on
# the host, it begins once clients use another.
_DOWNTIME_MIN_S: Final = 4.0
# What it rests on besides with clients of gateways.
_OF_GATEWAYS: Final = (
    "The gateways of a host stop with it, and are not drained before. Requests to them wait for "
    "{failover_s:g} s, until three checks of a load balancer have failed. Then their clients use the next "
    "gateway, and the old one as soon as it is back.",
    "Each PUT stores a new object. Clients update the index shards that they use again and again, so a "
    "longer downtime has more objects to recover, but hardly more shards of the index.",
)
#: Shards of objects that one simulation recovers at most, unless a shorter downtime has more [count].
OBJECTS_MAX: Final = 4_000
# Writes to each object after which nearly all objects are written: all but 1 in e⁴ of random ones.
_WRITES_OF_ALL: Final = 4.0
# Length of the run that measures the rate of clients [s].
_PILOT_S: Final = 0.25
# Time that recovery gets in each attempt [s].
_RECOVERY_S: Final = (10.0, 40.0, 160.0)
# Width of the bins of recovery over time [ns].
_SERIES_NS: Final = 10_000_000
# Shortest time without a recovered object in which placement groups wait for a map [s], and not for pushes or
# their throttles: a map is published once a second.
_PAUSE_S: Final = 0.25
# Later than any simulated time [s]: no OSD is marked out.
_NEVER_S: Final = 1e8


@dataclass(frozen=True)
class _ClusterThen:
    """The cluster once the changes before a restart are made."""

    scenario: Scenario  # With the changes before, for the hosts that they add.
    weights: OsdWeights  # Of the OSDs by then.
    pool: Pool

    @classmethod
    def before(cls, scenario: Scenario, index: int) -> "_ClusterThen":
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
class _Layout:
    """What the restart of each host affects, counted from the acting sets.

    Placement groups are those of the pool and of the index of buckets, shards those of the pool.
    """

    hosts: tuple[int, ...]
    groups_counts: tuple[int, ...]  # Placement groups with a member on each host.
    shards_counts: tuple[int, ...]
    inactive_counts: tuple[
        int, ...
    ]  # Placement groups below min_size while it is down.
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


@dataclass(frozen=True)
class _SimulatedPart:
    """The simulated part of the downtime, and of the objects that clients write."""

    downtime: float
    objects: float


@dataclass(frozen=True)
class _Restart:
    """One simulated restart, in simulated seconds."""

    result: Run
    part: _SimulatedPart
    stop_s: float
    back_s: float
    peered_s: float  # Groups have peered without the host, and the backlog is gone.
    first_s: float  # The first object is recovered.
    last_s: float  # The last one is.
    moving_s: float  # Time in between, without that in which placement groups only wait for maps.
    clean_s: float
    objects_count: int  # Shards of objects recovered.
    recovered_share: float  # Their part of those that recover after the whole downtime.


def restart_assumptions(scenario: Scenario) -> list[str]:
    """Return what a rehearsed restart rests on."""
    gateway = build_models(scenario).gateway
    if gateway is None:
        return list(_ASSUMPTIONS)
    failover_s = gateway.failover_ns / 1e9
    return [
        *_ASSUMPTIONS,
        *(words.format(failover_s=failover_s) for words in _OF_GATEWAYS),
    ]


def rehearse_restart(
    scenario: Scenario, index: int = 0, *, engine: str
) -> tuple[dict[str, Any], list[str]]:
    """Describe a rolling restart, on the cluster as it is after the changes before it.

    Parameters
    ----------
    scenario
        The scenario.
    index
        Number of the change, whose kind is restart.
    engine
        Name of the engine.

    Returns
    -------
    row
        The change, in the form of all others, with ``hosts``, ``degraded_objects``, ``inactive_pgs`` and the
        clients' numbers while the host is down and while objects recover.
    warnings
        What an operator must know first.

    Notes
    -----
    The host is down for :math:`sT` instead of :math:`T`, and logs hold a share :math:`s` of their entries.
    Clients write to a share :math:`q` of the objects. If they write each object less than a few times
    meanwhile, :math:`q = s`, so that the share of objects written stays the same. If they write all of them
    anyway, :math:`q` may be larger. Recovery in :math:`m` simulated seconds takes :math:`m / q` in the
    whole. A host with another number of shards takes proportionally longer.
    """
    change = scenario.changes[index]
    _check_workload(scenario)
    downtime_s = change.downtime_s or DOWNTIME_S
    cluster = _ClusterThen.before(scenario, index)
    layout = _layout(cluster, _hosts(scenario, index, cluster.pool))
    busiest = layout.busiest
    if not layout.shards_counts[busiest]:
        got = "hosts without shards of the pool"
        wanted = "a host that holds some by then"
        raise scenario.problem(f"changes.{index}.hosts", got, wanted)
    restart = _simulated(
        cluster,
        layout,
        downtime_s,
        layout.shards_counts[busiest] / cluster.pool.cluster.groups,
        engine,
    )
    rows = _host_rows(layout, busiest, restart, downtime_s)
    moved, out_warnings = _moved_when_out(cluster, change, layout, downtime_s)
    durations: dict[str, float | None] = dict.fromkeys(DURATIONS)
    if not out_warnings:
        durations = _durations_s(rows, downtime_s)
    objects_count = sum(row["degraded_objects"] for row in rows)
    shard_bytes = kind_of(cluster.pool).shard_bytes
    row: dict[str, Any] = {
        "kind": change.kind,
        **moved,
        "bytes_moved": objects_count * shard_bytes,
        **_recovery_bytes(restart, objects_count),
        **durations,
        "peak_used_ratio": None,
        "full_ratio_reached": None,
        "fullest_osd": None,
        "downtime_s": downtime_s,
        "noout": change.noout,
        "hosts": rows,
        "degraded_objects": objects_count,
        "inactive_pgs": max(layout.inactive_counts),
        "profiles": [
            {
                "profile": scenario.cluster.mclock_profile or scenario.cluster.op_queue,
                **durations,
                **_clients(scenario, restart, downtime_s, rows[busiest]["duration_s"]),
            }
        ],
    }
    warnings = [
        *out_warnings,
        *_gateway_warnings(cluster.pool, layout, downtime_s),
        *_warnings(layout, restart, downtime_s),
    ]
    return row, [f"change {index} (restart): {line}" for line in warnings]


def _check_workload(scenario: Scenario) -> None:
    """Refuse loads that a restart does not simulate."""
    if scenario.workload.kind == "trace":
        wanted = "closed, open or s3, with changes of kind restart"
        raise scenario.problem("workload.kind", scenario.workload.kind, wanted)


def _recovery_bytes(restart: _Restart, objects_count: int) -> dict[str, int]:
    """Return what the recovery of a number of shards reads, writes and sends [B]."""
    faults = restart.result.row.faults
    assert faults is not None
    assert faults.recovery is not None
    per_shard = objects_count / max(1, restart.objects_count)
    sent = round(faults.recovery.recovery_private_net_bytes * per_shard)
    return {
        "device_read_bytes": round(
            faults.recovery.recovery_device_read_bytes * per_shard
        ),
        "device_write_bytes": round(
            faults.recovery.recovery_device_write_bytes * per_shard
        ),
        "private_net_bytes": sent,
        "between_hosts_bytes": sent,
    }


def _layout(cluster: _ClusterThen, hosts: Sequence[int]) -> _Layout:
    """Count placement groups, shards and gateways on each host that restarts."""
    pool = cluster.pool
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
    return _Layout(
        tuple(hosts),
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
        least = min_size(kind=scheme.kind, k=scheme.k, width=scheme.width)
        return cls(
            int(is_hit.sum()), int(on_host.sum()), int((is_hit & (left < least)).sum())
        )


def _moved_when_out(
    cluster: _ClusterThen, change: ChangeSpec, layout: _Layout, downtime_s: float
) -> tuple[dict[str, int], list[str]]:
    """Return the PGs and shards that move if OSDs are marked out meanwhile, and a warning."""
    none = {"pgs_moved": 0, "shards_moved": 0}
    rotational = cluster.pool.cluster.models.ssd.rotational
    limits = limits_of(cluster.scenario, rotational=rotational)
    out_s = limits.down_out_interval_ns / 1e9
    if change.noout or downtime_s <= out_s:
        return none, []
    before = cluster.up_sets(OsdWeights())
    hosts = osd_hosts(cluster.scenario)
    movements = []
    for host in layout.hosts:
        out = tuple(np.flatnonzero(hosts == host).tolist())
        after = cluster.up_sets(OsdWeights(out=out))
        is_replicated = cluster.pool.scheme.kind == "replicated"
        movements.append(Movement.between(before, after, is_replicated=is_replicated))
    moved = {
        "pgs_moved": sum(each.groups_count for each in movements),
        "shards_moved": sum(each.shards_count for each in movements),
    }
    words = (
        f"without noout, OSDs are out after {out_s:g} s (mon_osd_down_out_interval): "
        f"{moved['shards_moved']:,} shards move away and back; set noout, or keep hosts down for less"
    )
    return moved, [words]


def _hosts(scenario: Scenario, index: int, pool: Pool) -> tuple[int, ...]:
    """Return the hosts that restart: those that the change names, or else all with shards of the pool."""
    if scenario.changes[index].hosts is not None:
        return tuple(dict.fromkeys(drained_hosts(scenario, index)))
    acting = pool.cluster.acting
    hosts = pool.cluster.osd_hosts[acting[acting != NO_OSD]]
    return tuple(np.unique(hosts).tolist())


def _simulated(
    cluster: _ClusterThen,
    layout: _Layout,
    downtime_s: float,
    shards_share: float,
    engine: str,
) -> _Restart:
    """Simulate the short restart of the busiest host."""
    scenario = cluster.scenario
    host = layout.hosts[layout.busiest]
    calm_s = 0.0
    if layout.gateways_counts[layout.busiest]:
        calm_s = _failover_s(cluster.pool)
    part = _part_of(cluster, downtime_s, shards_share, calm_s, engine)
    short_s = part.downtime * downtime_s
    stop_s = _QUIET_S
    back_s = stop_s + short_s
    for recovery_s in _RECOVERY_S:
        until_s = back_s + recovery_s + _QUIET_S
        compressed = _compressed(scenario, part.objects, host, stop_s, back_s, until_s)
        inputs = cluster.inputs_of(compressed)
        assert inputs.faults is not None
        model = _shorter_logs(inputs.faults.model, part.downtime)
        faults = replace(inputs.faults, model=model, series_ns=_SERIES_NS)
        if scenario.workload.is_s3:
            faults = _with_fewer_objects(faults, part.objects)
        inputs = replace(inputs, faults=faults)
        result = simulate(**vars(inputs), seed=scenario.seed, engine=engine).accepted()
        assert result.row.faults is not None
        if result.row.faults.clean_at_end:
            break
    restart = _moments(result, part, stop_s, back_s, stop_s + calm_s)
    if not scenario.workload.is_s3:
        return restart
    share = _recovered_share(scenario, inputs, restart, host, downtime_s)
    return replace(restart, recovered_share=share)


def _failover_s(pool: Pool) -> float:
    """Return the time until clients use other gateways in place of those of a host [s]."""
    assert pool.cluster.models.gateway is not None
    return pool.cluster.models.gateway.failover_ns / 1e9


def _with_fewer_objects(faults: FaultPlan, share: float) -> FaultPlan:
    """Return faults of a pool with a share of the objects of buckets, at least one in each group."""
    assert faults.group_objects is not None
    share *= faults.objects_ratio
    fewer = tuple(math.ceil(share * count) for count in faults.group_objects)
    return replace(faults, group_objects=fewer, objects_ratio=1.0)


def _recovered_share(
    scenario: Scenario,
    inputs: CellInputs,
    restart: _Restart,
    host: int,
    downtime_s: float,
) -> float:
    r"""Return the simulated part of the objects that recover after the whole downtime of an object store.

    Notes
    -----
    The number of heads and tails grows with the requests that store them. Of :math:`n` shards of the index,
    :math:`w` updates at random reach :math:`n (1 - e^{-w / n})`.
    """
    recovered = restart.objects_count
    gateways = inputs.pool.cluster.gateways
    assert gateways is not None
    assert isinstance(inputs.workload, SyntheticLoops | SyntheticStream)
    load = inputs.workload.workload
    assert isinstance(load, S3Load)
    updates = _index_updates(load, restart, downtime_s)
    if not recovered or not updates.of_run:
        return restart.part.objects
    on_host = inputs.pool.cluster.osd_hosts[gateways.index_acting] == host
    shards_share = float(on_host.any(axis=1).mean())
    # Places of objects have a shard each, so a run may reach fewer shards than there are.
    shards = len(gateways.index_groups)
    of_run = shards_share * _reached(min(shards, load.slots), updates.of_run)
    of_whole = shards_share * _reached(shards, updates.of_whole)
    growth = updates.of_whole / updates.of_run
    return recovered / (growth * max(0.0, recovered - of_run) + of_whole)


class _Updates(NamedTuple):
    """Requests that update the index while a host is down [count]."""

    of_run: float  # In the simulated downtime, and until placement groups have peered.
    of_whole: float


def _index_updates(load: S3Load, restart: _Restart, downtime_s: float) -> _Updates:
    """Count the requests that update the index. Once clients use other gateways, their rate is constant.

    Requests that waited for another gateway complete later than others, but count once. The host also misses
    those that complete once it is back, until placement groups have peered.
    """
    shares = zip(load.ops, load.op_shares, strict=True)
    share = sum(share for op, share in shares if op in WRITING_OPS)
    share /= sum(load.op_shares)
    requested = restart.result.requested
    issued_s = requested.issued_ns[requested.done] / 1e9
    done_s = requested.completed_ns[requested.done] / 1e9
    meanwhile = share * float(
        ((done_s > restart.stop_s) & (done_s <= restart.first_s)).sum()
    )
    calm_s = restart.back_s - restart.peered_s
    if calm_s <= 0:
        return _Updates(meanwhile, meanwhile)
    issued = share * float(
        ((issued_s > restart.peered_s) & (issued_s <= restart.back_s)).sum()
    )
    left_s = downtime_s - (restart.back_s - restart.stop_s)
    return _Updates(meanwhile, meanwhile + issued * left_s / calm_s)


def _reached(shards: int, updates: float) -> float:
    """Return the mean number of index shards that updates at random reach [count]."""
    return shards * -math.expm1(-updates / shards)


def _part_of(
    cluster: _ClusterThen,
    downtime_s: float,
    shards_share: float,
    calm_s: float,
    engine: str,
) -> _SimulatedPart:
    """Choose the part of the downtime and of the written objects to simulate.

    `shards_share` is the mean number of shards of an object on the host, `calm_s` the time until clients use
    other gateways.
    """
    scenario = cluster.scenario
    downtime = min(1.0, (calm_s + _DOWNTIME_MIN_S) / downtime_s)
    if scenario.workload.is_s3:
        # Clients store other objects all the time.
        return _SimulatedPart(downtime, downtime)
    objects_count = scenario.images_bytes / scenario.cluster.object_bytes
    writes_count = _writes_per_s(cluster, engine) * downtime_s
    enough = OBJECTS_MAX / max(shards_share, 1e-9) / objects_count
    most = downtime * writes_count / objects_count / _WRITES_OF_ALL
    return _SimulatedPart(downtime, min(1.0, max(downtime, min(enough, most))))


def _writes_per_s(cluster: _ClusterThen, engine: str) -> float:
    """Simulate the clients without a restart; return their rate of writes [1/s]."""
    scenario = cluster.scenario
    loads = tuple(
        load.replaced(duration_s=_PILOT_S, requests=None) for load in scenario.workloads
    )
    only = scenario.workload.replaced(duration_s=_PILOT_S, requests=None)
    quiet = scenario.replaced(faults=None, workload=only, workloads=loads)
    inputs = replace(cluster.inputs_of(quiet), faults=None)
    result = simulate(**vars(inputs), seed=scenario.seed, engine=engine).accepted()
    requested = result.requested
    return float((requested.done & requested.is_write).sum()) / _PILOT_S


def _compressed(
    scenario: Scenario,
    factor: float,
    host: int,
    stop_s: float,
    back_s: float,
    until_s: float,
) -> Scenario:
    """Return a scenario whose host stops and returns, with fewer objects and clients until an end."""
    event = EventSpec(hosts=(host,), at_s=stop_s, return_s=back_s)
    faults = scenario.faults or FaultsSpec()
    faults = faults.replaced(events=(event,), down_out_interval_s=_NEVER_S)

    def shorter(load: WorkloadSpec) -> WorkloadSpec:
        object_bytes = scenario.cluster.object_bytes
        objects = math.ceil(factor * load.image_bytes / object_bytes)
        return load.replaced(
            image_bytes=max(1, objects) * object_bytes,
            duration_s=until_s,
            requests=None,
        )

    return scenario.with_cluster(stored_bytes=None).replaced(
        faults=faults,
        workload=shorter(scenario.workload),
        workloads=tuple(shorter(load) for load in scenario.workloads),
    )


def _shorter_logs(model: RecoveryModel, factor: float) -> RecoveryModel:
    """Return recovery with logs that hold writes of the same share of the downtime."""
    names = (
        "log_entries_min_count",
        "log_entries_max_count",
        "log_entries_per_osd_count",
    )
    counts = {name: getattr(model, name) for name in names}
    return model.given(
        **{
            name: max(1, round(factor * count))
            for name, count in counts.items()
            if count
        }
    )


def _moments(
    result: Run, part: _SimulatedPart, stop_s: float, back_s: float, calm_s: float
) -> _Restart:
    """Find when groups have peered, when objects recover, and when the cluster is clean.

    `calm_s` is the time by which clients use other gateways.
    """
    assert result.timeline is not None
    states = result.timeline["pg_states"]
    times_s = np.array(states["time_s"])
    end_s = result.engine_run.end_ns / 1e9
    groups_count = max(states[State.CLEAN])
    returned = times_s >= back_s
    moving = returned & (_counts(states, _MOVING) > 0)
    clean = returned & (np.array(states[State.CLEAN]) == groups_count)
    first_s = last_s = back_s
    if moving.any():
        first_s = float(times_s[moving][0])
        after = times_s[times_s > times_s[moving][-1]]
        last_s = float(after[0]) if len(after) else end_s
    clean &= times_s >= last_s
    clean_s = float(times_s[clean][0]) if clean.any() else math.inf
    peering = (times_s >= stop_s) & (times_s < back_s) & (_counts(states, _PEERING) > 0)
    peered_s = stop_s
    if peering.any():
        after = times_s[times_s > times_s[peering][-1]]
        peered_s = min(back_s, float(after[0]) if len(after) else end_s)
    peered_s = min(back_s, max(peered_s, calm_s))
    moving_s = _moving_s(result.timeline["recovery"], first_s, last_s)
    assert result.row.faults is not None
    shards_count = result.row.faults.recovery.recovery_operations
    return _Restart(
        result,
        part,
        stop_s,
        back_s,
        peered_s,
        first_s,
        last_s,
        moving_s,
        clean_s,
        shards_count,
        part.objects,
    )


def _moving_s(
    series: Mapping[str, Sequence[float]], first_s: float, last_s: float
) -> float:
    """Return the time in which objects recover, without pauses in which none is done for long [s].

    A placement group that has recovered all its objects counts as recovering until the next map.
    """
    starts_s = np.array(series["time_s"])
    done = np.array(series["rebuilt_bytes_per_s"]) > 0
    width_s = _SERIES_NS / 1e9
    times_s = starts_s[done & (starts_s >= first_s - width_s) & (starts_s < last_s)]
    if not len(times_s):
        return 0.0
    between_s = np.diff(times_s)
    return float(between_s[between_s <= _PAUSE_S].sum()) + width_s


_MOVING: Final = (State.RECOVERING, State.BACKFILLING)
_PEERING: Final = (State.PEERING, State.STALE, State.WAIT)


def _counts(states: Mapping[str, Sequence[int]], wanted: Sequence[str]) -> Floats:
    """Return the placement groups in any of some states over time."""
    known = [
        np.array(states[state], dtype=np.float64) for state in wanted if state in states
    ]
    return np.sum(known, axis=0) if known else np.zeros(len(states["time_s"]))


def _host_rows(
    layout: _Layout, busiest: int, restart: _Restart, downtime_s: float
) -> list[dict[str, Any]]:
    """Return what the restart of each host does: in proportion to its shards."""
    fixed_s = restart.clean_s - restart.back_s - restart.moving_s
    moving_s = restart.moving_s / restart.recovered_share
    rows = []
    for number, host in enumerate(layout.hosts):
        share = layout.shards_counts[number] / max(1, layout.shards_counts[busiest])
        duration_s = downtime_s + fixed_s + share * moving_s
        rows.append(
            {
                "host": host,
                "pgs": layout.groups_counts[number],
                "inactive_pgs": layout.inactive_counts[number],
                "degraded_objects": round(
                    share * restart.objects_count / restart.recovered_share
                ),
                "duration_s": duration_s if math.isfinite(duration_s) else None,
            }
        )
    return rows


def _durations_s(
    rows: Sequence[Mapping[str, Any]], downtime_s: float
) -> dict[str, float | None]:
    """Return the duration of all restarts, and its interval [s]. Stated downtimes have no error."""
    if any(row["duration_s"] is None for row in rows):
        return dict.fromkeys(DURATIONS)
    duration_s = sum(row["duration_s"] for row in rows)
    down_s = len(rows) * downtime_s
    low_s, high_s = duration_interval(duration_s - down_s)
    ends = (duration_s, down_s + low_s, down_s + high_s)
    return dict(zip(DURATIONS, ends, strict=True))


def _clients(
    scenario: Scenario, restart: _Restart, downtime_s: float, duration_s: float | None
) -> dict[str, Any]:
    """Return the clients' numbers before, during and after the restart of one host.

    `duration_s` is that of downtime and recovery together, None if the cluster does not become clean. As in
    all rehearsals, requests that wait for peering count once. Requests with the host down represent the rest
    of the downtime, requests beside recovering objects the rest of the recovery.
    """
    names = ("before", "down", "recovering", "after")
    if duration_s is None:
        return {**NO_CLIENTS, **{name: dict(NO_CLIENTS) for name in names}}
    sample = _sample(scenario, restart)
    phases = ((0, downtime_s), (1, duration_s - downtime_s))
    requests = [requests_during(sample, *phase)[0] for phase in phases]
    during = dict(NO_CLIENTS)
    known = [each for each in requests if each is not None]
    if known:
        together = WeightedRequests(
            np.concatenate([each.latencies_ns for each in known]),
            np.concatenate([each.completed_s for each in known]),
            np.concatenate([each.weights for each in known]),
        )
        during = described(together, duration_s)
    end_s = sample.end_ns / 1e9
    return {
        **during,
        "before": clients_between(sample, 0.0, restart.stop_s),
        "down": clients_during(sample, *phases[0]),
        "recovering": clients_during(sample, *phases[1]),
        "after": clients_between(sample, restart.clean_s, end_s),
    }


def _sample(scenario: Scenario, restart: _Restart) -> Sample:
    """Return a restart as two changes: the host stops, and returns."""
    result = restart.result
    assert result.timeline is not None
    assert result.blocked is not None
    moments = (
        (restart.stop_s, restart.back_s, restart.peered_s, restart.back_s),
        (restart.back_s, restart.clean_s, restart.first_s, restart.last_s),
    )
    rows = [
        {
            "at_s": at_s,
            "clean_s": clean_s,
            "backfills": {"pg": [0], "start_s": [start_s], "end_s": [end_s]},
        }
        for at_s, clean_s, start_s, end_s in moments
    ]
    return Sample(
        group_objects_count=0,
        objects_ratio=1 / restart.recovered_share,
        rows=rows,
        fill=None,
        history={},
        pg_states=result.timeline["pg_states"],
        recovery=result.timeline["recovery"],
        requested=result.requested,
        blocked=result.blocked,
        end_ns=result.engine_run.end_ns,
        alone_ns=0,
        has_load=True,
        in_flight_count=scenario.in_flight_count,
    )


def _gateway_warnings(pool: Pool, layout: _Layout, downtime_s: float) -> list[str]:
    """Warn of a host that has all gateways."""
    gateways = pool.cluster.gateways
    if gateways is None or max(layout.gateways_counts) < gateways.count:
        return []
    host = layout.hosts[int(np.argmax(layout.gateways_counts))]
    return [
        f"while host {host} is down, no gateway serves clients for {downtime_s:g} s: put one on another host "
        "(cluster.gateways.count)"
    ]


def _warnings(layout: _Layout, restart: _Restart, downtime_s: float) -> list[str]:
    """Return what an operator must know before the restart."""
    warnings = []
    worst = int(np.argmax(layout.inactive_counts))
    if layout.inactive_counts[worst]:
        warnings.append(
            f"while host {layout.hosts[worst]} is down, {layout.inactive_counts[worst]} placement "
            f"groups have fewer than min_size members and serve no clients for {downtime_s:g} s"
        )
    if not math.isfinite(restart.clean_s):
        warnings.append("the cluster does not become clean")
    assert restart.result.timeline is not None
    if any(restart.result.timeline["pg_states"].get(State.BACKFILLING, ())):
        warnings.append(
            "clients write more meanwhile than the logs of placement groups hold, so the host "
            "comes back by backfill: a shorter downtime recovers by the log"
        )
    return warnings
