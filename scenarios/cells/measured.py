"""Simulate measured rows: the same load on the same cluster, for a short time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stripesim.calibration.measured.hardware import MeasuredHardware, on_hardware
from stripesim.calibration.measured.rows import MeasuredRow
from stripesim.models.coding import parse_scheme
from stripesim.models.placement.pg_autoscale import autoscaled_pg_num
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import slow_class
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import OBJECT_BYTES, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.audit import refuse
from stripesim.sim.run import Run

PARAMETERS = "nvme"
#: Requests of a run over those in flight. The busiest queues fill slowly, so more is better, up to a bound on
#: the requests of a run and not below a minimum.
ROUNDS = 40
REQUESTS_MAX = 300_000
#: The same of a run past saturation whose percentiles matter, because they depend on its length. 512 reads of
#: RS(4,2) in flight had a p99 of 15 to 25 ms after 40 rounds, 36 to 46 after 300, 69 to 71 after 1,000 and 67
#: to 70 after 3,000, at 207,000, 195,000, 190,000 and 191,000 requests per second.
ROUNDS_PAST_SATURATION = 1_000
REQUESTS_PAST_SATURATION = 1_000_000
ROUNDS_MIN = 8
REQUESTS_MIN = 6_000
#: A larger product of a run's requests and a placement group's members is simulated on a part of the hosts,
#: with at least `PART_HOSTS` hosts [count]. Rows that state no tail need less work: a part of a cluster has
#: the rate of the whole. Runs of `ROUNDS_MIN` rounds are steps of a fit, which relates them to long runs, so
#: `STEP_HOSTS` hosts are enough for them, and their queues need not be steady.
WORK_MAX = 1_800_000
RATE_WORK_MAX = 100_000
STEP_WORK_MAX = 25_000
PART_HOSTS = 16
STEP_HOSTS = 4
_REPLICAS = 3
# Length of a run with open arrivals [s].
_ARRIVALS_S = 3.0
#: Deviation at which Ceph's balancer stops. It is on, and in mode upmap, since Octopus
#: (src/pybind/mgr/balancer/module.py).
UPMAP_MAX_DEVIATION = 5
# Columns that grow with the hosts.
_RATES = (
    "iops",
    "throughput_bytes_per_s",
    "throughput_ci_low",
    "throughput_ci_high",
)
# Columns of a whole run that a part of its requests does not have.
_WHOLE = (
    "throughput_ci_low",
    "throughput_ci_high",
    "latency_ci_low",
    "latency_ci_high",
)
# Minimum objects per placement group in the images.
_OBJECTS_PER_GROUP = 8


def groups_of(row: MeasuredRow) -> int:
    """Return the placement groups of a row, by default those of the autoscaler for the only pool."""
    if row.pg_num is not None:
        return row.pg_num
    return autoscaled_pg_num(1.0, row.osds, parse_scheme(row.scheme).width)


def is_step(rounds: int) -> bool:
    """Return True for the length of a step of a fit."""
    return rounds <= ROUNDS_MIN


def part_of(row: MeasuredRow, rounds: int = ROUNDS) -> MeasuredRow:
    """Return a row, or one on a half, a quarter, … of its hosts if all of them would take too long.

    Each host keeps its load and groups. The load of the busiest of many OSDs is lost. A cluster of fewer
    than two parts of `PART_HOSTS` hosts stays whole.
    """
    if row.nodes / 2 < PART_HOSTS - 0.5:
        return replace(row, pg_num=groups_of(row))
    width = parse_scheme(row.scheme).width
    work = row.clients * row.queue_depth * ROUNDS_MIN * width
    work_max = WORK_MAX if "latency_p99_ms" in row.measured else RATE_WORK_MAX
    hosts_min = max(PART_HOSTS, width)
    if is_step(rounds):
        work_max = STEP_WORK_MAX
        hosts_min = max(STEP_HOSTS, width)
    part = 1
    while work > work_max * part:
        part *= 2
    while part > 1 and (
        row.nodes / part < hosts_min - 0.5 or row.clients < part * hosts_min
    ):
        part //= 2
    hosts = round(row.nodes / part)
    clients = max(1, round(row.clients * hosts / row.nodes))
    return replace(
        row, nodes=hosts, clients=clients, pg_num=max(1, groups_of(row) // part)
    )


def requests_max(rounds: int, width: int = _REPLICAS) -> int:
    """Return the most requests of a run: fewer of wide codes, and more past saturation."""
    most = REQUESTS_MAX if rounds <= ROUNDS else REQUESTS_PAST_SATURATION
    return most * _REPLICAS // max(_REPLICAS, width)


def request_count(in_flight: int, rounds: int, most: int = REQUESTS_MAX) -> int:
    """Return the requests of a run: `rounds` times those in flight, within bounds."""
    return max(REQUESTS_MIN, min(rounds * in_flight, max(most, ROUNDS_MIN * in_flight)))


def scenario_of(
    row: MeasuredRow, hardware: MeasuredHardware, *, rounds: int = ROUNDS
) -> Scenario:
    """Write a row as a scenario."""
    scheme = parse_scheme(row.scheme)
    groups = groups_of(row)
    domain = "host" if scheme.width <= row.nodes else "osd"
    in_flight = row.clients * row.queue_depth
    image_bytes = max(
        64 * OBJECT_BYTES, groups * _OBJECTS_PER_GROUP * OBJECT_BYTES // row.clients
    )
    cluster: dict[str, Any] = {
        "hosts": row.nodes,
        "osds_per_host": row.osds_per_node,
        "pg_num": groups,
        "upmap_max_deviation": UPMAP_MAX_DEVIATION,
        "object_bytes": OBJECT_BYTES,
        "stripe_unit_bytes": row.stripe_unit_bytes,
        "failure_domain_replicated": domain,
        "failure_domain_erasure": domain,
        "cores_per_host": threads_of(row, hardware),
        "cores_per_osd": row.cores_per_osd,
        "cpu_limit_per_osd": row.cpu_limit_per_osd,
        "op_shards": row.op_shards,
        "messenger_threads": row.messenger_threads,
        "public_gbit_per_s": hardware.public_gbit_per_s,
        "private_gbit_per_s": hardware.private_gbit_per_s,
        "networks": hardware.networks or 2,
        "drive": "samsung-pm983",
        "parameters": PARAMETERS,
        "ec_optimizations": row.fast_ec,
        "direct_reads": row.direct,
    }
    workload: dict[str, Any] = {
        "read_fraction": row.read_fraction,
        "patterns": (row.pattern,),
        "block_sizes_bytes": (row.block_bytes,),
        "clients": row.clients,
        "queue_depth": row.queue_depth,
        "requests": request_count(
            in_flight, rounds, requests_max(rounds, scheme.width)
        ),
        "image_bytes": image_bytes,
    }
    if row.iops_limit is not None:
        # Arrivals last some periods of a CPU limit.
        rate_per_s = row.clients * row.iops_limit
        workload |= {"kind": "open", "rate_per_s": rate_per_s}
        workload["requests"] = max(REQUESTS_MIN, round(rate_per_s * _ARRIVALS_S))
    keys: dict[str, Any] = {
        "name": row.id,
        "generation": row.generation,
        "schemes": (row.scheme,),
        # What a row does not state keeps its default.
        "cluster": {key: value for key, value in cluster.items() if value is not None},
        "workload": workload,
        "client": {"place": "osd-hosts" if hardware.clients_on_osd_hosts else "own"},
    }
    return Scenario(**keys)


def threads_of(row: MeasuredRow, hardware: MeasuredHardware) -> int:
    """Return the hardware threads of a node that its OSDs may use [count]."""
    if row.threads_per_node is None:
        return hardware.threads_per_node
    return row.threads_per_node + hardware.threads_beyond_stated


ModelChange = Callable[[Models], Models]


def models_of(
    scenario: Scenario,
    row: MeasuredRow,
    hardware: MeasuredHardware,
    fitted: ModelChange | None = None,
) -> Models:
    """Build the models of a row. `fitted` changes those of the fitted processor and drive."""
    models = build_models(scenario)
    if fitted is not None:
        models = fitted(models)
    return on_hardware(models, hardware, row.osds_per_drive)


def predict(
    rows: Sequence[MeasuredRow],
    hardware: MeasuredHardware,
    engine: str = "compiled",
    rounds: int = ROUNDS,
    fitted: ModelChange | None = None,
    change: ModelChange | None = None,
) -> list[dict[str, Any]]:
    """Simulate rows that share a run, and return a result row for each.

    `fitted` changes the models of the fitted processor and drive, `change` those of the row's.
    A run may end before its queues are steady, where a steady one costs too much, and as a step of a fit.
    Its rows are marked: ``refused`` holds the check that they fail, and ``slow_class`` the resources whose
    queue is too slow for its percentiles.

    Raises
    ------
    RefusedError
        If the audit refuses the counts of a run, whatever its length.
    """
    with_tail = [row for row in rows if "latency_p99_ms" in row.measured]
    first = part_of([*with_tail, *rows][0], rounds)
    scenario = scenario_of(first, hardware, rounds=rounds)
    # Rates of all hosts.
    hosts_share = rows[0].nodes / first.nodes
    models = models_of(scenario, first, hardware, fitted)
    if change is not None:
        models = change(models)
    (cell,) = cells(scenario)
    result = run_cell(
        scenario, cell, engine, models, unchecked=True, is_step=is_step(rounds)
    )
    if result.counts_refused is not None:
        refuse(result.counts_refused)
    assert result.window is not None
    values = []
    for row in rows:
        numbers = result.row.as_dict() | (_part(result, row.part) if row.part else {})
        rates = {
            name: numbers[name] * hosts_share
            for name in _RATES
            if numbers[name] is not None
        }
        values.append(
            {
                "row_id": row.id,
                "op": row.op,
                "part": row.part,
                "pattern": row.pattern,
                "block_size_bytes": row.block_bytes,
                "pg_num": groups_of(row),
                "scheme": row.scheme,
                **numbers,
                **rates,
                "simulated_hosts": first.nodes,
                "utilisation": result.utilisation,
                "slow_class": slow_class(scenario, result),
                "mb_s": rates["throughput_bytes_per_s"] / 1e6,
                "latency_mean_ms": numbers["latency_mean_ns"] / 1e6,
                "latency_p99_ms": numbers["latency_p99_ns"] / 1e6,
            }
        )
    return values


def _part(result: Run, part: str) -> dict[str, float | None]:
    """Return rates and latencies of the reads or the writes of a mixed run, which have no intervals."""
    window = result.window
    requested = result.requested
    assert window is not None
    held = window.holds(requested) & (requested.is_write == (part == "write"))
    latencies = requested.latencies_ns[held[requested.done]]
    span_s = (window.end_ns - window.start_ns) / 1e9
    percentiles = {
        f"latency_p{rank}_ns": float(np.percentile(latencies, rank))
        for rank in (50, 95, 99)
    }
    return {
        **dict.fromkeys(_WHOLE),
        "iops": float(held.sum() / span_s),
        "throughput_bytes_per_s": float(requested.lengths_bytes[held].sum() / span_s),
        "latency_mean_ns": float(latencies.mean()),
        **percentiles,
    }
