"""Extrapolate the objects of buckets that a host misses while it is down."""

import math
from typing import NamedTuple

from stripesim.scenarios.answers.rehearse.restarts.moments import Growth, ShortRestart
from stripesim.scenarios.cells.build import CellInputs
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import SyntheticLoops, SyntheticStream
from stripesim.sim.ceph.gateway.paths import WRITING_OPS


def growth_of(inputs: CellInputs, restart: ShortRestart, downtime_s: float) -> Growth:
    r"""Return what recovers after the whole downtime of an object store, per simulated shard.

    Notes
    -----
    The number of heads and tails grows with the requests that store them, and each that is recovered may
    represent several (`FaultPlan.recovered_one_in`). Of :math:`n` shards of the index, :math:`w` updates at
    random reach :math:`n (1 - e^{-w / n})`.
    """
    gateways = inputs.pool.cluster.gateways
    assert gateways is not None
    assert isinstance(inputs.workload, SyntheticLoops | SyntheticStream)
    load = inputs.workload.workload
    assert isinstance(load, S3Load)
    updates = _index_updates(load, restart, downtime_s)
    if not updates.of_run:
        return restart.growth
    # Places of objects have a shard each, so a run may reach fewer shards than there are.
    shards = len(gateways.index_groups)
    of_run = _reached(min(shards, load.slots), updates.of_run)
    of_whole = _reached(shards, updates.of_whole)
    assert inputs.faults is not None
    stored = inputs.faults.recovered_one_in * updates.of_whole / updates.of_run
    return Growth(objects=stored, index=of_whole / of_run)


class _Updates(NamedTuple):
    """Requests that update the index while a host is down [count]."""

    of_run: float  # In the simulated downtime, and until placement groups have peered.
    of_whole: float


def _index_updates(load: S3Load, restart: ShortRestart, downtime_s: float) -> _Updates:
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
