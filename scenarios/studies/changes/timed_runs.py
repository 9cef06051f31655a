"""Simulate measured changes of a release with their own commands, and return the time until clean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean
from typing import Final, NamedTuple

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.placement import OsdWeights
from stripesim.models.recovery import SECOND_NS, RecoveryModel
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.measured import Coded
from stripesim.scenarios.studies.changes.runs import changes
from stripesim.scenarios.studies.changes.timed import (
    BEFORE_S,
    LOAD_BLOCK_BYTES,
    LOAD_IMAGE_BYTES,
    LoadBeside,
    TimedChange,
    claim_id,
)
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
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.run import simulate

PARAMETERS: Final = ParameterFile("changes")
#: The change that a change reverses.
_REVERSED: Final = {"return": "drain", "grow": "shrink"}
#: When a change begins that follows the one that it reverses: long after that is complete [s].
_SECOND_CHANGE_S: Final = 120
#: When a change begins under a load that reverses none: after the time whose latencies are those before [s].
_FIRST_CHANGE_S: Final = 12


class SimulatedChange(NamedTuple):
    """Simulated counterpart of one measured change."""

    clean_s: float  #: Time from the first map until all PGs are clean [s]
    #: Mean latency of the clients before and during the change [ms], None without a load
    latencies_ms: tuple[float, float] | None


def time_row(repeats: Sequence[TimedChange], engine: str) -> list[Row]:
    """Simulate all repeats of a change, each with the times of its commands and its load."""
    simulated = [
        simulated_change(change, engine, seed=number)
        for number, change in enumerate(repeats)
    ]
    first = repeats[0]
    timed_id = claim_id(first.key)
    simulated_s = mean(each.clean_s for each in simulated)
    low_s, high_s = duration_interval(simulated_s, without=timed_id)
    row = {
        "scheme": first.scheme,
        "op": "timed change",
        "timed_id": timed_id,
        "time_until_clean_s": simulated_s,
        "time_until_clean_low_s": low_s,
        "time_until_clean_high_s": high_s,
    }
    latencies_ms = [each.latencies_ms for each in simulated if each.latencies_ms]
    if latencies_ms:
        row["before_ms"] = mean(before_ms for before_ms, _ in latencies_ms)
        row["during_ms"] = mean(during_ms for _, during_ms in latencies_ms)
        row["latency_ratio"] = mean(
            during_ms / before_ms for before_ms, during_ms in latencies_ms
        )
    return [row]


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
    return simulated_change(change, engine).clean_s


def simulated_change(
    change: TimedChange, engine: str = "compiled", *, seed: int = 0
) -> SimulatedChange:
    """Simulate a change, and the one that it reverses before it.

    Parameters
    ----------
    change
        The change.
    engine
        Engine of the simulation.
    seed
        Seed of the clients' arrivals and offsets.
    """
    pool = _pool(change)
    plan = _plan(change)
    acting = plan.up_sets(OsdWeights())
    pool = replace(pool, cluster=replace(pool.cluster, acting=acting))
    workload = _workload(change, seed).start()
    result = simulate(pool, workload, faults=plan, engine=engine).accepted()
    assert result.timeline is not None
    row = result.timeline["changes"][-1]
    latencies_ms = None
    if change.load is not None:
        latencies_ms = _latencies_ms(result.first, row["map_s"], row["clean_s"])
    return SimulatedChange(float(row["clean_s"] - row["map_s"]), latencies_ms)


def _latencies_ms(
    requests: ClientRequests, map_s: float, clean_s: float
) -> tuple[float, float]:
    """Return the mean latencies of requests issued before a map, and from it until clean [ms]."""
    issued_s = requests.issued_ns[requests.done] / SECOND_NS
    before = (issued_s >= map_s - BEFORE_S) & (issued_s < map_s)
    during = (issued_s >= map_s) & (issued_s < clean_s)
    latencies_ms = requests.latencies_ns / 1e6
    return float(latencies_ms[before].mean()), float(latencies_ms[during].mean())


def _plan(change: TimedChange) -> FaultPlan:
    """Return the commands of a change, and the state of its pool before."""
    scheme = parse_scheme(change.scheme)
    groups = len(change.group_objects)

    def up_sets(weights: OsdWeights) -> IntArray:
        return cluster.acting_sets(
            scheme, pool_id=change.pool_id, pg_num=groups, weights=weights
        )

    # The image was written once. A trimmed log of unknown length holds too few writes.
    is_log_known = change.log == "whole" or change.log_entries_count is not None
    plan = FaultPlan(
        changes=_commands(change),
        up_sets=up_sets,
        image_objects=sum(change.group_objects),
        group_objects=change.group_objects,
        object_writes_count=1 if is_log_known else None,
        model=recovery_of(change),
    )
    if change.load is None:
        return plan
    return replace(
        plan,
        # The names of the objects tell their groups.
        image_objects=LOAD_IMAGE_BYTES // cluster.OBJECT_BYTES,
        group_objects=None,
        object_writes_count=_writes_before_run(change, change.load),
        end_pause_ns=SECOND_NS,
    )


def _workload(change: TimedChange, seed: int) -> Synthetic:
    """Return the clients of a change."""
    if change.load is not None:
        return Synthetic(
            pattern="rand",
            block_bytes=LOAD_BLOCK_BYTES,
            image_bytes=LOAD_IMAGE_BYTES,
            read_fraction=0.0,
            requests=None,
            queue_depth=0,
            rate_per_s=change.load.rate_per_s,
            seed=seed,
        )
    # A run needs a client. It reads once.
    return Synthetic(
        pattern="rand",
        block_bytes=change.stripe_unit_bytes,
        image_bytes=sum(change.group_objects) * cluster.OBJECT_BYTES,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )


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
    pool = pool_of(_pooled(change), coded, models=models_for(change))
    if change.load is None:
        return pool
    return replace(pool, image_prefixes=(change.load.image_prefix,))


def _commands(change: TimedChange) -> tuple[PlannedChange, ...]:
    """Return the change that a change reverses, and the change with the times of its own commands."""
    known = changes()
    before = _REVERSED.get(change.kind)
    first = (known[before],) if before else ()
    own = replace(
        known[change.kind],
        time_ns=_start_s(change) * SECOND_NS,
        delays_ns=tuple(round(at_s * SECOND_NS) for at_s in change.maps_s),
        norebalance_ns=round((change.rebalance_s or 0.0) * SECOND_NS),
    )
    return (*first, own)


def _start_s(change: TimedChange) -> int:
    """Return when the operator begins, in a run that begins with the load [s]."""
    if change.kind in _REVERSED:
        return _SECOND_CHANGE_S
    return 0 if change.load is None else _FIRST_CHANGE_S


def _writes_before_run(change: TimedChange, load: LoadBeside) -> int:
    """Return the writes that each object has had when the run begins, which are fewer than at the change."""
    objects = LOAD_IMAGE_BYTES // cluster.OBJECT_BYTES
    in_run = load.rate_per_s * _start_s(change) / objects
    return max(1, round(load.object_writes_count - in_run))
