"""From a scenario to pools and workloads: the one place where configuration meets models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.parameters.sets import (
    DEVICE_TABLES,
    REPLACED,
    ParameterSet,
    ParameterSetError,
    lognormal_factors,
    names,
)
from stripesim.models.coding import (
    PAGE_BYTES,
    WHOLE_STRIPES,
    EcPolicy,
    RedundancyScheme,
    parse_scheme,
)
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.drive import DriveCapacity
from stripesim.models.generations import OpThreads, generation, generations
from stripesim.models.hdd import DeviceModel
from stripesim.models.kernel.cost import KernelTableError
from stripesim.models.messages import MessageModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.store import ObjectStoreModel
from stripesim.models.pg_lock import PgLockModel
from stripesim.models.placement import (
    NONE,
    CrushMap,
    load_map,
    map_of_hosts,
    pg_mappings,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.qos import Device
from stripesim.models.threads import ThreadModel
from stripesim.scenarios.run.failures import plan_of, repair_plan
from stripesim.scenarios.run.files import cached_by_content
from stripesim.scenarios.run.kernel_costs import kernel_table
from stripesim.scenarios.schema.geometry import (
    domain_count,
    domains_of_osds,
    failure_domain,
)
from stripesim.scenarios.schema.keys import (
    Cell,
    ClusterSpec,
    Scenario,
    WorkloadSpec,
    load_cell,
    names_file,
)
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD, Cluster, Models
from stripesim.sim.ceph.failures import FaultPlan
from stripesim.sim.ceph.pool import Pool, UnavailableError
from stripesim.sim.ceph.qos import OpQueue, mclock, wpq
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.run import AnyWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

POOL_ID = 1


@dataclass(frozen=True)
class CellInputs:
    """What one cell of a scenario runs on; newest_only is that of the engine's `Program`."""

    pool: Pool
    workload: AnyWorkload | Sequence[AnyWorkload]
    prefilled: bool
    until_ns: int | None
    faults: FaultPlan | None = None
    timeout_ns: int = 0
    newest_only: bool = False


def build_models(scenario: Scenario) -> Models:
    """Build the measured models that a scenario names."""
    cluster = scenario.cluster
    chosen = _parameter_set(scenario, "parameters", "client")
    drive = _device(scenario)
    release = generation(scenario.generation)
    threads = _threads(
        cluster, chosen, release.op_threads("hdd" if drive.rotational else "ssd")
    )
    public_bits_per_s = cluster.public_gbit_per_s * 1e9
    private_bits_per_s = cluster.private_gbit_per_s * 1e9
    submit = (
        {}
        if scenario.client.threads is None
        else {"submit_threads_count": scenario.client.threads}
    )
    return Models(
        client=chosen.model(ClientModel, "client", submit),
        cpu=chosen.model(CpuModel, "cpu", {"cores_per_host": cluster.cores_per_host}),
        public_nic=chosen.model(
            NicModel, "public_nic", {"rate_bits_per_s": public_bits_per_s}
        ),
        private_nic=chosen.model(
            NicModel, "private_nic", {"rate_bits_per_s": private_bits_per_s}
        ),
        messages=chosen.model(MessageModel, "messages"),
        pg_lock=PgLockModel(
            scope=cluster.pg_lock_scope or release.pg_lock_scope, provenance={}
        ),
        threads=threads,
        ssd=drive,
        store=chosen.model(ObjectStoreModel, "store"),
        kernel=kernel_table(scenario),
        kernel_backend=cluster.kernel_backend,
        encode_buffers=ceph_buffers() if cluster.encode_buffers else None,
        ec=ec_policy(scenario),
        op_queue=_op_queue(scenario, drive, threads.op_shards_count),
    )


