"""Simulate one host under each scheduler, hung OSDs, and the repair of one shard."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stripesim.calibration.measured.hardware import (
    MeasuredHardware,
    fitted_hardware,
    on_hardware,
)
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.build import build_cell, build_pool
from stripesim.scenarios.cells.models import build_models, op_queue
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.kernels import scaled_table
from stripesim.scenarios.studies.parameters import ParameterFile, scenario_changes
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.run import Run, simulate

OBJECT_BYTES = 4 << 20
QUEUE_DEPTH = 64

FOLDER = Path(str(study_folder("recovery")))
WPQ = {"cluster.op_queue": "wpq"}
MCLOCK = {"cluster.op_queue": "mclock_scheduler"}
PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")
# Limits that the sources set: for WPQ in the second of its runs, for mClock always.
LIFTED = {"faults.max_backfills": 1000, "faults.recovery_max_active": 1000}
# The sources' recovery moves tens of thousands of objects while clients write for 420 s. Here the same number
# of placement groups holds fewer objects, and both times are shorter by the same factor. Rates stay the same.
OBJECTS = 3000
CLIENTS_WRITE_S = 420.0
WPQ_RUNS_S = 8.0
#: Columns for comparing a code with its rival.
COMPARED_COLUMNS = (
    "recovery_private_net_bytes_per_lost_byte",
    "recovery_device_read_bytes_per_lost_byte",
    "recovery_s",
)


class Source(NamedTuple):
    """A test of schedulers: its objects of 4 MiB, and placement groups of its recovery pool."""

    objects: int
    pg_num: int


# 2021, figure 4: recovery slows down at multiples of 3,125 objects left. 32 groups are also the default.
# 2022: 64 for the pool of the clients, and steps of 469 objects in figure 15.
SOURCES = {"mclock2021": Source(100_000, 32), "mclock2022": Source(30_000, 64)}
# Claim's words → generation, whether the pool is optimised, shard whose OSD hangs. Clients write shards 0 and
# 1 in turn, or shard 1 alone where that one hangs.
HUNG = {
    "optimised, written by delta; shard 2 hangs": ("umbrella", True, 2),
    "optimised, rewritten from all data; shard 2 hangs": ("tentacle", True, 2),
    "optimised, mode 1; shard 2 hangs": ("tentacle", True, 2),
    "optimised, written by delta; the written shard hangs": ("umbrella", True, 1),
    "classic; a shard hangs": ("squid", False, 2),
}


def schedulers() -> Iterator[tuple[str, str, float, Mapping[str, Any]]]:
    """Yield source, configuration in the claims' words, seconds to simulate, and changed scenario keys."""
    late = {"faults.events": [{"osds": [3], "at_s": WPQ_RUNS_S - 0.1}]}
    yield "mclock2021", "no recovery", WPQ_RUNS_S, {**WPQ, **late}
    yield "mclock2021", "wpq, default limits", WPQ_RUNS_S, WPQ
    yield "mclock2021", "wpq, limits 1000", WPQ_RUNS_S, {**WPQ, **LIFTED}
    for source in SOURCES:
        for profile in PROFILES:
            sets = {**MCLOCK, "cluster.mclock_profile": profile, **LIFTED}
            yield source, profile, 60.0, sets


def host_models(scenario: Scenario) -> Models:
    """Return the models of the sources' host: four drives by data sheet, and its processors.

    One factor is fitted, to the row without recovery (see ``parameters.toml``): all processor times.
    """
    file = ParameterFile("recovery")
    host = MeasuredHardware(
        threads_per_node=40,
        threads_beyond_stated=0,
        threads_per_core=2,
        cpu_factor=file.number("host", "cpu_factor"),
        cpu_source="fitted, see parameters.toml",
        public_gbit_per_s=1000.0,
        private_gbit_per_s=1000.0,
        networks=0,
        clients_on_osd_hosts=False,
        sheet={name: file.number("drive", name) for name in file.table("drive")},
        sheet_source="Intel SSD DC P3700 800 GB",
        sustained_write_fraction=fitted_hardware().sustained_write_fraction,
    )
    models = on_hardware(build_models(scenario), host, 1)
    queue = op_queue(scenario, models.ssd, models.threads.op_shards_count)
    return replace(models, op_queue=queue)


def scheduler_row(
    source: str, name: str, seconds: float, sets: Mapping[str, Any], engine: str
) -> list[Row]:
    """Fill an OSD while clients write, under one configuration."""
    scenario = load_scenario(
        FOLDER / "base.toml",
        sets={
            "cluster.pg_num": SOURCES[source].pg_num,
            "workload.image_bytes": OBJECTS * OBJECT_BYTES,
            "workload.duration_s": seconds,
            **sets,
            **scenario_changes(),
        },
    )
    (cell,) = cells(scenario)
    result = run_cell(scenario, cell, engine, host_models(scenario))
    assert result.timeline is not None
    row: Row = {"experiment": source, "configuration": name, "scheme": "rep:3"}
    if name == "no recovery":
        return [row | _clients(result, 0.0, seconds)]
    start_s = min(start for start, _ in result.timeline["phases"]["recovery"])
    faults = result.row.faults
    assert faults is not None
    moved = faults.recovery.recovery_operations
    until_s = start_s + CLIENTS_WRITE_S * OBJECTS / SOURCES[source].objects
    took_s = faults.recovery_s or seconds - start_s
    return [
        row
        | _clients(result, start_s, min(seconds, until_s))
        | {"objects_per_s": moved / took_s}
    ]


