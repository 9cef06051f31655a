"""Simulate the measured changes in turn, on the cluster of the study `ceph16`."""

from dataclasses import replace

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.placement import OsdWeights
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.changes.measured import MeasuredPool
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import FaultPlan, PlannedChange
from stripesim.sim.ceph.failures.cluster_map import ChangeKind, MapChange
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.run import simulate

STRIPE_UNIT_BYTES = 4096
# 1 GiB, and one object of the benchmark's.
_OBJECTS = 257
#: The pools whose changes ship as claims.
POOLS = (
    MeasuredPool(scheme="rep:3", pool_id=3, pg_num=32, objects=_OBJECTS),
    MeasuredPool(scheme="rs:6,3", pool_id=4, pg_num=32, objects=_OBJECTS),
)
DRAINED_OSD = 5
WEIGHTED_OSDS = (14, 15)
METRICS = {
    "device_read": "device_read_bytes",
    "device_write": "device_write_bytes",
    "private_net": "private_net_bytes",
}


def changes() -> dict[str, PlannedChange]:
    """Return the changes in the order in which they were measured, by the names of ``claims.csv``."""

    def change(
        kind: ChangeKind, osds: tuple[int, ...], weight: int = 0
    ) -> PlannedChange:
        return PlannedChange(
            kind=kind, changes=tuple(MapChange(kind, osd, weight) for osd in osds)
        )

    return {
        "drain": change("out", (DRAINED_OSD,)),
        "return": change("in", (DRAINED_OSD,)),
        "shrink": change("weight", WEIGHTED_OSDS),
        "grow": change("weight", WEIGHTED_OSDS, WEIGHT_ONE),
    }


def change_rows(measured: MeasuredPool, engine: str) -> list[Row]:
    """Apply all changes to an idle pool, and return a row for each."""
    scheme = parse_scheme(measured.scheme)

    def up_sets(weights: OsdWeights) -> IntArray:
        return cluster.acting_sets(
            scheme, pool_id=measured.pool_id, pg_num=measured.pg_num, weights=weights
        )

    planned = changes()
    plan = FaultPlan(
        changes=tuple(planned.values()),
        up_sets=up_sets,
        # The image had just been written; its groups were seen in recovery_wait, never in backfill_wait.
        object_writes_count=1,
        image_objects=measured.objects,
        model=recovery_model("pacific"),
    )
    # A run needs a client. It reads once.
    once = Synthetic(
        pattern="rand",
        block_bytes=STRIPE_UNIT_BYTES,
        image_bytes=measured.objects * cluster.OBJECT_BYTES,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    pool = cluster.build_pool(scheme.name, STRIPE_UNIT_BYTES)
    acting = up_sets(OsdWeights())
    pool = replace(pool, cluster=replace(pool.cluster, acting=acting))
    result = simulate(pool, once.start(), faults=plan, engine=engine).accepted()
    assert result.timeline is not None
    described = result.timeline["changes"]
    return [
        {"scheme": scheme.name, "op": "change", "change": change, **_ratios(row)}
        for change, row in zip(planned, described, strict=True)
    ]


def _ratios(row: Row) -> Row:
    """Add bytes per byte moved to the row of a change."""
    ratios = {
        f"{metric}_per_moved": row[column] / row["bytes_moved"]
        for metric, column in METRICS.items()
    }
    # The lists of backfills are those of a rehearsal.
    numbers = {name: value for name, value in row.items() if name != "backfills"}
    return {**numbers, **ratios}
