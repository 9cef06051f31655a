"""Simulate the restart of one host, which is down for some seconds in place of minutes.

A restart of minutes has too many requests to simulate. So the host is down for some seconds, clients write to
fewer objects, and logs are shorter. The share of objects written meanwhile stays that of the whole. Rounds of
the map and peering take as long as they do.

Clients of buckets store new objects, so fewer are stored in the shorter time. If these are many, only one in
a fixed number is recovered. The gateway of the host stops with it. The host is down for longer than clients
wait for another gateway.
"""

import math
from dataclasses import replace
from typing import Final, NamedTuple

from stripesim.models.recovery import RecoveryModel
from stripesim.scenarios.answers.rehearse.restarts.hosts import (
    ClusterThen,
    RestartedHosts,
)
from stripesim.scenarios.answers.rehearse.restarts.missed_objects import (
    growth_of,
)
from stripesim.scenarios.answers.rehearse.restarts.moments import (
    SERIES_NS,
    ShortRestart,
    SimulatedPart,
    moments_of,
)
from stripesim.scenarios.cells.gateways import recovered_objects
from stripesim.scenarios.schema.keys import WorkloadSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import EventSpec, FaultsSpec
from stripesim.scenarios.schema.units import number_text
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.run import Run, simulate

# Time of clients before the host stops, and at least after the cluster is clean [s].
_QUIET_S: Final = 1.0
# Longest time of clients after the cluster is clean [s], and the requests that suffice [count].
_AFTER_MAX_S: Final = 5.0
_AFTER_REQUESTS: Final = 8_000
# Shortest simulated downtime [s]: the map, peering and the wait for it are over by then. With a gateway on
# the host, it begins once clients use another.
_DOWNTIME_MIN_S: Final = 4.0
#: Shards of objects that one simulation recovers at most, unless a shorter downtime of images has more, and
#: those of an object store [count].
OBJECTS_MAX: Final = 4_000
STORED_MAX: Final = 20_000
#: Uses of resources by the requests of an object store until the host is back, at most [count]: half a minute
#: of a slow processor.
USES_MAX: Final = 75_000_000
# Writes to each object after which nearly all objects are written: all but 1 in e⁴ of random ones.
_WRITES_OF_ALL: Final = 4.0
# Lengths of the run that measures the rate of clients [s], tried until the audit accepts one.
_PILOTS_S: Final = (0.25, 1.0, 4.0, 16.0)
# Requests of such a run after which a longer one would not help [count].
_PILOT_REQUESTS: Final = 8_000
# Longest time that recovery gets [s].
_RECOVERY_S: Final = 160.0
# Later than any simulated time [s]: no OSD is marked out.
_NEVER_S: Final = 1e8


class _UndisturbedClients(NamedTuple):
    """Requests of clients on the cluster without a restart."""

    per_s: float
    writes_per_s: float
    uses_per_request: float


def simulate_short(
    cluster: ClusterThen,
    restarted: RestartedHosts,
    downtime_s: float,
    engine: str,
) -> ShortRestart:
    """Simulate the short restart of the busiest host."""
    scenario = cluster.scenario
    host = restarted.hosts[restarted.busiest]
    shards_count = restarted.shards_counts[restarted.busiest]
    shards_share = shards_count / cluster.pool.cluster.groups
    calm_s = 0.0
    if restarted.gateways_counts[restarted.busiest]:
        calm_s = _failover_s(cluster.pool)
    clients = _clients_of(cluster, engine)
    part = _part_of(cluster, clients, downtime_s, shards_share, calm_s)
    short_s = part.downtime * downtime_s
    stop_s = _QUIET_S
    back_s = stop_s + short_s
    after_s = max(
        _QUIET_S, min(_AFTER_MAX_S, _AFTER_REQUESTS / max(1.0, clients.per_s))
    )
    until_s = back_s + _RECOVERY_S + after_s
    compressed = _compressed(scenario, part.objects, host, stop_s, back_s, until_s)
    inputs = cluster.inputs_of(compressed)
    assert inputs.faults is not None
    faults = replace(
        inputs.faults,
        model=_shorter_logs(inputs.faults.model, part.downtime),
        series_ns=SERIES_NS,
        end_pause_ns=round(after_s * 1e9),
    )
    if scenario.workload.is_s3:
        _check_length(scenario, clients, back_s)
        stored = clients.writes_per_s * short_s * _parts_count(cluster)
        faults = replace(
            _with_fewer_objects(faults, part.objects),
            recovered_one_in=max(1, int(stored * shards_share / STORED_MAX)),
        )
    inputs = replace(inputs, faults=faults)
    result = simulate(**vars(inputs), seed=scenario.seed, engine=engine).accepted()
    restart = moments_of(result, part, stop_s, back_s, stop_s + calm_s)
    if not scenario.workload.is_s3:
        return restart
    return replace(restart, growth=growth_of(inputs, restart, downtime_s))