def _clients(result: Run, start_s: float, stop_s: float) -> Row:
    """Return rate and latencies of clients between two moments, leaving out times when a group peers.

    The sources' clients wrote to a separate pool, none of whose groups peered. Here they share the pool.
    """
    assert result.timeline is not None
    states = result.timeline["pg_states"]
    times_s = np.array(states["time_s"])
    quiet = np.array(states["peering"]) == 0
    edges_s = np.clip([*times_s, stop_s], start_s, stop_s)
    requested = result.requested
    ended_s = requested.completed_ns[requested.done] / 1e9
    counted = (ended_s > start_s) & (ended_s <= stop_s)
    counted &= quiet[np.searchsorted(times_s, ended_s, side="right") - 1]
    latencies_ms = requested.latencies_ns[counted] / 1e6
    iops = float(counted.sum() / np.diff(edges_s)[quiet].sum())
    return {
        "iops": iops,
        # By Little's law, which leaves out waits for groups that peer.
        "latency_mean_ms": 1e3 * QUEUE_DEPTH / iops,
        "latency_p99_ms": float(np.percentile(latencies_ms, 99)),
    }


def hung_row(name: str, engine: str) -> list[Row]:
    """Simulate a hung OSD while one client writes block after block, and return the longest wait."""
    generation, optimised, shard = HUNG[name]
    sets: dict[str, Any] = {
        "generation": generation,
        "cluster.ec_optimizations": optimised,
        "workload.image_bytes": 4096 * (2 if shard == 1 else 1),
    }
    any_hangs = load_scenario(FOLDER / "hung.toml", sets=sets)
    pool = build_pool(any_hangs, parse_scheme("rs:4,2"), build_models(any_hangs))
    osd = int(pool.cluster.acting[0][shard])
    assert any_hangs.faults is not None
    hang = any_hangs.faults.events[0].model_dump(exclude_none=True)
    hang["osds"] = [osd]
    sets["faults.events"] = [hang]
    scenario = load_scenario(FOLDER / "hung.toml", sets=sets)
    (cell,) = cells(scenario)
    # The notes time a single write, whose primary holds no pages of an earlier one. Here, block after block
    # is written to learn when the hang ends.
    models = replace(build_models(scenario), extent_cache=None)
    result = run_cell(scenario, cell, engine, models)
    done = result.requested.done
    waits = result.requested.completed_ns[done] - result.requested.issued_ns[done]
    after = result.requested.issued_ns[done] <= (hang["at_s"] + 1) * 1e9
    row = {"experiment": "hung", "configuration": name, "scheme": "rs:4,2"}
    return [row | {"acknowledgement_ms": float(waits[after].max()) / 1e6}]


CLAY_OVER_RS = 17.7 / 10.5
#: Repairs of one lost OSD in an idle cluster: a scenario each, with a code and its rival.
PAIRS = ("clay2018", "xorbas2013")


def pair_row(paper: str, engine: str) -> list[Row]:
    """Rebuild one lost OSD with Reed-Solomon and with another code, and compare times and bytes."""
    scenario = load_scenario(FOLDER / f"{paper}.toml")
    rival, code = (_until_clean(scenario, cell, engine) for cell in cells(scenario))
    ratios = {
        f"{column}_ratio": code[column] / rival[column] for column in COMPARED_COLUMNS
    }
    row = {"experiment": "pairs", "configuration": paper, "scheme": scenario.schemes[1]}
    return [row | {"recovery_s": code["recovery_s"]} | ratios]


def _models(scenario: Scenario) -> Models:
    """Return the scenario's models. Clay(16,4,19), which was never timed, takes scaled costs of RS(16,4).

    The factor is that of Clay(9,3,11) over RS(9,3) in Ceph's own tool: 17.7 ms and 10.5 ms a stripe
    (study.clay_kernel_factor of ecfault2024).
    """
    models = build_models(scenario)
    costs = models.kernel.costs
    borrowed = tuple(
        replace(cost, scheme="clay:16,4,19")
        for cost in costs
        if cost.scheme == "rs:16,4"
    )
    table = replace(models.kernel, costs=costs + borrowed)
    return replace(models, kernel=scaled_table(table, "clay:16,4,19", CLAY_OVER_RS))


def _until_clean(scenario: Scenario, cell: Any, engine: str) -> Row:
    """Return the row of a run that ends with a clean cluster, where clients read once."""
    setting = build_cell(scenario, cell, _models(scenario))
    assert setting.faults is not None
    once = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=scenario.images_bytes,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    )
    result = simulate(
        setting.pool, once.start(), faults=setting.faults, engine=engine
    ).accepted()
    return result.row.as_dict()
