"""Kinds of pools. Each kind plans its own writes, reads and repairs. Start with `kind`."""

from stripesim.sim.ceph.kinds.bare import Bare
from stripesim.sim.ceph.kinds.classic import Classic
from stripesim.sim.ceph.kinds.kind import PoolKind
from stripesim.sim.ceph.kinds.optimised import Optimised
from stripesim.sim.ceph.kinds.pipelined import Pipelined
from stripesim.sim.ceph.kinds.replicated import Replicated
from stripesim.sim.ceph.kinds.requests import (
    ObjectRequests,
    RequestPlan,
    RequestShape,
)
from stripesim.sim.ceph.pool import Pool

__all__ = ["ObjectRequests", "PoolKind", "RequestPlan", "RequestShape", "kind_of"]


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
