"""Build the gateways of a cluster, and the load of one cell on its buckets."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.generations import generation
from stripesim.models.placement import pgs_of_objects
from stripesim.scenarios.cells.placement import grown_map_of
from stripesim.scenarios.schema.keys import (
    ALLOCATION_BYTES,
    Cell,
    WorkloadSpec,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.gateway.service import Gateways
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.engine.graph import IntArray

#: Prefix of the names of index objects.
_INDEX_PREFIX: Final = ".dir"
#: Places of objects that a run distinguishes, and the memory of their bindings [B].
_SLOTS_MIN: Final = 256
_SLOTS_MAX: Final = 16_384
#: Rounds of the placement groups in a run with a director.
_FEW_ROUNDS: Final = 4
_BINDINGS_BYTES: Final = 128 << 20
_ROLE_BYTES: Final = 4


def scheme_of_copies(sets: IntArray) -> RedundancyScheme:
    """Return the scheme of a replicated pool with these acting sets, shape (sets, replicas)."""
    return parse_scheme(f"rep:{sets.shape[1]}")


def with_gateways(
    scenario: Scenario, pool: Pool, index_sets: IntArray, models: Models
) -> Pool:
    """Return the pool with the gateways of a scenario in front of it.

    `index_sets` are acting sets of the pool that holds the bucket indexes, shape (sets, replicas).
    """
    assert models.gateway is not None
    load = scenario.workload
    spec = scenario.cluster.gateways
    # Hosts that changes add get no gateways.
    hosts = pool.cluster.hosts - len(grown_map_of(scenario).new_hosts)
    count = spec.count or hosts
    machines = np.arange(count, dtype=np.int64)
    on_osd_hosts = spec.place == "osd-hosts"
    shards = np.arange(load.buckets * load.index_shards, dtype=np.int64)
    groups = np.asarray(pgs_of_objects(_INDEX_PREFIX, shards, len(index_sets)))
    largest_bytes = max(load.object_sizes_bytes)
    gateways = Gateways(
        hosts=machines % hosts if on_osd_hosts else machines,
        on_osd_hosts=on_osd_hosts,
        cores_count=spec.cores or models.cpu.cores_per_host,
        threads_count=spec.threads,
        index_scheme=scheme_of_copies(index_sets),
        index_sets=index_sets,
        index_groups=groups.astype(np.int64),
        index_shards=load.index_shards,
        index_shard_bytes=models.gateway.index_entry_bytes
        * -(-load.objects // len(shards)),
        fails_over=on_osd_hosts and scenario.changes_during_run,
        exclusive=generation(scenario.generation).exclusive_class_writes,
        lists="list" in load.used_ops,
        tails=_tails(scenario, pool, models),
        width=pool.scheme.width,
        unit_bytes=min(models.gateway.chunk_bytes, largest_bytes),
    )
    return replace(pool, cluster=replace(pool.cluster, gateways=gateways))


def _tails(scenario: Scenario, pool: Pool, models: Models) -> int:
    """Return the number of tail objects of the largest object."""
    assert models.gateway is not None
    load = scenario.workload
    append_bytes = kind_of(pool).append_bytes
    counts = []
    for size_bytes in load.object_sizes_bytes:
        threshold = load.multipart_threshold_bytes
        if threshold is None or size_bytes < threshold or "delete" in load.used_ops:
            counts.append(
                len(models.gateway.layout(size_bytes, append_bytes).tail_bytes)
            )
        if threshold is not None and size_bytes >= threshold:
            part_bytes = min(size_bytes, load.part_size_bytes)
            layout = models.gateway.layout(part_bytes, append_bytes)
            # The head of such an object has no data, so all chunks of a range are tails.
            counts.append(len(layout.parts_bytes))
    return max(counts)


def recovered_objects(scenario: Scenario, cell: Cell, pool: Pool) -> tuple[int, int]:
    """Return the number of RADOS objects of a cell's objects, and their mean size in allocation units [B].

    Heads of objects that were uploaded in parts have no data, and are left out.
    """
    load = scenario.of_cell(cell).workload
    model = pool.cluster.models.gateway
    assert model is not None
    append_bytes = kind_of(pool).append_bytes
    sizes_bytes = load.object_sizes_bytes
    shares = load.size_shares or (1.0,) * len(sizes_bytes)
    parts = [
        sum(
            count * len(model.layout(part_bytes, append_bytes).parts_bytes)
            for part_bytes, count in load.uploaded_parts(size_bytes).items()
        )
        for size_bytes in sizes_bytes
    ]
    weighed = sum(count * share for count, share in zip(parts, shares, strict=True))
    mean_parts = weighed / sum(shares)
    units = math.ceil(load.mean_object_bytes / mean_parts / ALLOCATION_BYTES)
    return round(load.objects * mean_parts), max(1, units) * ALLOCATION_BYTES


def s3_load(scenario: Scenario, load: WorkloadSpec, cell: Cell, pool: Pool) -> S3Load:
    """Return the load of one cell on the buckets of a pool."""
    ops: tuple[str, ...] = (cell.op,)
    op_shares: tuple[float, ...] = (1.0,)
    if load.op_shares is not None:
        ops = load.used_ops
        op_shares = load.op_shares
    sizes_bytes = load.object_sizes_bytes
    size_shares = load.size_shares
    if size_shares is None:
        assert cell.block_size_bytes is not None
        sizes_bytes = (cell.block_size_bytes,)
        size_shares = (1.0,)
    mean_bytes = round(load.mean_object_bytes)
    model = pool.cluster.models.gateway
    assert model is not None
    in_bucket = max(1, load.objects // load.buckets)
    return S3Load(
        pattern="rand",
        block_bytes=mean_bytes,
        image_bytes=max(mean_bytes, load.objects * mean_bytes),
        read_fraction=0.0,
        requests=load.requests,
        queue_depth=0 if load.is_open else load.queue_depth,
        rate_per_s=load.rate_per_s,
        seed=scenario.seed,
        clients=load.clients,
        ops=ops,
        op_shares=op_shares,
        sizes_bytes=sizes_bytes,
        size_shares=size_shares,
        list_keys=min(model.list_keys_max_count, in_bucket),
        slots=_slots(pool, few=scenario.changes_during_run),
        tls=load.tls,
        multipart_threshold_bytes=load.multipart_threshold_bytes,
        part_bytes=load.part_size_bytes,
    )


def _slots(pool: Pool, *, few: bool) -> int:
    """Return the places of objects to distinguish: whole rounds of the placement groups, if they fit.

    A director tells requests apart by place, so that it gets a `few` rounds of them.
    """
    fitting = _BINDINGS_BYTES // (_ROLE_BYTES * pool.cluster.roles)
    slots = min(_SLOTS_MAX, max(_SLOTS_MIN, fitting))
    if few:
        slots = min(slots, max(_SLOTS_MIN, _FEW_ROUNDS * pool.cluster.groups))
    groups = pool.cluster.groups
    return slots // groups * groups or slots