def _op_queue(scenario: Scenario, drive: DeviceModel, queues: int) -> OpQueue | None:
    """Return the queue in front of worker threads; None: in order of arrival."""
    kind = scenario.cluster.op_queue
    profile = scenario.cluster.mclock_profile
    if kind == "mclock_scheduler":
        device: Device = "hdd" if drive.rotational else "ssd"
        iops = drive.servers * 1e9 / drive.write_ns(4096)
        try:
            return mclock(
                scenario.generation, profile, device, queues=queues, measured_iops=iops
            )
        except ValueError as error:
            raise ValueError(
                f"{scenario.where('cluster', 'op_queue')}: {error}"
            ) from None
    if profile:
        got = f'"{profile}" with op_queue "{kind}"'
        raise scenario.problem(
            "cluster.mclock_profile", got, 'op_queue "mclock_scheduler"'
        )
    return wpq() if kind == "wpq" else None


def ec_policy(scenario: Scenario) -> EcPolicy:
    """Return how the scenario's erasure-coded pools are read and written."""
    cluster = scenario.cluster
    release = generation(scenario.generation)
    offered = release.ec
    direct = cluster.direct_reads
    optimised = (
        offered.optimised
        if cluster.ec_optimizations is None
        else cluster.ec_optimizations
    )

    def offering(flag: str) -> str:
        return ", ".join(
            name for name, one in generations().items() if getattr(one.ec, flag)
        )

    got = f"true with generation {release.name}"
    if optimised and not offered.optimised:
        raise scenario.problem(
            "cluster.ec_optimizations", got, f"one of {offering('optimised')}"
        )
    if direct and not offered.direct_reads:
        wanted = f"{offering('direct_reads')}: earlier releases have no direct reads of erasure-coded pools"
        raise scenario.problem("cluster.direct_reads", got, wanted)
    if direct and not optimised:
        raise scenario.problem(
            "cluster.direct_reads", "true with a classic pool", "ec_optimizations"
        )
    if optimised and cluster.pg_lock_scope not in (None, "dispatch"):
        wanted = '"dispatch": writes of an optimised pool go through the pipeline of their placement group'
        raise scenario.problem(
            "cluster.pg_lock_scope", f'"{cluster.pg_lock_scope}"', wanted
        )
    if offered.optimised and not optimised:
        return WHOLE_STRIPES
    return replace(offered, direct_reads=direct)


def _threads(
    cluster: ClusterSpec, chosen: ParameterSet, release: OpThreads
) -> ThreadModel:
    """Return an OSD's threads: as the scenario says, else the parameter set, else the release of Ceph."""
    given = {
        "op_shards_count": cluster.op_shards,
        "op_threads_per_shard_count": cluster.op_threads_per_shard,
        "messenger_threads_count": cluster.messenger_threads,
    }
    fitted = chosen.table("threads") or {}
    for key, value in (
        ("op_shards_count", release.shards_count),
        ("op_threads_per_shard_count", release.threads_per_shard_count),
    ):
        if given[key] is None and key not in fitted:
            given[key] = value
    return chosen.model(
        ThreadModel, "threads", {key: n for key, n in given.items() if n is not None}
    )


@lru_cache(maxsize=8)
def _sets_with(tables: tuple[str, ...]) -> tuple[str, ...]:
    """Name the sets that have one of some tables: they ship, and do not change."""
    return tuple(
        each
        for each in names()
        if any(ParameterSet(each).table(table) for table in tables)
    )


def _parameter_set(scenario: Scenario, key: str, *tables: str) -> ParameterSet:
    """Return the set that a key of the cluster names; it must have a table that the key is about."""
    name = getattr(scenario.cluster, key)
    fitting = _sets_with(tables)
    if name in fitting:
        return ParameterSet(name)
    what = "a parameter set of a cluster" if key == "parameters" else "a device"
    wanted = f"{what}: {', '.join(fitting)}"
    if key == "parameters":
        wanted = REPLACED.get(name, wanted)
    where = scenario.where("cluster", key)
    raise ParameterSetError(f"{where}: got {value_text(name)}, wanted {wanted}")


