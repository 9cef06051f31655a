"""Build the pool, workload and faults of one cell of a scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stripesim.models.coding import (
    PAGE_BYTES,
    RedundancyScheme,
    parse_scheme,
)
from stripesim.models.generations import generation
from stripesim.models.placement import OsdWeights
from stripesim.models.problems import (
    KernelError,
    Problem,
    ScenarioError,
    UnavailableError,
    problems_of,
)
from stripesim.models.throttle import ThrottleModel
from stripesim.scenarios.cells.failures import (
    objects_of_buckets,
    plan_of,
    repair_plan,
)
from stripesim.scenarios.cells.gateways import (
    recovered_objects,
    s3_load,
    scheme_of_copies,
    with_gateways,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import (
    acting_sets,
    grown_map_of,
    host_values,
    padded_osd_hosts,
    sites_of,
    unreachable_osds,
    up_sets,
)
from stripesim.scenarios.schema.keys import LOCAL_READS, Cell, WorkloadSpec, load_cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.clients.stationary import started_stationary
from stripesim.sim.ceph.clients.workload import (
    Replay,
    Synthetic,
    SyntheticLoops,
    SyntheticStream,
)
from stripesim.sim.ceph.cluster import NO_OSD, Cluster, Models
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.object_maps import (
    ObjectMaps,
    groups_of_maps,
    pool_of_maps,
)
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.run import AnyWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class CellInputs:
    """The inputs of one cell's simulation, as `stripesim.sim.run.simulate` takes them."""

    pool: Pool
    workload: AnyWorkload | Sequence[AnyWorkload]
    prefilled: bool
    until_ns: int | None
    faults: FaultPlan | None = None
    timeout_ns: int = 0
    newest_only: bool = False


def build_cell(
    scenario: Scenario,
    cell: Cell,
    models: Models | None = None,
    *,
    weights: OsdWeights | None = None,
) -> CellInputs:
    """Build the inputs of one cell, on a cluster with `weights` of changes that were made before."""
    scheme = parse_scheme(cell.scheme)
    models = models or build_models(scenario)
    # A repair loses its OSDs during the run.
    down = [] if scenario.repair else unreachable_osds(scenario)
    pool = build_pool(scenario, scheme, models, down=down, weights=weights)
    workload = scenario.workload
    timeout_ns = 0
    if workload.timeout_s is not None:
        timeout_ns = max(1, round(workload.timeout_s * 1e9))
    if workload.is_s3:
        return _s3_cell(scenario, cell, pool, timeout_ns, weights or OsdWeights())
    loads = build_loads(scenario, cell)
    maps = _object_maps(scenario, pool, loads)
    faults = None
    if scenario.changes_during_run:
        faults = _faults_of(scenario, pool)
    return CellInputs(
        pool=replace(pool, cluster=replace(pool.cluster, object_maps=maps)),
        workload=_stationary(loads, pool),
        prefilled=workload.image == "prefilled",
        until_ns=scenario.until_ns,
        faults=faults,
        timeout_ns=timeout_ns,
        # Clients of a bare device bypass librbd, which delivers completions in this way.
        newest_only=workload.completions == "newest" and scheme.name != "none",
    )


def _s3_cell(
    scenario: Scenario, cell: Cell, pool: Pool, timeout_ns: int, weights: OsdWeights
) -> CellInputs:
    """Build the inputs of a cell whose requests pass through gateways.

    `weights` are those of changes that were made before.
    """
    if pool.scheme.name == "none":
        raise scenario.problem(
            "schemes", '"none", a bare device', "a pool such as rep:3, with kind s3"
        )
    index_scheme = parse_scheme(scenario.cluster.gateways.index_scheme)
    faults = None
    if scenario.changes_during_run:
        index_up_sets = partial(_up_sets_beside, scenario, pool.scheme, index_scheme)
        pool = with_gateways(
            scenario, pool, index_up_sets(weights), pool.cluster.models
        )
        stored, object_bytes = recovered_objects(scenario, cell, pool)
        pool = replace(pool, object_bytes=object_bytes)
        faults = replace(
            _faults_of(scenario, pool),
            **objects_of_buckets(scenario, stored, object_bytes, pool.cluster.groups),
            index_up_sets=index_up_sets,
        )
    else:
        sets = _complete_sets_beside(scenario, pool, index_scheme)
        pool = with_gateways(scenario, pool, sets, pool.cluster.models)
    return CellInputs(
        pool=pool,
        workload=s3_load(scenario, scenario.workload, cell, pool).start(),
        prefilled=True,
        until_ns=scenario.until_ns,
        faults=faults,
        timeout_ns=timeout_ns,
    )


