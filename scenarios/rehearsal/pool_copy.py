"""Copy a pool into a new pool with another scheme: placement, bytes and fill, but not duration."""

from typing import Any, Final

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.planning.capacity import drives_of
from stripesim.scenarios.rehearsal.samples import fill_plan, stored_objects
from stripesim.scenarios.schema.keys import Scenario
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool

COPY_WARNING: Final = (
    "change 0 (scheme): the copy itself is not simulated: its duration and clients are not known, and writes "
    "have no metadata"
)
# Fields that have no value for a copy.
_CLIENTS = ("duration_s", "iops", "latency_p50_ns", "latency_p99_ns")


def rehearse_copy(scenario: Scenario) -> dict[str, Any]:
    """Describe a copy for a scenario whose only change is another scheme.

    A client reads each object from the old pool and writes it to the new one, which has the next pool number.
    The cluster holds both pools in full until the old one is deleted.
    """
    (change,) = scenario.changes
    assert change.scheme is not None, "checked by change_rules"
    models = build_models(scenario)
    old = build_pool(scenario, parse_scheme(scenario.schemes[0]), models)
    new = build_pool(_target(scenario), parse_scheme(change.scheme), models)
    objects = stored_objects(scenario)
    per_group = objects / scenario.cluster.pg_num
    new_shard_bytes = kind_of(new).shard_bytes
    shards = np.bincount(_osds(new), minlength=new.cluster.osds)
    shards_count = int(shards.sum())
    # The primary reads its local shard and gathers the other k − 1. A replica needs only the local read.
    read_bytes = old.scheme.k * kind_of(old).shard_bytes
    gathered = _remote_bytes(old, old.scheme.k, kind_of(old).shard_bytes)
    spread = _remote_bytes(new, new.scheme.width, new_shard_bytes)
    moved_bytes = round(shards_count * per_group * new_shard_bytes)
    row = {
        "kind": change.kind,
        "pgs_moved": new.cluster.groups,
        "shards_moved": shards_count,
        "bytes_moved": moved_bytes,
        "device_read_bytes": round(objects * read_bytes),
        "device_write_bytes": moved_bytes,
        "private_net_bytes": round(objects * (gathered[0] + spread[0])),
        "between_hosts_bytes": round(objects * (gathered[1] + spread[1])),
        "duration_s": None,
        "peak_used_ratio": None,
        "full_ratio_reached": None,
        "fullest_osd": None,
        "profiles": [{"profile": scenario.cluster.op_queue, **dict.fromkeys(_CLIENTS)}],
    }
    fill = fill_plan(scenario, old, drives_of(scenario, models), 1)
    if fill is not None:
        used_bytes = fill.used_bytes + shards * per_group * new_shard_bytes
        row |= fill.described(used_bytes / fill.capacity_bytes)
    return row


def _target(scenario: Scenario) -> Scenario:
    """Return the scenario of the new pool."""
    (change,) = scenario.changes
    keys: dict[str, Any] = {"pool_id": scenario.cluster.pool_id + 1, "upmap_items": ()}
    if change.crush_rule is not None:
        keys["crush_rule"] = change.crush_rule
    cluster = scenario.cluster.model_copy(update=keys)
    update = {"schemes": (change.scheme,), "cluster": cluster, "changes": ()}
    return scenario.model_copy(update=update)


def _osds(pool: Pool) -> Any:
    acting = pool.cluster.acting
    return acting[acting != NO_OSD]


def _remote_bytes(
    pool: Pool, shards_count: int, shard_bytes: int
) -> tuple[float, float]:
    """Return the bytes of an object's first shards outside the primary: in total, and on other hosts."""
    acting = pool.cluster.acting
    hosts = np.where(
        acting == NO_OSD,
        -1,
        pool.cluster.osd_hosts[np.where(acting == NO_OSD, 0, acting)],
    )
    homes = hosts[np.arange(len(acting)), pool.primaries][:, None]
    is_remote = (hosts != homes)[:, :shards_count].sum(axis=1).mean()
    return (shards_count - 1) * float(shard_bytes), float(is_remote) * shard_bytes