def device_set(scenario: Scenario) -> ParameterSet:
    """Return the parameter set of the devices under OSDs: one that ships, or a file of one's own."""
    named = scenario.cluster.ssd
    if not names_file("ssd", named):
        return _parameter_set(scenario, "ssd", *DEVICE_TABLES)
    return ParameterSet(Path(named).name, scenario.resolve(named))


def _device(scenario: Scenario) -> DeviceModel:
    """Build the devices, with the numbers that the scenario itself gives."""
    given: dict[str, Any] = scenario.cluster.drive.model_dump(exclude_none=True)
    for direction in ("read", "write"):
        if f"{direction}_sigma" in given:
            given[f"{direction}_quantiles"] = lognormal_factors(
                given.pop(f"{direction}_sigma")
            )
    key = "drive" if given else "ssd"
    try:
        return device_set(scenario).device(given)
    except ParameterSetError as error:
        place = scenario.where("cluster", key)
        raise ParameterSetError(
            f"{place}: {error}" if place not in str(error) else str(error)
        ) from None


def build_cell(
    scenario: Scenario, cell: Cell, models: Models | None = None
) -> CellInputs:
    """Build what one cell runs on."""
    scheme = parse_scheme(cell.scheme)
    models = models or build_models(scenario)
    # What a repair rebuilds is lost inside of the run.
    pool = build_pool(
        scenario, scheme, models, down=() if scenario.repair else _down(scenario)
    )
    workload = scenario.workload
    rotational = models.ssd.rotational

    def sets_without(out: tuple[int, ...]) -> IntArray:
        return up_sets(scenario, scheme, out)

    faults = None
    if scenario.faults is not None:
        faults = plan_of(
            scenario, pool.cluster.osd_hosts, sets_without, rotational=rotational
        )
    if scenario.repair is not None:
        faults = repair_plan(scenario, sets_without, rotational=rotational)
    return CellInputs(
        pool=pool,
        workload=build_loads(scenario, cell),
        prefilled=workload.image == "prefilled",
        until_ns=None
        if scenario.duration_s is None
        else round(scenario.duration_s * 1e9),
        faults=faults,
        timeout_ns=0
        if workload.timeout_s is None
        else max(1, round(workload.timeout_s * 1e9)),
        # A bare device is driven without the library that makes a client wait so.
        newest_only=workload.completions == "newest" and scheme.name != "none",
    )


def check_schemes(scenario: Scenario, models: Models) -> None:
    """Check what each scheme needs of placement and kernel costs, before any of them runs."""
    down = _down(scenario)
    if scenario.faults is not None:
        no_sets = np.empty((0, 0), dtype=np.int64)
        plan_of(
            scenario,
            _osd_hosts(scenario),
            lambda out: no_sets,
            rotational=models.ssd.rotational,
        )
    encodes = bool(down or scenario.faults) or any(
        load.kind == "trace" or load.read_fraction is not None or "write" in load.ops
        for load in scenario.loads
    )
    problems: list[str] = []
    for name in scenario.schemes:
        scheme = parse_scheme(name)
        try:
            if models.ec.optimised and scheme.kind == "erasure":
                check_optimised(scheme, scenario)
            views = build_pool(scenario, scheme, models, down=down).contexts
            if encodes and scheme.kind == "erasure":
                models.encode_ns(scheme.name, views[0].geometry.stripe_bytes)
        except KernelTableError as error:
            measure = f"`stripesim kernel --scheme {name} --save` measures it here"
            problems.append(f"{scenario.where('schemes')}: {error}; {measure}")
        except UnavailableError as error:
            wanted = "an OSD for each, or more failure domains for CRUSH to find one"
            problems.append(
                f"{scenario.where('schemes')}: got {error}, wanted {wanted}"
            )
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(dict.fromkeys(problems)))


def check_optimised(scheme: RedundancyScheme, scenario: Scenario) -> None:
    """Raise `ValueError` where Ceph has no optimised pool of this scheme and stripe unit."""
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


