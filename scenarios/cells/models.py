"""Build the measured models of a scenario from the parameter sets that it names."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.parameters.sets import (
    DEVICE_TABLES,
    REPLACED,
    ParameterSet,
    lognormal_factors,
    names,
)
from stripesim.models.coding import (
    EcPolicy,
)
from stripesim.models.coding.protocol import SHARDS_MAX
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.generations import Generation, OpThreads, generation, generations
from stripesim.models.generations.table import Device as RecoveryDevice
from stripesim.models.hdd import DeviceModel
from stripesim.models.messages import MessageModel
from stripesim.models.nic import NicModel
from stripesim.models.object_store.gateway import GatewayModel
from stripesim.models.object_store.store import ObjectStoreModel
from stripesim.models.pg_lock import PgLockModel
from stripesim.models.problems import ParameterSetError, ScenarioError
from stripesim.models.qos import Device
from stripesim.models.threads import ThreadModel
from stripesim.scenarios.cells.kernel_costs import kernel_table
from stripesim.scenarios.schema.keys import LOCAL_READS, ClusterSpec, names_file
from stripesim.scenarios.schema.problems import value_text
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.qos import OpQueue, mclock, wpq


def build_models(scenario: Scenario) -> Models:
    """Build the measured models that a scenario names."""
    cluster = scenario.cluster
    parameters = cluster_set(scenario)
    drive = _device(scenario)
    release = generation(scenario.generation)
    threads = _threads(cluster, parameters, release.op_threads(_device_kind(drive)))
    public_bits_per_s = cluster.public_gbit_per_s * 1e9
    private_bits_per_s = cluster.between_hosts_gbit_per_s * 1e9
    public_rate = {"rate_bits_per_s": public_bits_per_s}
    private_rate = {"rate_bits_per_s": private_bits_per_s}
    lock_scope = cluster.pg_lock_scope or release.pg_lock_scope
    policy = ec_policy(scenario)
    submit = {}
    if scenario.client.threads is not None:
        submit["submit_threads_count"] = scenario.client.threads
    return Models(
        client=parameters.model(ClientModel, "client", submit),
        cpu=parameters.model(
            CpuModel, "cpu", {"cores_per_host": cluster.cores_per_host}
        ),
        public_nic=parameters.model(NicModel, "public_nic", public_rate),
        private_nic=parameters.model(NicModel, "private_nic", private_rate),
        messages=parameters.model(MessageModel, "messages"),
        pg_lock=PgLockModel(scope=lock_scope, provenance={}),
        threads=threads,
        ssd=drive,
        store=_store(parameters, release),
        kernel=kernel_table(scenario),
        kernel_backend=cluster.kernel_backend,
        encode_buffers=ceph_buffers() if cluster.encode_buffers else None,
        ec=policy,
        extent_cache=release.extent_cache() if policy.optimised else None,
        op_queue=op_queue(scenario, drive, threads.op_shards_count),
        throttle=release.throttle(),
        deferral=release.deferral(_device_kind(drive)),
        gateway=_gateway(scenario, parameters),
        extra_reads=_extra_reads(cluster.read_policy),
        local_reads=cluster.read_policy == LOCAL_READS,
    )


def _extra_reads(policy: str) -> int:
    """Return the shards, or copies, that a read asks for beyond those it needs: at most all there are."""
    if policy in ("needed", LOCAL_READS):
        return 0
    count = policy.removeprefix("speculative:")
    return SHARDS_MAX if policy == "fastest:k" else int(count)


def _gateway(scenario: Scenario, parameters: ParameterSet) -> GatewayModel | None:
    """Return the costs of gateways of a parameter set, or None for a load without gateways."""
    if not scenario.workload.is_s3:
        return None
    if parameters.table("gateway") is None:
        got = f'"{scenario.cluster.parameters}", which has no costs of gateways'
        raise scenario.problem("cluster.parameters", got, '"nvme", with kind s3')
    return parameters.model(GatewayModel, "gateway")


def _device_kind(drive: DeviceModel) -> Device:
    """Return the kind of device that selects Ceph's defaults."""
    if drive.rotational:
        return "hdd"
    return "ssd"


def recovery_device(scenario: Scenario) -> RecoveryDevice:
    """Return the kind of a scenario's drives that selects Ceph's defaults of recovery."""
    drive = _device(scenario)
    if drive.rotational and drive.has_log_drive:
        return "hybrid"
    return _device_kind(drive)


