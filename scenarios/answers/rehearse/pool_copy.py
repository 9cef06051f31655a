"""Copy a pool into a new pool with another scheme: placement, bytes, fill, and bounds of the duration.

The engines run one pool at a time. So reads of the old pool, alongside its clients, and writes of the new
pool are simulated one after the other, and their rates bound that of the copy.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.rehearse.client_effect import NO_CLIENTS
from stripesim.scenarios.answers.rehearse.samples import fill_plan, stored_objects
from stripesim.scenarios.cells.build import build_cell, build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.keys import LoadSpec, WorkloadSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.observe.result_row import ResultRow
from stripesim.sim.run import Run, simulate

#: Objects that a copying client keeps in flight by default [count].
#:
#: ``rbd_concurrent_management_ops`` of ``rbd migration execute`` and ``rbd deep copy``, v16.2.15
#: (``src/common/options.cc``).
COPY_PARALLEL: Final = 10
# Simulated time of each part [s], by what factor it grows if it shows too few requests, and up to where.
_PART_S: Final = 2.0
_LONGER: Final = 4
_PART_MAX_S: Final = 128.0
# Objects of the image of each part [count].
_IMAGE_OBJECTS: Final = 4096
#: Fields of the duration of a change: the estimate and its interval.
DURATIONS: Final = ("duration_s", "duration_low_s", "duration_high_s")


def rehearse_copy(scenario: Scenario, *, engine: str) -> dict[str, Any]:
    r"""Describe a copy for a scenario whose only change is another scheme.

    Notes
    -----
    One client reads objects from the old pool and writes them whole to the new one, which has the next pool
    number. It keeps `copy_parallel` objects in flight. The cluster holds both pools in full until the old one
    is deleted.

    With all of them reading, it reads :math:`X_r` objects per second, with all of them writing it writes
    :math:`X_w`. Each object takes both: :math:`N (1/X_r + 1/X_w)` for :math:`N` objects. This is exact if
    latencies decide, because each of the objects in flight spends its time in turns, and if both parts fill
    the same resource. Where they fill different ones, such as the two directions of a network, they overlap.
    The copy then takes at least :math:`N / \min(X_r, X_w)`.
    """
    (change,) = scenario.changes
    assert change.scheme is not None, "checked by change_rules"
    models = build_models(scenario)
    old = build_pool(scenario, parse_scheme(scenario.schemes[0]), models)
    target = target_of_copy(scenario)
    new = build_pool(target, parse_scheme(change.scheme), models)
    objects = stored_objects(scenario, old)
    per_group = objects / scenario.cluster.pg_num
    new_shard_bytes = kind_of(new).shard_bytes
    shards = np.bincount(_osds(new), minlength=new.cluster.osds)
    shards_count = int(shards.sum())
    # The primary reads its local shard and gathers the other k − 1. A replica needs only the local read.
    read_bytes = old.scheme.k * kind_of(old).shard_bytes
    gathered = _remote_bytes(old, old.scheme.k, kind_of(old).shard_bytes)
    spread = _remote_bytes(new, new.scheme.width, new_shard_bytes)
    moved_bytes = round(shards_count * per_group * new_shard_bytes)
    reads = _reads(scenario, engine)
    writes_per_s = _writes_per_s(target, _parallel(scenario), engine)
    slowest_s = objects * (1 / reads.objects_per_s + 1 / writes_per_s)
    row: dict[str, Any] = {
        "kind": change.kind,
        "pgs_moved": new.cluster.groups,
        "shards_moved": shards_count,
        "bytes_moved": moved_bytes,
        "device_read_bytes": round(objects * read_bytes),
        "device_write_bytes": moved_bytes,
        "private_net_bytes": round(objects * (gathered[0] + spread[0])),
        "between_hosts_bytes": round(objects * (gathered[1] + spread[1])),
        "duration_s": slowest_s,
        "duration_low_s": objects / min(reads.objects_per_s, writes_per_s),
        "duration_high_s": slowest_s,
        "copy_parallel": _parallel(scenario),
        "copy_read_bytes_per_s": reads.objects_per_s * scenario.cluster.object_bytes,
        "copy_write_bytes_per_s": writes_per_s * scenario.cluster.object_bytes,
        "peak_used_ratio": None,
        "full_ratio_reached": None,
        "fullest_osd": None,
        "profiles": [],
    }
    row["profiles"] = [
        {
            "profile": scenario.cluster.mclock_profile or scenario.cluster.op_queue,
            **{name: row[name] for name in DURATIONS},
            **reads.during,
            "before": reads.before,
            "after": dict(NO_CLIENTS),
        }
    ]
    fill = fill_plan(scenario, old, drives_of(scenario, models), 1)
    if fill is not None:
        used_bytes = fill.used_bytes + shards * per_group * new_shard_bytes
        row |= fill.described(used_bytes / fill.capacity_bytes)
    return row


@dataclass(frozen=True)
class _Reads:
    """Reads of the old pool alongside its clients."""

    objects_per_s: float
    before: dict[str, Any]  # Clients without the copy.
    during: dict[str, Any]  # Clients during the reads.


def _parallel(scenario: Scenario) -> int:
    return scenario.changes[0].copy_parallel or COPY_PARALLEL


def _reads(scenario: Scenario, engine: str) -> _Reads:
    """Simulate the clients, and then the clients beside a client that reads whole objects."""
    copy = LoadSpec(
        name="copy",
        ops=("read",),
        patterns=("rand",),
        block_sizes_bytes=(scenario.cluster.object_bytes,),
        queue_depth=_parallel(scenario),
        image_bytes=_IMAGE_OBJECTS * scenario.cluster.object_bytes,
        duration_s=_PART_S,
    )
    if scenario.workloads or scenario.workload.kind == "trace":
        only = WorkloadSpec.model_validate(copy.model_dump(exclude={"name"}))
        keys = {"workload": only, "workloads": ()}
        rate_per_s = _rate_per_s(_simulated(scenario, keys, engine).row)
        return _Reads(rate_per_s, dict(NO_CLIENTS), dict(NO_CLIENTS))
    alone = scenario.workload.replaced(duration_s=_PART_S, requests=None)
    before = _simulated(scenario, {"workload": alone}, engine)
    first = cells(scenario)[0]
    of_clients = {
        **alone.model_dump(exclude_unset=True),
        "name": "clients",
        "patterns": (first.pattern,),
        "block_sizes_bytes": (first.block_size_bytes,),
    }
    if first.op != "mixed":
        of_clients["ops"] = (first.op,)
    clients = LoadSpec.model_validate(of_clients)
    # Loads take missing keys from [workload], and the copy shares none with the clients.
    nothing = WorkloadSpec(duration_s=_PART_S)
    both = _simulated(
        scenario, {"workload": nothing, "workloads": (clients, copy)}, engine
    )
    beside, copied = both.load_rows
    return _Reads(
        objects_per_s=_rate_per_s(copied),
        before=_clients(before.row),
        during=_clients(beside),
    )


def _writes_per_s(target: Scenario, parallel: int, engine: str) -> float:
    """Simulate a client that writes whole new objects, without other clients; return its rate [1/s]."""
    load = WorkloadSpec(
        ops=("write",),
        patterns=("seq",),
        block_sizes_bytes=(target.cluster.object_bytes,),
        queue_depth=parallel,
        image="pristine",
        image_bytes=_IMAGE_OBJECTS * target.cluster.object_bytes,
        duration_s=_PART_S,
    )
    return _rate_per_s(
        _simulated(target, {"workload": load, "workloads": ()}, engine).row
    )


def _simulated(scenario: Scenario, keys: dict[str, Any], engine: str) -> Run:
    """Simulate the first cell of a scenario without its changes, for as long as the audit wants."""
    quiet = scenario.replaced(changes=(), **keys)
    part_s = _PART_S
    while True:
        inputs = build_cell(quiet, cells(quiet)[0])
        result = simulate(**vars(inputs), seed=scenario.seed, engine=engine)
        if result.refused is None or part_s >= _PART_MAX_S:
            return result.accepted()
        part_s *= _LONGER
        longer = {"duration_s": part_s}
        quiet = quiet.replaced(
            workload=quiet.workload.replaced(**longer),
            workloads=tuple(load.replaced(**longer) for load in quiet.workloads),
        )


def _rate_per_s(row: ResultRow) -> float:
    """Return a rate, at least one request in the simulated time, so that a duration follows from it."""
    return max(row.iops or 0.0, 1 / _PART_S)


def _clients(row: ResultRow) -> dict[str, Any]:
    return {
        **NO_CLIENTS,
        "iops": row.iops,
        "latency_p50_ns": row.latency_p50_ns,
        "latency_p99_ns": row.latency_p99_ns,
    }


def target_of_copy(scenario: Scenario) -> Scenario:
    """Return the scenario of the new pool.

    Raises
    ------
    ScenarioError
        If the rule of the old pool is for pools of another kind, and the change names none.
    """
    (change,) = scenario.changes
    assert change.scheme is not None
    kinds = [parse_scheme(name).kind for name in (scenario.schemes[0], change.scheme)]
    rule = scenario.cluster.crush_rule
    if rule is not None and change.crush_rule is None and len(set(kinds)) > 1:
        wanted = f"a rule for {kinds[1]} pools: cluster.crush_rule ({rule}) is for {kinds[0]} ones"
        raise scenario.problem("changes.0.crush_rule", "nothing", wanted)
    keys: dict[str, Any] = {"pool_id": scenario.cluster.pool_id + 1, "upmap_items": ()}
    if change.crush_rule is not None:
        keys["crush_rule"] = change.crush_rule
    return scenario.with_cluster(**keys).replaced(schemes=(change.scheme,), changes=())


def _osds(pool: Pool) -> Any:
    acting = pool.cluster.acting
    return acting[acting != NO_OSD]


def _remote_bytes(
    pool: Pool, shards_count: int, shard_bytes: int
) -> tuple[float, float]:
    """Return the bytes of an object's first shards outside the primary: in total, and on other hosts."""
    acting = pool.cluster.acting
    hosts = pool.cluster.hosts_of_shards(acting)
    homes = hosts[np.arange(len(acting)), pool.primaries][:, None]
    is_remote = (hosts != homes)[:, :shards_count].sum(axis=1).mean()
    return (shards_count - 1) * float(shard_bytes), float(is_remote) * shard_bytes
