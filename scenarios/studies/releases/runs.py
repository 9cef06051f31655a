"""Simulate measured rows: the same places on the same cluster, under the release's rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from stripesim.scenarios.studies.ceph16 import cluster
from stripesim.scenarios.studies.ceph16.claims import degraded_id
from stripesim.scenarios.studies.ceph16.runs import COLUMNS, CPU_COLUMNS
from stripesim.scenarios.studies.releases.machine import pool_of
from stripesim.scenarios.studies.releases.measured import (
    MeasuredReleases,
    ReleaseDegraded,
    ReleaseRun,
    fio_requests,
)
from stripesim.scenarios.studies.tasks import Call, Row
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.run import simulate

#: Metric of a claim → column of a result row.
METRIC_COLUMNS = {
    **COLUMNS,
    "context_switches_per_op": CPU_COLUMNS["context_switches_per_op"],
}
#: Writes to the header of an image, without data, when a client opens it and closes it: watch and unwatch
#: (2 of ``osd_op_rw`` and 6 transactions in each run of reads).
HEADER_WRITES_COUNT = 2
# Simulated with a block of data, which is then subtracted.
HEADER_BLOCK_BYTES = 4096
# Of the generator of degraded reads, whose places were not recorded.
_DEGRADED_SEED = 7


def predict(
    one: ReleaseRun, *, engine: str = "compiled", models: Models | None = None
) -> dict[str, Any]:
    """Simulate a run with its places in their order, its depth, and the state that earlier rows left."""
    run = one.run
    pool = pool_of(one.pooled, run.coded, models=models)
    result = simulate(
        pool,
        Replay(run.requests, queue_depth=run.queue_depth),
        prefilled=not one.is_fresh,
        earlier=one.earlier,
        engine=engine,
    )
    row = result.accepted_counts().row.as_dict()
    return with_header_writes(row, pool.cluster.models, run.requests, engine)


def with_header_writes(
    row: dict[str, Any], models: Models, requests: Requests, engine: str
) -> dict[str, Any]:
    """Add to a run's counts those of the writes to its image's header, which are replicated."""
    places = np.zeros(HEADER_WRITES_COUNT, dtype=np.int64)
    writes = Requests(
        is_write=places == 0,
        images=places,
        offsets_bytes=places,
        lengths_bytes=places + HEADER_BLOCK_BYTES,
    )
    pool = cluster.build_pool("rep:3", 4096, models=models, meta=True)
    replay = Replay(writes, queue_depth=1)
    header = simulate(pool, replay, engine=engine).accepted_counts().row.as_dict()
    data = {"device_write": pool.scheme.width, "private_net": pool.scheme.width - 1}
    written_bytes = HEADER_WRITES_COUNT * HEADER_BLOCK_BYTES
    client_bytes = int(requests.lengths_bytes.sum())
    changed = {}
    for metric, copies in data.items():
        column = COLUMNS[metric]
        changed[column] = (
            row[column] + (header[column] - copies) * written_bytes / client_bytes
        )
    column = METRIC_COLUMNS["context_switches_per_op"]
    more = header[column] * HEADER_WRITES_COUNT / len(requests)
    changed[column] = row[column] + more
    return row | changed


def predict_degraded(
    one: ReleaseDegraded, *, engine: str = "compiled"
) -> dict[str, Any]:
    """Simulate reads while one OSD is down, at random places."""
    row = one.degraded
    requests = fio_requests(
        pattern=row.pattern,
        is_write=False,
        block_bytes=row.block_bytes,
        image_bytes=row.image_bytes,
        count=row.ops,
        seed=_DEGRADED_SEED,
    )
    result = simulate(
        pool_of(one.pooled, row.coded, down=row.dead_osd),
        Replay(requests, queue_depth=row.queue_depth),
        engine=engine,
    )
    return result.accepted_counts().row.as_dict()


def metrics_of(row: dict[str, Any]) -> dict[str, float]:
    """Return the claims' metrics from a result row."""
    return {metric: float(row[column]) for metric, column in METRIC_COLUMNS.items()}


def degraded_row_id(one: ReleaseDegraded) -> str:
    """Return the beginning of the ids of claims on degraded reads of a release."""
    return f"t{one.pooled.major}-{degraded_id(one.degraded)}"


def run_rows(one: ReleaseRun, engine: str) -> list[Row]:
    """Simulate a measured run."""
    run = one.run
    cell = {
        "run_id": run.run_id,
        "release": one.pooled.version,
        "scheme": run.coded.name,
        "optimised": one.pooled.is_optimised,
        "op": run.op,
        "pattern": run.pattern,
        "block_size_bytes": run.block_bytes,
        "queue_depth": run.queue_depth,
    }
    return [cell | predict(one, engine=engine)]


def degraded_rows(one: ReleaseDegraded, engine: str) -> list[Row]:
    """Simulate measured reads while one OSD is down."""
    row = one.degraded
    cell = {
        "run_id": degraded_row_id(one),
        "release": one.pooled.version,
        "scheme": row.coded.name,
        "optimised": one.pooled.is_optimised,
        "op": "degraded read",
        "pattern": row.pattern,
        "block_size_bytes": row.block_bytes,
        "queue_depth": row.queue_depth,
    }
    return [cell | predict_degraded(one, engine=engine)]


def tasks_for(measured: MeasuredReleases, engine: str) -> list[Call]:
    """List the simulations of a folder of measurements. Rows without values are history alone."""
    compared = [one for one in measured.runs if one.run.measured]
    tasks = [Call(one.run.run_id, run_rows, (one, engine)) for one in compared]
    for degraded in measured.degraded:
        words = degraded_row_id(degraded)
        tasks.append(Call(words, degraded_rows, (degraded, engine)))
    return tasks
