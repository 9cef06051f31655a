"""Simulate measured rows: the same offsets on the same cluster, and the same ratios of bytes."""

from dataclasses import replace
from typing import Any

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.ceph16.claims import (
    degraded_id,
    passes_id,
    repair_id,
)
from stripesim.scenarios.studies.ceph16.cluster import (
    META_PG_NUM,
    META_POOL_ID,
    OBJECT_BYTES,
    RELEASE,
    acting_sets,
    build_pool,
)
from stripesim.scenarios.studies.ceph16.measured import (
    PASS_METRIC,
    MeasuredCounts,
    MeasuredDegraded,
    MeasuredPasses,
    MeasuredRepair,
    MeasuredRun,
)
from stripesim.scenarios.studies.ceph16.phases import phases_of, simulate_repair, timed
from stripesim.scenarios.studies.tasks import Call, Row
from stripesim.sim.ceph.clients.workload import Replay, Synthetic
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.object_maps import ObjectMaps, groups_of_maps
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.run import simulate

# Metric of a claim → column of a result row, and column of a repair's.
COLUMNS = {
    "device_read": "device_read_bytes_per_client_byte",
    "device_data_write": "device_data_write_bytes_per_client_byte",
    "device_write": "device_write_bytes_per_client_byte",
    "private_net": "private_net_bytes_per_client_byte",
}
CPU_COLUMNS = {
    "cpu_us_per_op": "cpu_ns_per_op",
    "context_switches_per_op": "context_switches_per_op",
}
REPAIR_COLUMNS = {
    "device_read": "recovery_device_read_bytes_per_lost_byte",
    "device_write": "recovery_device_write_bytes_per_lost_byte",
    "private_net": "recovery_private_net_bytes_per_lost_byte",
}


def predict_run(
    run: MeasuredRun, *, engine: str = "compiled", models: Models | None = None
) -> dict[str, Any]:
    """Simulate a measured run with its offsets in their order, its queue depth and its state of the image.

    An image with an object map updates the map before each object's first write: a replicated write into the
    map's one object, in another pool.
    """
    pool = build_pool(run.coded.name, run.coded.stripe_unit_bytes, models=models)
    pool = _with_object_map(pool, run)
    workload = Replay(run.requests, queue_depth=run.queue_depth)
    result = simulate(pool, workload, prefilled=run.op != "write", engine=engine)
    return result.accepted_counts().row.as_dict()