def build_loads(scenario: Scenario, cell: Cell) -> AnyWorkload | list[AnyWorkload]:
    """Build what the clients of one cell ask for: one workload, or several at the same time."""
    if scenario.workload.kind == "trace" and not scenario.workloads:
        from stripesim.scenarios.run.replay import replay_of

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
    return Synthetic(
        pattern=cell.pattern,
        block_bytes=cell.block_size_bytes,
        image_bytes=load.image_bytes,
        read_fraction=read_fraction,
        requests=load.requests,
        queue_depth=0 if load.kind == "open" else load.queue_depth,
        rate_per_s=load.rate_per_s if load.kind == "open" else None,
        # Each of several workloads draws for itself.
        seed=scenario.seed + first_client,
        clients=load.clients,
        first_client=first_client,
        first_byte=first_byte,
        image_stride_bytes=scenario.image_stride_bytes(load),
    ).start()


def _client_hosts(scenario: Scenario, hosts: int) -> IntArray:
    """Machine of each client: those of a workload share machines, or the storage hosts in turn."""
    machines = [
        np.arange(load.clients, dtype=np.int64) // load.clients_per_host
        for load in scenario.loads
    ]
    firsts = np.cumsum([0, *(int(own[-1]) + 1 for own in machines[:-1])])
    found = np.concatenate(
        [own + first for own, first in zip(machines, firsts, strict=True)]
    )
    return found % hosts if scenario.client.place == "osd-hosts" else found


def build_pool(
    scenario: Scenario,
    scheme: RedundancyScheme,
    models: Models,
    *,
    down: Sequence[int] = (),
) -> Pool:
    """Place a scheme's pool on the scenario's cluster; without a scheme it is one drive and nothing else."""
    found = scenario.cluster
    if scheme.name == "none":
        cluster = Cluster(
            osd_hosts=np.zeros(1, dtype=np.int64),
            acting=np.zeros((1, 1), dtype=np.int64),
            models=replace(models, ssd=models.ssd.single()),
            client_hosts=_client_hosts(scenario, 1),
        )
    else:
        hosts = _osd_hosts(scenario)
        cluster = Cluster(
            osd_hosts=hosts,
            acting=_acting(scenario, scheme, len(hosts), down),
            models=models,
            client_hosts=_client_hosts(scenario, int(hosts.max()) + 1),
            clients_on_osd_hosts=scenario.client.place == "osd-hosts",
            one_network=found.networks == 1,
            host_cores=None
            if isinstance(found.hosts, int)
            else np.array(host_values(scenario, "cores")),
        )
    return Pool(
        cluster=cluster,
        scheme=scheme,
        stripe_unit_bytes=found.stripe_unit_bytes,
        object_bytes=found.object_bytes,
    )


def _acting(
    scenario: Scenario, scheme: RedundancyScheme, osds: int, down: Sequence[int]
) -> IntArray:
    """Map the placement groups, with holes for OSDs that are down."""
    acting = up_sets(scenario, scheme)
    if (acting == NO_OSD).any(axis=1).all():
        placed = int((acting != NO_OSD).sum(axis=1).max())
        raise _too_few_domains(scenario, scheme, placed)
    unknown = [osd for osd in down if osd >= osds]
    if unknown:
        raise scenario.problem(
            "cluster.crush_map", f"no OSD {unknown[0]}", "OSDs of the map"
        )
    return np.where(np.isin(acting, np.asarray(down, dtype=np.int64)), NO_OSD, acting)


