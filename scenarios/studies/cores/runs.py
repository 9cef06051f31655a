"""Simulate rows that share a run: OSDs pinned to some cores, under a saturating load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from stripesim.models.cpu import CpuModel
from stripesim.models.problems import NotComputedError, RefusedError, one_line
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.measured import UPMAP_MAX_DEVIATION, request_count
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, scenario_from
from stripesim.scenarios.studies.cores.measured import CORES_USED, RATE, CoresRow
from stripesim.scenarios.studies.parameters import ParameterFile, changed_models
from stripesim.scenarios.studies.tasks import Call, Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.run import Run

PARAMETERS: Final = ParameterFile("cores")
#: Requests of a run over those in flight, and the most requests of a run.
_ROUNDS: Final = 24
_REQUESTS_MAX: Final = 150_000
#: Hardware threads of a host with an EPYC 7742.
_THREADS_PER_HOST: Final = 128
#: Placement groups of an OSD: the same author's tests of these hosts in study `nvme` have 16,384 for 60 OSDs.
_GROUPS_PER_OSD: Final = 273
_GROUPS_MAX: Final = 32_768
_OBJECT_BYTES: Final = 4 << 20
_OBJECTS_PER_GROUP: Final = 8
# Processor times of a store's transaction on a worker thread, and of the key-value thread.
_TRANSACTION: Final = ("store_transaction_ns",)
_KEY_VALUE: Final = ("kv_transaction_ns", "kv_finish_ns")


def tasks_for(rows: Sequence[CoresRow], engine: str) -> list[Call]:
    """List the simulations: one for all rows of the same run."""
    runs: dict[tuple[str, ...], list[CoresRow]] = {}
    for row in rows:
        runs.setdefault(row.run_key, []).append(row)
    return [
        Call(shared[0].id, simulate_rows, (tuple(shared), engine), _weight(shared[0]))
        for shared in runs.values()
    ]


def _weight(row: CoresRow) -> float:
    try:
        return float(row.osds * (1 if row.is_read else 3))
    except NotComputedError:
        return 0.0


def simulate_rows(rows: Sequence[CoresRow], engine: str = "compiled") -> list[Row]:
    """Simulate rows that share a run. Each result row has a value, or the reason why there is none."""
    try:
        numbers = simulated(rows[0], engine)
    except ValueError as error:
        reason = one_line(error)
        return [
            {"claim": row.claim_id, "value": None, "reason": reason} for row in rows
        ]
    return [_valued(row, numbers) for row in rows]


def _valued(row: CoresRow, numbers: Row) -> Row:
    value = numbers.get(row.quantity)
    reason = None if value is not None else f"no rule computes {row.metric!r}"
    shown = {"cores_per_osd": row.cores_per_osd, "op": row.op, **numbers}
    return {"claim": row.claim_id, "value": value, "reason": reason, **shown}


def simulated(row: CoresRow, engine: str = "compiled") -> Row:
    """Simulate a row and return its numbers."""
    scenario = scenario_of(row)
    (cell,) = cells(scenario)
    models = models_of(scenario, row)
    result = run_cell(scenario, cell, engine, models, unchecked=True)
    if result.counts_refused is not None:
        raise RefusedError(result.counts_refused)
    return {
        RATE: result.row.iops,
        CORES_USED: _cores_used(result, row.osds),
        "latency_mean_ns": result.row.latency_mean_ns,
        "bottleneck": result.row.bottleneck,
    }


def _cores_used(result: Run, osds: int) -> float:
    """Return the cores that an OSD keeps busy, including the time that a core's other thread costs."""
    row = result.row
    assert row.iops is not None
    assert row.cpu_ns_per_op is not None
    (busy,) = (use.in_use for use in result.resources if use.kind == "osd.cpu")
    planned = row.cpu_ns_per_op * row.requests / result.engine_run.end_ns
    return row.iops * row.cpu_ns_per_op * (busy / planned) / 1e9 / osds


def is_alone(row: CoresRow) -> bool:
    """Return True if one OSD of a cluster runs, and all other drives and cores are idle."""
    return row.osds == 1


def scenario_of(row: CoresRow) -> Scenario:
    """Write a row as a scenario."""
    osds = row.osds
    hosts = 1 if is_alone(row) else row.hosts
    if osds % hosts:
        raise NotComputedError(f"{osds} OSDs are no multiple of {hosts} hosts")
    groups = row.pg_num or _groups(osds)
    clients = hosts * row.fio_per_host
    in_flight = clients * row.queue_depth
    image_bytes = max(64, groups * _OBJECTS_PER_GROUP // clients) * _OBJECT_BYTES
    values: dict[str, Any] = {
        "name": row.id,
        "generation": "pacific",
        "schemes": [row.scheme],
        "cluster": {
            "hosts": hosts,
            "osds_per_host": osds // hosts,
            "pg_num": groups,
            "upmap_max_deviation": UPMAP_MAX_DEVIATION,
            "cores_per_host": _THREADS_PER_HOST,
            "cores_per_osd": row.cores_per_osd,
            "networks": 1,
        },
        "client": {"place": "osd-hosts"},
        "workload": {
            "ops": ["read" if row.is_read else "write"],
            "patterns": [row.pattern],
            "block_sizes_bytes": [row.block_bytes],
            "clients": clients,
            "queue_depth": row.queue_depth,
            "requests": request_count(in_flight, _ROUNDS, _REQUESTS_MAX),
            "image_bytes": image_bytes,
        },
    }
    return scenario_from(values, label=row.id)


def _groups(osds: int) -> int:
    """Return the power of two nearest to `_GROUPS_PER_OSD` for each OSD."""
    groups = 1
    while groups * 1.5 < osds * _GROUPS_PER_OSD:
        groups *= 2
    return min(_GROUPS_MAX, groups)


def models_of(scenario: Scenario, row: CoresRow) -> Models:
    """Build the models of a row: the set `nvme` for one OSD alone, or for a cluster of Ceph 16."""
    models = changed_models(build_models(scenario))
    if not is_alone(row):
        return _scaled(models, _KEY_VALUE, _number("cluster", "key_value_factor"))
    factor = _number("alone", "processor_factor")
    every = tuple(name for name in models.cpu.number_names() if name.endswith("_ns"))
    models = _scaled(models, every, factor)
    models = _scaled(models, _TRANSACTION, _number("alone", "transaction_factor"))
    # The other threads of the OSD's cores are idle.
    cpu = _changed(models.cpu, {"paired_slowdown_fraction": 0.0})
    return replace(models, cpu=cpu)


def _number(table: str, name: str) -> float:
    return PARAMETERS.number(table, name)


def _scaled(models: Models, names: Sequence[str], factor: float) -> Models:
    """Return models whose processor times of these names take a factor longer."""
    values = {name: getattr(models.cpu, name) * factor for name in names}
    return replace(models, cpu=_changed(models.cpu, values))


def _changed(cpu: CpuModel, values: dict[str, Any]) -> CpuModel:
    origin = Provenance("fitted", "study cores, parameters.toml")
    provenance = {**cpu.provenance, **dict.fromkeys(values, origin)}
    return replace(cpu, provenance=provenance, **values)