def _with_object_map(pool: Pool, run: MeasuredRun | MeasuredPasses) -> Pool:
    """Return the pool with the object map of the run's image, if it has one."""
    if run.features != "default":
        return pool
    scheme = parse_scheme("rep:3")
    acting = acting_sets(scheme, pool_id=META_POOL_ID, pg_num=META_PG_NUM)
    maps = ObjectMaps(
        acting=acting[groups_of_maps(1, META_PG_NUM)],
        scheme=scheme,
        image_objects=-(-run.image_bytes // OBJECT_BYTES),
        exclusive=RELEASE.exclusive_class_writes,
    )
    return replace(pool, cluster=replace(pool.cluster, object_maps=maps))


def predict_passes(passes: MeasuredPasses, *, engine: str = "compiled") -> float:
    """Simulate two passes of the same writes and return the rate of the first over that of the second."""
    pool = build_pool(passes.coded.name, passes.coded.stripe_unit_bytes)
    pool = _with_object_map(pool, passes)
    lasted_ns = []
    for prefilled in (False, True):
        workload = Replay(passes.requests, queue_depth=passes.queue_depth)
        result = simulate(pool, workload, prefilled=prefilled, engine=engine)
        # Whole passes are compared, from the first issue to the last reply, so no steady rate is needed.
        lasted_ns.append(int(result.requested.completed_ns.max()))
    first_ns, second_ns = lasted_ns
    return second_ns / first_ns


def predict_degraded(
    degraded: MeasuredDegraded, *, engine: str = "compiled"
) -> dict[str, Any]:
    """Simulate reads while one OSD is down, at random offsets, because the real ones were not recorded."""
    coded = degraded.coded
    pool = build_pool(coded.name, coded.stripe_unit_bytes, down=degraded.dead_osd)
    workload = Synthetic(
        pattern=degraded.pattern,
        block_bytes=degraded.block_bytes,
        image_bytes=degraded.image_bytes,
        read_fraction=1.0,
        requests=degraded.ops,
        queue_depth=degraded.queue_depth,
    )
    return (
        simulate(pool, workload.start(), engine=engine).accepted_counts().row.as_dict()
    )


#: ``task`` of the rows that hold the phases of a repair instead of counts.
PHASES = "phases"


def run_rows(run: MeasuredRun, engine: str) -> list[Row]:
    """Simulate a measured run."""
    return [_cell(run, run.run_id, run.op) | predict_run(run, engine=engine)]


def degraded_rows(degraded: MeasuredDegraded, engine: str) -> list[Row]:
    """Simulate measured reads while one OSD is down."""
    cell = _cell(degraded, degraded_id(degraded), "degraded read")
    return [cell | predict_degraded(degraded, engine=engine)]


def passes_rows(passes: MeasuredPasses, engine: str) -> list[Row]:
    """Simulate two passes of the same writes."""
    return [
        {
            "run_id": passes_id(passes),
            "scheme": passes.coded.name,
            "op": "passes",
            "pattern": "rand",
            "block_size_bytes": passes.block_bytes,
            "queue_depth": passes.queue_depth,
            PASS_METRIC: predict_passes(passes, engine=engine),
        }
    ]


def repair_rows(repair: MeasuredRepair, engine: str) -> list[Row]:
    """Simulate a measured repair."""
    head = {"run_id": repair_id(repair), "scheme": repair.coded.name, "op": "repair"}
    return [head | simulate_repair(repair, engine=engine, returns=False).row.as_dict()]


def phase_rows(repair: MeasuredRepair, engine: str) -> list[Row]:
    """Simulate the phases of a measured repair, whose moments are known."""
    phases = phases_of(repair, simulate_repair(repair, engine=engine))
    return [{"task": PHASES, **row} for row in phases]


def _cell(measured: MeasuredRun | MeasuredDegraded, run_id: str, op: str) -> Row:
    return {
        "run_id": run_id,
        "scheme": measured.coded.name,
        "op": op,
        "pattern": measured.pattern,
        "block_size_bytes": measured.block_bytes,
        "queue_depth": measured.queue_depth,
    }


def tasks_for(measured: MeasuredCounts, engine: str) -> list[Call]:
    """List the simulations of a folder of measurements."""
    tasks = [Call(run.run_id, run_rows, (run, engine)) for run in measured.runs]
    for repair in measured.repairs:
        tasks.append(Call(repair_id(repair), repair_rows, (repair, engine)))
    for degraded in measured.degraded:
        tasks.append(Call(degraded_id(degraded), degraded_rows, (degraded, engine)))
    for passes in measured.passes:
        tasks.append(Call(passes_id(passes), passes_rows, (passes, engine)))
    for repair in filter(timed, measured.repairs):
        words = f"{repair_id(repair)}, phases"
        tasks.append(Call(words, phase_rows, (repair, engine)))
    return tasks


def metrics_of_row(row: dict[str, Any]) -> dict[str, float]:
    """Return the claims' metrics from a result row."""
    if row.get(PASS_METRIC) is not None:
        return {PASS_METRIC: float(row[PASS_METRIC])}
    columns = REPAIR_COLUMNS if row["op"] == "repair" else COLUMNS | CPU_COLUMNS
    metrics = {metric: float(row[column]) for metric, column in columns.items()}
    if "cpu_us_per_op" in metrics:
        metrics["cpu_us_per_op"] /= 1e3
    return metrics
