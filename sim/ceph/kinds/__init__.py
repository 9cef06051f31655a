"""Kinds of pools, each of which plans its own writes, reads and repairs; start with `kind`."""

from stripesim.sim.ceph.kinds.bare import Bare
from stripesim.sim.ceph.kinds.classic import Classic
from stripesim.sim.ceph.kinds.kind import PoolKind, StoreMemory
from stripesim.sim.ceph.kinds.optimised import Optimised
from stripesim.sim.ceph.kinds.pipelined import Pipelined
from stripesim.sim.ceph.kinds.replicated import Replicated
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.pool import Pool

__all__ = [
    "Bare",
    "Classic",
    "ObjectRequests",
    "Optimised",
    "Pipelined",
    "PoolKind",
    "Replicated",
    "RequestPlan",
    "RequestShape",
    "StoreMemory",
    "kind_of",
]


def kind_of(pool: Pool) -> PoolKind:
    """Return the kind of a pool, by its scheme and the release it runs on."""
    models = pool.cluster.models
    if pool.scheme.name == "none":
        return Bare(pool)
    if pool.scheme.kind == "replicated":
        return Replicated(pool)
    if models.ec.optimised:
        return Optimised(pool)
    if models.pg_lock.scope == "dispatch":
        return Pipelined(pool)
    return Classic(pool)