def op_queue(scenario: Scenario, drive: DeviceModel, queues: int) -> OpQueue | None:
    """Return the queue in front of worker threads, or None for first come, first served."""
    kind = scenario.cluster.op_queue
    profile = scenario.cluster.mclock_profile
    if kind == "mclock_scheduler":
        iops = drive.writers * 1e9 / drive.write_ns(4096)
        try:
            return mclock(
                scenario.generation,
                profile,
                _device_kind(drive),
                queues=queues,
                measured_iops=iops,
            )
        except ValueError as error:
            raise ScenarioError(
                scenario.located("cluster", "op_queue", detail=str(error))
            ) from None
    if profile:
        got = f'"{profile}" with op_queue "{kind}"'
        raise scenario.problem(
            "cluster.mclock_profile", got, 'op_queue "mclock_scheduler"'
        )
    if kind == "wpq":
        return wpq()
    return None


def _store(parameters: ParameterSet, release: Generation) -> ObjectStoreModel:
    """Return the set's store, with what a sync of the release writes unless the set says it."""
    store = parameters.model(ObjectStoreModel, "store")
    return store if store.sync_log_bytes else release.with_log(store)


def ec_policy(scenario: Scenario) -> EcPolicy:
    """Return the read and write paths of the scenario's erasure-coded pools."""
    cluster = scenario.cluster
    release = generation(scenario.generation)
    offered = release.ec
    direct = cluster.direct_reads
    optimised = cluster.ec_optimizations
    if optimised is None:
        optimised = offered.optimised

    def offering(flag: str) -> str:
        return ", ".join(
            name for name, each in generations().items() if getattr(each.ec, flag)
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
        return release.classic_ec
    return replace(offered, direct_reads=direct)


def _threads(
    cluster: ClusterSpec, parameters: ParameterSet, release: OpThreads
) -> ThreadModel:
    """Return an OSD's threads, from the scenario, the parameter set or the Ceph release, in that order."""
    counts = {
        "op_shards_count": cluster.op_shards,
        "op_threads_per_shard_count": cluster.op_threads_per_shard,
        "messenger_threads_count": cluster.messenger_threads,
    }
    fitted = parameters.table("threads") or {}
    for key, value in (
        ("op_shards_count", release.shards_count),
        ("op_threads_per_shard_count", release.threads_per_shard_count),
    ):
        if counts[key] is None and key not in fitted:
            counts[key] = value
    return parameters.model(
        ThreadModel, "threads", {key: n for key, n in counts.items() if n is not None}
    )


@cache
def _shipped_set(name: str) -> ParameterSet:
    """Read a set that ships. A sweep asks for the same set thousands of times."""
    return ParameterSet(name)


@lru_cache(maxsize=8)
def sets_with(tables: tuple[str, ...]) -> tuple[str, ...]:
    """List the shipped sets that have at least one of the tables."""
    return tuple(each for each in names() if _ships_with(each, tables))


@cache
def _ships_with(name: str, tables: tuple[str, ...]) -> bool:
    """Return True if a set of this name ships and has at least one of the tables."""
    return name in names() and any(map(_shipped_set(name).table, tables))


def _parameter_set(scenario: Scenario, key: str, *tables: str) -> ParameterSet:
    """Return the set that a cluster key names, which must have one of the tables."""
    name = getattr(scenario.cluster, key)
    if names_file(key, name):
        try:
            return ParameterSet(Path(name).name, scenario.resolve(name))
        except ParameterSetError as error:
            raise ParameterSetError(
                scenario.located("cluster", key, detail=str(error))
            ) from None
    if _ships_with(name, tables):
        return _shipped_set(name)
    fitting = sets_with(tables)
    kind = "a parameter set of a cluster" if key == "parameters" else "a device"
    wanted = f"{kind}: {', '.join(fitting)}"
    if key == "parameters":
        wanted = REPLACED.get(name, wanted)
    raise ParameterSetError(
        scenario.located("cluster", key, got=value_text(name), wanted=wanted)
    )


def cluster_set(scenario: Scenario) -> ParameterSet:
    """Return the parameter set of the cluster: one that ships, or a file such as `calibrate` writes."""
    return _parameter_set(scenario, "parameters", "client")


def device_set(scenario: Scenario) -> ParameterSet:
    """Return the parameter set of the devices under OSDs: one that ships, or a file."""
    return _parameter_set(scenario, "drive", *DEVICE_TABLES)


def _device(scenario: Scenario) -> DeviceModel:
    """Build the devices, with the numbers that the scenario itself gives."""
    given: dict[str, Any] = scenario.cluster.drive_numbers.model_dump(exclude_none=True)
    for direction in ("read", "write"):
        if f"{direction}_sigma" in given:
            given[f"{direction}_quantiles"] = lognormal_factors(
                given.pop(f"{direction}_sigma")
            )
    numbers = device_set(scenario)
    try:
        return numbers.device(given)
    except ParameterSetError as error:
        path = ("cluster", "drive_numbers" if given else "drive")
        raise ParameterSetError(scenario.located(*path, detail=str(error))) from None