def _faults_of(scenario: Scenario, pool: Pool) -> FaultPlan:
    """Return the faults and changes of a scenario that has any."""
    sets_with = partial(up_sets, scenario, pool.scheme)
    if scenario.repair is not None:
        return repair_plan(scenario, sets_with)
    return plan_of(scenario, pool.cluster.osd_hosts, sets_with)


def _object_maps(
    scenario: Scenario, pool: Pool, loads: AnyWorkload | list[AnyWorkload]
) -> ObjectMaps | None:
    """Return the object maps that a run updates, or None if it updates none."""
    if pool.scheme.name == "none":
        return None
    if not scenario.has_fresh_object_maps or scenario.changes_during_run:
        return None
    workloads = loads if isinstance(loads, list) else [loads]
    extents = [_images_of(load) for load in workloads]
    images = sum(count for count, _ in extents)
    image_bytes = max(size_bytes for _, size_bytes in extents)
    scheme = pool_of_maps(pool.scheme)
    sets = _complete_sets_beside(scenario, pool, scheme)
    return ObjectMaps(
        acting=sets[groups_of_maps(images, len(sets))],
        scheme=scheme_of_copies(sets),
        image_objects=-(-image_bytes // pool.object_bytes),
        exclusive=generation(scenario.generation).exclusive_class_writes,
    )


def _images_of(load: AnyWorkload) -> tuple[int, int]:
    """Return the number of images of a workload and the size of the largest [B]."""
    if isinstance(load, Replay):
        return load.images, load.image_bytes
    assert isinstance(load, SyntheticLoops | SyntheticStream)
    return load.workload.clients, load.workload.image_bytes


def _up_sets_beside(
    scenario: Scenario,
    of_data: RedundancyScheme,
    scheme: RedundancyScheme,
    weights: OsdWeights,
) -> IntArray:
    """Return the up sets of a replicated pool beside that of the data, shape (groups, replicas).

    Object maps and bucket indexes are in such a pool, which has as many placement groups as that of the data.
    """
    if _has_own_sets(scenario, of_data, scheme):
        return up_sets(scenario, scheme, weights)
    return up_sets(scenario, of_data, weights)[:, : scheme.width]


def _has_own_sets(
    scenario: Scenario, of_data: RedundancyScheme, scheme: RedundancyScheme
) -> bool:
    """Return True if a pool beside that of the data has its own places, not the first OSDs of the data's.

    The rules of a CRUSH map for such a pool are unknown.
    """
    return scheme != of_data and scenario.cluster.crush_map is None


def _complete_sets_beside(
    scenario: Scenario, pool: Pool, scheme: RedundancyScheme
) -> IntArray:
    """Return the acting sets of `_up_sets_beside` without holes, shape (sets, replicas).

    If every group has lost copies, there are as many replicas as most groups have left.
    """
    acting = pool.cluster.acting
    if _has_own_sets(scenario, pool.scheme, scheme):
        placed = up_sets(scenario, scheme)
        down = np.asarray(unreachable_osds(scenario), dtype=np.int64)
        placed = np.where(np.isin(placed, down), NO_OSD, placed)
        if (placed != NO_OSD).all(axis=1).any():
            acting = placed
    complete = acting[(acting != NO_OSD).all(axis=1)]
    if not len(complete):
        left = (acting != NO_OSD).sum(axis=1)
        width = min(scheme.width, int(left.max()))
        rows = [row[row != NO_OSD][:width] for row in acting[left >= width]]
        complete = np.array(rows, dtype=np.int64)
    sets: IntArray = complete[:, : scheme.width]
    return sets


def _stationary(
    workload: AnyWorkload | list[AnyWorkload], pool: Pool
) -> AnyWorkload | list[AnyWorkload]:
    """Start a closed loop in its steady state where more is in flight than one OSD admits."""
    saturates = pool.cluster.models.throttle is not None
    if saturates and isinstance(workload, SyntheticLoops | SyntheticStream):
        return started_stationary(pool, workload.workload).start()
    return workload


def check_schemes(scenario: Scenario, models: Models) -> None:
    """Check that every scheme can be placed and has kernel costs, before any of them runs."""
    down = unreachable_osds(scenario)
    if scenario.faults is not None or scenario.changes:
        no_sets = np.empty((0, 0), dtype=np.int64)
        plan_of(scenario, padded_osd_hosts(scenario), lambda weights: no_sets)
    problems: list[Problem] = []
    for name in scenario.schemes:
        scheme = parse_scheme(name)
        try:
            _check_scheme(scenario, scheme, models, down)
        except KernelError as error:
            problems.append(scenario.located("schemes", detail=str(error)))
        except UnavailableError as error:
            wanted = "an OSD for each, or more failure domains for CRUSH to find one"
            problems.append(scenario.located("schemes", got=str(error), wanted=wanted))
        except ValueError as error:
            problems += problems_of(error)
    if problems:
        raise ScenarioError(*dict.fromkeys(problems))


def _check_scheme(
    scenario: Scenario,
    scheme: RedundancyScheme,
    models: Models,
    down: Sequence[int],
) -> None:
    is_erasure = scheme.kind == "erasure"
    if models.ec.optimised and is_erasure:
        check_optimised(scheme, scenario)
    if models.extra_reads or models.local_reads:
        _check_read_policy(scheme, scenario, models.extra_reads)
    views = build_pool(scenario, scheme, models, down=down).contexts
    if is_erasure and _encodes(scenario, down):
        models.encode_ns(scheme.name, views[0].geometry.stripe_bytes)


def _encodes(scenario: Scenario, down: Sequence[int]) -> bool:
    """Return True if a write, repair, degraded or speculative read may need the costs of a coding kernel."""
    if scenario.cluster.read_policy != "needed":
        return True
    if down or scenario.faults or scenario.changes:
        return True
    return any(load.writes for load in scenario.loads)


def check_optimised(scheme: RedundancyScheme, scenario: Scenario) -> None:
    """Raise `ValueError` if Ceph has no optimised pool for this scheme and stripe unit."""
    wanted = "or cluster.ec_optimizations = false"
    unit_bytes = scenario.cluster.stripe_unit_bytes
    if scheme.not_optimised_because:
        got = f"{scheme.name} in an optimised pool (FastEC of generation {scenario.generation})"
        raise scenario.problem(
            "schemes", got, f"rs:k,m {wanted}: {scheme.not_optimised_because}"
        )
    if unit_bytes % PAGE_BYTES:
        wanted = f"a multiple of {PAGE_BYTES} in an optimised pool, {wanted}"
        raise scenario.problem("cluster.stripe_unit_bytes", f"{unit_bytes}", wanted)


def _check_read_policy(
    scheme: RedundancyScheme, scenario: Scenario, extra: int
) -> None:
    """Raise `ValueError` if a scheme or a load cannot be read with extra reads."""
    policy = scenario.cluster.read_policy
    key = "cluster.read_policy"
    got = f'"{policy}" with {scheme.name}'
    if scenario.cluster.direct_reads:
        raise scenario.problem(key, f'"{policy}" with direct_reads', '"needed"')
    if scenario.workload.is_s3:
        raise scenario.problem(key, f'"{policy}" with kind s3', '"needed"')
    if policy == LOCAL_READS and scheme.kind != "replicated":
        raise scenario.problem(
            key, got, 'a replicated pool, such as rep:3, or "needed"'
        )
    if scheme.failures_tolerated < scheme.m:
        wanted = (
            'a code any k of whose shards hold the data, such as rs:k,m, or "needed"'
        )
        raise scenario.problem(key, got, wanted)
    if policy.startswith("speculative") and extra > scheme.m:
        wanted = f'at most "speculative:{scheme.m}": it has {scheme.width} shards and needs {scheme.k}'
        if not scheme.m:
            wanted = '"needed": it has no further copy'
        raise scenario.problem(key, got, wanted)


def build_loads(scenario: Scenario, cell: Cell) -> AnyWorkload | list[AnyWorkload]:
    """Build the workload of one cell, or a list if several run at the same time."""
    if scenario.workload.kind == "trace" and not scenario.workloads:
        from stripesim.scenarios.cells.replay import replay_of

        return replay_of(scenario)
    if not scenario.workloads:
        return _synthetic(scenario, scenario.workload, cell)
    built: list[AnyWorkload] = []
    first_client = first_byte = 0
    for load in scenario.loads:
        own = load_cell(cell.scheme, load)
        built.append(
            _synthetic(
                scenario, load, own, first_client=first_client, first_byte=first_byte
            )
        )
        first_client += load.clients
        first_byte += load.clients * scenario.image_stride_bytes(load)
    return built


def _synthetic(
    scenario: Scenario,
    load: WorkloadSpec,
    cell: Cell,
    *,
    first_client: int = 0,
    first_byte: int = 0,
) -> AnyWorkload:
    assert cell.block_size_bytes is not None
    assert cell.pattern in ("seq", "rand")
    read_fraction = {"read": 1.0, "write": 0.0}.get(cell.op, load.read_fraction)
    assert read_fraction is not None
    queue_depth = load.queue_depth
    rate_per_s = None
    if load.is_open:
        queue_depth = 0
        rate_per_s = load.rate_per_s
    return Synthetic(
        pattern=cell.pattern,
        block_bytes=cell.block_size_bytes,
        image_bytes=load.image_bytes,
        read_fraction=read_fraction,
        requests=load.requests,
        queue_depth=queue_depth,
        rate_per_s=rate_per_s,
        # Workloads draw from separate random streams.
        seed=scenario.seed + first_client,
        clients=load.clients,
        first_client=first_client,
        first_byte=first_byte,
        image_stride_bytes=scenario.image_stride_bytes(load),
    ).start()


def _client_hosts(scenario: Scenario, hosts: int) -> IntArray:
    """Return the machine of each client: client machines by workload, or the storage hosts in turn."""
    machines = [
        np.arange(load.clients, dtype=np.int64) // load.clients_per_host
        for load in scenario.loads
    ]
    firsts = np.cumsum([0, *(int(own[-1]) + 1 for own in machines[:-1])])
    numbers = np.concatenate(
        [own + first for own, first in zip(machines, firsts, strict=True)]
    )
    if scenario.client.place == "osd-hosts":
        return numbers % hosts
    return numbers


def build_pool(
    scenario: Scenario,
    scheme: RedundancyScheme,
    models: Models,
    *,
    down: Sequence[int] = (),
    weights: OsdWeights | None = None,
) -> Pool:
    """Place a scheme's pool on the scenario's cluster. Without a scheme the cluster is a single drive.

    `weights` are those of changes that were made before.
    """
    models = replace(models, throttle=throttle_within_reach(scenario, models))
    if scheme.name == "none":
        cluster = _one_drive(scenario, models)
    else:
        cluster = _cluster(scenario, scheme, models, down, weights)
    return Pool(
        cluster=cluster,
        scheme=scheme,
        stripe_unit_bytes=scenario.cluster.stripe_unit_bytes,
        object_bytes=scenario.cluster.object_bytes,
    )


def throttle_within_reach(scenario: Scenario, models: Models) -> ThrottleModel | None:
    """Return the limit on client requests of an OSD, or None if the loads together cannot reach it."""
    throttle = models.throttle
    in_flight = scenario.in_flight_count
    if throttle is None or in_flight is None:
        return throttle
    # A request has a part for each object that it covers.
    largest_bytes = max(
        (size for load in scenario.loads for size in load.block_sizes_bytes), default=1
    )
    parts = -(-largest_bytes // scenario.cluster.object_bytes)
    if in_flight * parts <= throttle.client_requests_max_count:
        return None
    return throttle


def _one_drive(scenario: Scenario, models: Models) -> Cluster:
    """Build a single drive without network or redundancy."""
    return Cluster(
        osd_hosts=np.zeros(1, dtype=np.int64),
        acting=np.zeros((1, 1), dtype=np.int64),
        models=replace(models, ssd=models.ssd.single()),
        client_hosts=_client_hosts(scenario, 1),
        unlimited_clients=bool(scenario.client.unlimited),
    )


def _cluster(
    scenario: Scenario,
    scheme: RedundancyScheme,
    models: Models,
    down: Sequence[int],
    weights: OsdWeights | None,
) -> Cluster:
    """Build the scenario's cluster with the placement groups of a scheme."""
    spec = scenario.cluster
    hosts = padded_osd_hosts(scenario)
    # Hosts that changes add get no clients.
    first_hosts = int(hosts.max()) + 1 - len(grown_map_of(scenario).new_hosts)
    client_hosts = _client_hosts(scenario, first_hosts)
    host_cores = None
    if not isinstance(spec.hosts, int):
        host_cores = np.array(host_values(scenario, "cores"))
    return Cluster(
        osd_hosts=hosts,
        acting=acting_sets(scenario, scheme, len(hosts), down, weights),
        models=models,
        client_hosts=client_hosts,
        clients_on_osd_hosts=scenario.client.place == "osd-hosts",
        unlimited_clients=bool(scenario.client.unlimited),
        one_network=spec.networks == 1,
        host_cores=host_cores,
        cores_per_osd=spec.cores_per_osd,
        cpu_limit_per_osd=spec.cpu_limit_per_osd,
        sites=sites_of(scenario, hosts, client_hosts),
    )
