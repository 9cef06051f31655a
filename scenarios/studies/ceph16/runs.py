"""One measured row simulated: the same offsets on the same cluster, and the same ratios of bytes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim.scenarios.studies.ceph16.claims import degraded_id, repair_id
from stripesim.scenarios.studies.ceph16.cluster import (
    META_PG_NUM,
    OBJECT_BYTES,
    build_pool,
)
from stripesim.scenarios.studies.ceph16.measured import (
    Measured,
    MeasuredDegraded,
    MeasuredRun,
)
from stripesim.scenarios.studies.ceph16.phases import phases_of, simulate_repair, timed
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.clients.workload import Replay, Requests, Synthetic
from stripesim.sim.ceph.cluster import Models
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
# What an update of the object map writes: two bits of an object, in a byte of the map.
OBJECT_MAP_BYTES = 1


def predict_run(
    run: MeasuredRun, *, engine: str = "compiled", models: Models | None = None
) -> dict[str, Any]:
    """Simulate a measured run: its offsets in their order, its queue depth, its state of the image.

    An image with an object map tells it of each object before the object's first write: a replicated
    write into the map's one object, in a pool of its own. That pool is simulated apart and its bytes
    are added: it shares no placement group with the data.
    """
    pool = build_pool(run.coded.name, run.coded.stripe_unit_bytes, models=models)
    workload = Replay(run.requests, queue_depth=run.queue_depth)
    result = simulate(pool, workload, prefilled=run.op != "write", engine=engine)
    row = result.row.as_dict()
    if run.features == "default" and run.op == "write":
        touched = np.unique(run.requests.offsets_bytes // OBJECT_BYTES)
        updates = Requests(
            is_write=np.ones(len(touched), dtype=bool),
            images=np.zeros(len(touched), dtype=np.int64),
            offsets_bytes=(touched // 4).astype(np.int64),
            lengths_bytes=np.full(len(touched), OBJECT_MAP_BYTES, dtype=np.int64),
        )
        pool = build_pool("rep:3", run.coded.stripe_unit_bytes, meta=True)
        depth = min(run.queue_depth, META_PG_NUM)
        updates_result = simulate(
            pool, Replay(updates, queue_depth=depth), prefilled=True, engine=engine
        )
        updates_row = updates_result.row.as_dict()
        share = (
            len(touched) * OBJECT_MAP_BYTES / float(run.requests.lengths_bytes.sum())
        )
        for column in COLUMNS.values():
            row[column] += updates_row[column] * share
        for column in CPU_COLUMNS.values():
            row[column] += (
                updates_row[column] * len(touched) / len(run.requests.offsets_bytes)
            )
    return row


def predict_degraded(
    degraded: MeasuredDegraded, *, engine: str = "compiled"
) -> dict[str, Any]:
    """Simulate reads while one OSD is down; the offsets were not recorded, so they are drawn."""
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
    return simulate(pool, workload.start(), engine=engine).row.as_dict()


PHASES = "phases"


@dataclass(frozen=True)
class MeasuredTask:
    """One measured row of a folder, to be simulated."""

    kind: str  # ``run``, ``repair``, ``degraded`` or `PHASES` (the moments of a repair, no count).
    measured: Any
    engine: str
    weight: float = 0.0

    @property
    def words(self) -> str:
        """The run's name."""
        name_of = {"run": lambda run: run.run_id, "degraded": degraded_id}.get(
            self.kind, repair_id
        )
        name = name_of(self.measured)
        return f"{name}, phases" if self.kind == PHASES else str(name)

    def perform(self) -> list[Row]:
        """Simulate it."""
        if self.kind == PHASES:
            rows = phases_of(
                self.measured, simulate_repair(self.measured, engine=self.engine)
            )
            return [{"task": PHASES, **row} for row in rows]
        head = {"run_id": self.words, "scheme": self.measured.coded.name}
        if self.kind == "repair":
            return [
                {
                    **head,
                    "op": "repair",
                    **simulate_repair(
                        self.measured, engine=self.engine, returns=False
                    ).row.as_dict(),
                }
            ]
        cell = {
            "op": self.measured.op if self.kind == "run" else "degraded read",
            "pattern": self.measured.pattern,
            "block_size_bytes": self.measured.block_bytes,
            "queue_depth": self.measured.queue_depth,
        }
        predict = predict_run if self.kind == "run" else predict_degraded
        return [{**head, **cell, **predict(self.measured, engine=self.engine)}]


def tasks_for(measured: Measured, engine: str) -> list[MeasuredTask]:
    """List the simulations of a folder of measurements."""
    return [
        *(MeasuredTask("run", run, engine) for run in measured.runs),
        *(MeasuredTask("repair", repair, engine) for repair in measured.repairs),
        *(MeasuredTask("degraded", degraded, engine) for degraded in measured.degraded),
        *(
            MeasuredTask(PHASES, repair, engine)
            for repair in measured.repairs
            if timed(repair)
        ),
    ]


def metrics_of_row(row: dict[str, Any]) -> dict[str, float]:
    """Return the claims' metrics of a row of a task."""
    columns = REPAIR_COLUMNS if row["op"] == "repair" else COLUMNS | CPU_COLUMNS
    found = {metric: float(row[column]) for metric, column in columns.items()}
    if "cpu_us_per_op" in found:
        found["cpu_us_per_op"] /= 1e3
    return found