def _failover_s(pool: Pool) -> float:
    """Return the time until clients use other gateways in place of those of a host [s]."""
    assert pool.cluster.models.gateway is not None
    return pool.cluster.models.gateway.failover_ns / 1e9


def _check_length(
    scenario: Scenario, clients: _UndisturbedClients, back_s: float
) -> None:
    """Refuse a load on objects with more requests until the host is back than one simulation should have."""
    most_per_s = USES_MAX / clients.uses_per_request / back_s
    if clients.per_s <= most_per_s:
        return
    key = "queue_depth" if scenario.workload.is_closed else "rate_per_s"
    got = f"{clients.per_s:,.0f} requests/s, of which a restart simulates {back_s:g} s"
    wanted = (
        f"at most {number_text(most_per_s)}: hosts restart when clients are calm, so state the rate of "
        "that hour (workload.rate_per_s)"
    )
    raise scenario.problem(f"workload.{key}", got, wanted)


def _parts_count(cluster: ClusterThen) -> float:
    """Return the mean number of heads and tails of an object in a bucket [count]."""
    scenario = cluster.scenario
    stored, _ = recovered_objects(scenario, cells(scenario)[0], cluster.pool)
    return stored / scenario.workload.objects


def _with_fewer_objects(faults: FaultPlan, share: float) -> FaultPlan:
    """Return faults of a pool with a share of the objects of buckets, at least one in each group."""
    assert faults.group_objects is not None
    share *= faults.objects_ratio
    fewer = tuple(math.ceil(share * count) for count in faults.group_objects)
    return replace(faults, group_objects=fewer, objects_ratio=1.0)


def _part_of(
    cluster: ClusterThen,
    clients: _UndisturbedClients,
    downtime_s: float,
    shards_share: float,
    calm_s: float,
) -> SimulatedPart:
    """Choose the part of the downtime and of the written objects to simulate.

    `shards_share` is the mean number of shards of an object on the host, `calm_s` the time until clients use
    other gateways.
    """
    scenario = cluster.scenario
    downtime = min(1.0, (calm_s + _DOWNTIME_MIN_S) / downtime_s)
    if scenario.workload.is_s3:
        # Clients store other objects all the time.
        return SimulatedPart(downtime, downtime)
    objects_count = scenario.images_bytes / scenario.cluster.object_bytes
    writes_count = clients.writes_per_s * downtime_s
    enough = OBJECTS_MAX / max(shards_share, 1e-9) / objects_count
    most = downtime * writes_count / objects_count / _WRITES_OF_ALL
    return SimulatedPart(downtime, min(1.0, max(downtime, min(enough, most))))


def _clients_of(cluster: ClusterThen, engine: str) -> _UndisturbedClients:
    """Simulate the clients for a short time without a restart."""
    for pilot_s in _PILOTS_S:
        pilot = _pilot(cluster, pilot_s, engine)
        if pilot.refused is None or pilot.row.requests > _PILOT_REQUESTS:
            break
    requested = pilot.accepted().requested
    done = requested.done
    return _UndisturbedClients(
        per_s=float(done.sum()) / pilot_s,
        writes_per_s=float((done & requested.is_write).sum()) / pilot_s,
        uses_per_request=max(1.0, pilot.uses / max(1, done.sum())),
    )


def _pilot(cluster: ClusterThen, pilot_s: float, engine: str) -> Run:
    """Simulate the clients for some time without a restart."""
    scenario = cluster.scenario
    loads = tuple(
        load.replaced(duration_s=pilot_s, requests=None) for load in scenario.workloads
    )
    only = scenario.workload.replaced(duration_s=pilot_s, requests=None)
    quiet = scenario.replaced(faults=None, workload=only, workloads=loads)
    inputs = replace(cluster.inputs_of(quiet), faults=None)
    return simulate(**vars(inputs), seed=scenario.seed, engine=engine)


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

    def shorter(load: WorkloadSpec, image_bytes: int) -> WorkloadSpec:
        object_bytes = scenario.cluster.object_bytes
        objects = math.ceil(factor * image_bytes / object_bytes)
        return load.replaced(
            image_bytes=max(1, objects) * object_bytes,
            duration_s=until_s,
            requests=None,
        )

    return scenario.with_cluster(stored_bytes=None).replaced(
        faults=faults,
        workload=shorter(scenario.workload, scenario.workload.image_bytes),
        workloads=tuple(
            # One of several may take its image from [workload].
            shorter(load, whole.image_bytes)
            for load, whole in zip(scenario.workloads, scenario.loads, strict=False)
        ),
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
