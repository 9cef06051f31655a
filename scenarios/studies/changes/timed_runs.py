"""Simulate measured changes of a release with their own commands, and return the time until clean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Final

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.placement import OsdWeights
from stripesim.models.recovery import SECOND_NS, RecoveryModel
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.measured import Coded
from stripesim.scenarios.studies.changes.runs import changes
from stripesim.scenarios.studies.changes.timed import TimedChange, claim_id
from stripesim.scenarios.studies.parameters import ParameterFile
from stripesim.scenarios.studies.releases.machine import (
    models_of,
    pool_of,
)
from stripesim.scenarios.studies.releases.measured import Pooled
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.failures import FaultPlan, PlannedChange
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.ceph.qos import mclock, wpq
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.run import simulate

PARAMETERS: Final = ParameterFile("changes")
#: The change that a change reverses.
_REVERSED: Final = {"return": "drain", "grow": "shrink"}
#: When a change begins that follows the one that it reverses: long after that is complete [s].
_SECOND_CHANGE_S: Final = 120


def time_row(repeats: Sequence[TimedChange], engine: str) -> list[Row]:
    """Simulate all repeats of a change, each with the times of its commands."""
    times_s = [clean_s(change, engine) for change in repeats]
    first = repeats[0]
    timed_id = claim_id(first.key)
    simulated_s = mean(times_s)
    low_s, high_s = duration_interval(simulated_s, without=timed_id)
    return [
        {
            "scheme": first.scheme,
            "op": "timed change",
            "timed_id": timed_id,
            "time_until_clean_s": simulated_s,
            "time_until_clean_low_s": low_s,
            "time_until_clean_high_s": high_s,
        }
    ]


def models_for(change: TimedChange) -> Models:
    """Build the models of the machine, with the op queue of a change's profile."""
    pooled = _pooled(change)
    models = models_of(pooled, parse_scheme(change.scheme))
    if change.profile == "wpq":
        return replace(models, op_queue=wpq())
    queue = mclock(
        pooled.generation, change.profile, queues=models.threads.op_shards_count
    )
    return replace(models, op_queue=queue)


def recovery_of(change: TimedChange) -> RecoveryModel:
    """Return the limits of the release, with the sync of the log that was counted before the change."""
    pooled = _pooled(change)
    numbers = {
        name.removeprefix("recovery."): row["value"]
        for name, row in PARAMETERS.table(f"v{pooled.major}").items()
    }
    if change.recovery_sync_ms is not None:
        numbers["recovery_sync_ns"] = round(change.recovery_sync_ms * 1e6)
    if change.log_entries_count is not None:
        numbers["log_entries_min_count"] = change.log_entries_count
        numbers["log_entries_max_count"] = change.log_entries_count
    return recovery_model(pooled.generation).given(**numbers)


def clean_s(change: TimedChange, engine: str = "compiled") -> float:
    """Return the time from the map of a change's first command until all PGs are clean [s]."""
    scheme = parse_scheme(change.scheme)
    groups = len(change.group_objects)

    def up_sets(weights: OsdWeights) -> IntArray:
        return cluster.acting_sets(
            scheme, pool_id=change.pool_id, pg_num=groups, weights=weights
        )

    objects = sum(change.group_objects)
    # The image was written once. A trimmed log of unknown length holds too few writes.
    is_log_known = change.log == "whole" or change.log_entries_count is not None
    plan = FaultPlan(
        changes=_commands(change),
        up_sets=up_sets,
        image_objects=objects,
        group_objects=change.group_objects,
        object_writes_count=1 if is_log_known else None,
        model=recovery_of(change),
    )
    # A run needs a client. It reads once.
    once = Synthetic(
        pattern="rand",
        block_bytes=change.stripe_unit_bytes,
        image_bytes=objects * cluster.OBJECT_BYTES,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    pool = _pool(change)
    pool = replace(pool, cluster=replace(pool.cluster, acting=up_sets(OsdWeights())))
    result = simulate(pool, once.start(), faults=plan, engine=engine).accepted()
    assert result.timeline is not None
    row = result.timeline["changes"][-1]
    return float(row["clean_s"] - row["map_s"])


def _pooled(change: TimedChange) -> Pooled:
    return Pooled(change.release, change.is_optimised, change.pool_id)


def _pool(change: TimedChange) -> Pool:
    scheme = parse_scheme(change.scheme)
    k = getattr(scheme, "k", 1)
    coded = Coded(
        scheme=change.scheme,
        k=k,
        m=scheme.width - k,
        stripe_unit_bytes=change.stripe_unit_bytes,
    )
    return pool_of(_pooled(change), coded, models=models_for(change))


def _commands(change: TimedChange) -> tuple[PlannedChange, ...]:
    """Return the change that a change reverses, and the change with the times of its own commands."""
    known = changes()
    before = _REVERSED.get(change.kind)
    first = (known[before],) if before else ()
    start_s = _SECOND_CHANGE_S if before else 0
    own = replace(
        known[change.kind],
        time_ns=start_s * SECOND_NS,
        delays_ns=tuple(round(at_s * SECOND_NS) for at_s in change.maps_s),
        norebalance_ns=round((change.rebalance_s or 0.0) * SECOND_NS),
    )
    return (*first, own)