def _too_few_domains(
    scenario: Scenario, scheme: RedundancyScheme, placed: int
) -> ValueError:
    """Make the error of a cluster that has no place for every shard of a scheme."""
    few = f"places at most {placed} of the {scheme.width} shards of {scheme.name}"
    if scenario.cluster.crush_map is not None:
        got = f"rule {crush_rule(scenario, scheme)}, which {few}"
        return scenario.problem(
            "cluster.crush_map", got, "a map and a rule that place all"
        )
    domain, key = failure_domain(scenario, scheme)
    count = domain_count(scenario, domain)
    got = f"{count} {domain}s, which {few.replace('places', 'hold')}"
    return scenario.problem(
        "cluster.hosts", got, f'as many {domain}s as shards, or {key} = "osd"'
    )


def host_values(scenario: Scenario, key: str) -> list[Any]:
    """List a key's value for each host, from the groups of hosts."""
    check_host_count(scenario)
    return scenario.cluster.of_hosts(key)


def check_host_count(scenario: Scenario) -> None:
    """Check that groups of hosts describe as many hosts as the cluster has."""
    cluster = scenario.cluster
    count = int(_osd_hosts(scenario).max()) + 1
    if cluster.host_count == count:
        return
    got = f"groups of {cluster.host_count} hosts"
    raise scenario.problem("cluster.hosts", got, f"{count}, as {cluster.crush_map} has")


def group_drive_bytes(scenario: Scenario) -> list[float]:
    """List the capacity of one drive of each group of hosts [B]; an empty list where no group states one.

    Groups that state none take `cluster.drive_bytes`, or else the device parameter set's capacity.
    """
    cluster = scenario.cluster
    if isinstance(cluster.hosts, int):
        return []
    if all(group.drive_bytes is None for group in cluster.hosts):
        return []
    sizes = [group.drive_bytes for group in cluster.host_groups]
    if None in sizes:
        default = _device_capacity(scenario, sizes.index(None))
        sizes = [size or default for size in sizes]
    return [float(size) for size in sizes if size is not None]


def _device_capacity(scenario: Scenario, group: int) -> int:
    """Return the device parameter set's capacity, for a group of hosts that gives none [B]."""
    drive = device_set(scenario)
    if drive.table("capacity") is None:
        wanted = f"bytes, or cluster.drive_bytes: device parameter set {drive.name} gives no capacity"
        raise scenario.problem(f"cluster.hosts.{group}.drive_bytes", "nothing", wanted)
    return round(drive.model(DriveCapacity, "capacity").drive_bytes)


def _down(scenario: Scenario) -> list[int]:
    lost = () if scenario.repair is None else scenario.repair.lost_osds
    missing = () if scenario.degraded is None else scenario.degraded.missing_osds
    return sorted({*lost, *missing})


_map_of_file = cached_by_content(maxsize=4)(load_map)


_TIB: Final = 1 << 40


@lru_cache(maxsize=8)
def _map_of(cluster: ClusterSpec, weights: tuple[int, ...]) -> CrushMap:
    """Build the map of a cluster's hosts; `weights` are those of an OSD of each group, 16.16 fixed point."""
    of_hosts = [
        (weight,) * (group.osds or 0)
        for group, weight in zip(cluster.host_groups, weights, strict=True)
        for _ in range(group.count)
    ]
    return map_of_hosts(of_hosts, cluster.rack_names)


def _group_weights(scenario: Scenario) -> tuple[int, ...]:
    """Return the CRUSH weight of an OSD of each group of hosts, by capacity [TiB] where capacities differ."""
    sizes = group_drive_bytes(scenario)
    if len(set(sizes)) <= 1:
        return (WEIGHT_ONE,) * len(scenario.cluster.host_groups)
    weights = tuple(round(size / _TIB * WEIGHT_ONE) for size in sizes)
    if 0 in weights:
        raise _too_small(scenario, weights.index(0), sizes)
    return weights


def _too_small(scenario: Scenario, group: int, sizes: list[float]) -> ValueError:
    """Make the error of a group whose drives are too small for a CRUSH weight."""
    cluster = scenario.cluster
    assert not isinstance(cluster.hosts, int)
    own = cluster.hosts[group].drive_bytes is not None
    key = f"cluster.hosts.{group}.drive_bytes" if own else "cluster.drive_bytes"
    smallest = format_size(_TIB // WEIGHT_ONE // 2)
    wanted = f"more than {smallest} where drives differ: CRUSH weights count TiB / {WEIGHT_ONE:,}"
    return scenario.problem(key, f"{sizes[group]:.0f}", wanted)


def crush_of(scenario: Scenario) -> CrushMap:
    """Return the CRUSH map of a scenario: its file, or the regular map of its counts."""
    cluster = scenario.cluster
    if cluster.crush_map is not None:
        return _map_of_file(str(scenario.resolve(cluster.crush_map)))
    return _map_of(cluster, _group_weights(scenario))


def crush_rule(scenario: Scenario, scheme: RedundancyScheme) -> str:
    """Return the name of the CRUSH rule that places a scheme."""
    domain, _ = failure_domain(scenario, scheme)
    kind = "rep" if scheme.kind == "replicated" else "ec"
    return scenario.cluster.crush_rule or kind + (
        "" if domain == "host" else f"_{domain}"
    )


def up_sets(
    scenario: Scenario, scheme: RedundancyScheme, out: Sequence[int] = ()
) -> IntArray:
    """Map the placement groups, with some OSDs out."""
    assert NO_OSD == NONE
    crush = crush_of(scenario)
    rule = crush_rule(scenario, scheme)
    groups = scenario.cluster.pg_num
    reweights = dict.fromkeys(out, 0.0) if out else None
    return pg_mappings(crush, rule, POOL_ID, groups, scheme.width, reweights).astype(
        np.int64
    )


def osd_hosts(scenario: Scenario) -> IntArray:
    """Host of each OSD, -1 for a number that no OSD has."""
    hosts = _osd_hosts(scenario)
    if scenario.cluster.crush_map is None:
        return hosts
    known = np.zeros(len(hosts), dtype=bool)
    known[[device.id for device in crush_of(scenario).devices]] = True
    return np.where(known, hosts, -1)


def _osd_hosts(scenario: Scenario) -> IntArray:
    """Host of each OSD: by the scenario's counts, or by the buckets of type host of its CRUSH map."""
    cluster = scenario.cluster
    key = "cluster.crush_map"
    if cluster.crush_map is None:
        return np.repeat(
            np.arange(cluster.host_count, dtype=np.int64), cluster.of_hosts("osds")
        )
    crush = crush_of(scenario)
    found = crush.domains("host")
    if not found:
        raise scenario.problem(
            key, f"no bucket of type host in {cluster.crush_map}", "one"
        )
    stray = [device.name for device in crush.devices if device.id not in found]
    if stray:
        raise scenario.problem(
            key, f"{stray[0]} in no host of {cluster.crush_map}", "it in one"
        )
    numbers = {
        name: number for number, name in enumerate(dict.fromkeys(found.values()))
    }
    osd_hosts = np.zeros(crush.max_devices, dtype=np.int64)
    osd_hosts[list(found)] = [numbers[name] for name in found.values()]
    return osd_hosts


def domain_type(scenario: Scenario, scheme: RedundancyScheme) -> str:
    """Return the type of a scheme's failure domains: of the scenario's key, or of its CRUSH map's rule."""
    if scenario.cluster.crush_map is None:
        return failure_domain(scenario, scheme)[0]
    return crush_of(scenario).failure_domain(crush_rule(scenario, scheme))


def osd_domains(scenario: Scenario, scheme: RedundancyScheme) -> dict[int, int | str]:
    """Return the failure domain of a scheme that each OSD is in."""
    hosts = osd_hosts(scenario)
    osds = np.flatnonzero(hosts >= 0).tolist()
    domain = domain_type(scenario, scheme)
    if scenario.cluster.crush_map is None:
        return dict(zip(osds, domains_of_osds(scenario, domain), strict=True))
    named = crush_of(scenario).domains(domain)
    return {osd: named.get(osd, osd) for osd in osds}
