"""What is simulated: one host under each scheduler, hung OSDs, and the repair of one shard."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.run.build import build_models, build_pool
from stripesim.scenarios.run.cell import run_cell
from stripesim.scenarios.schema.keys import Scenario, cells
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.ecfault2024.kernel import scaled_table
from stripesim.scenarios.studies.parameters import scenario_sets
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.cluster import Models

BASE = str(files("stripesim.scenarios.studies.recovery") / "base.toml")
WPQ, MCLOCK = 'cluster.op_queue="wpq"', 'cluster.op_queue="mclock_scheduler"'
PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")
# Limits that the sources set, for WPQ in the second of its runs and for mClock always.
LIFTED = ("faults.max_backfills=1000", "faults.recovery_max_active=1000")
HANGS_AT_S = 2.0
# Claim's words → generation, whether the pool is optimised, shard whose OSD hangs. Clients write shard 0 and
# 1 in turn, or shard 1 alone where it is the one that hangs.
HUNG = {
    "optimised, written by delta; shard 2 hangs": ("umbrella", True, 2),
    "optimised, rewritten from all data; shard 2 hangs": ("tentacle", True, 2),
    "optimised, mode 1; shard 2 hangs": ("tentacle", True, 2),
    "optimised, written by delta; the written shard hangs": ("umbrella", True, 1),
    "classic; a shard hangs": ("squid", False, 2),
}


def schedulers() -> dict[str, tuple[str, ...]]:
    """Settings of each configuration of the studies of schedulers, by the claims' words."""
    found: dict[str, tuple[str, ...]] = {
        "no recovery": (WPQ, "faults.events=[{osds=[3], at_s=7.9}]"),
        "wpq, default limits": (WPQ,),
        "wpq, limits 1000": (WPQ, *LIFTED),
    }
    for profile in PROFILES:
        found[profile] = (MCLOCK, f'cluster.mclock_profile="{profile}"', *LIFTED)
    return found


def _run(scenario: Scenario, engine: str) -> Any:
    (cell,) = cells(scenario)
    return run_cell(scenario, cell, engine)


def scheduler_row(name: str, sets: tuple[str, ...], engine: str) -> list[Row]:
    """Fill an OSD while clients write, under one configuration."""
    result = _run(load_scenario(BASE, sets=(*sets, *scenario_sets())), engine)
    phase = "before" if name == "no recovery" else "recovery"
    row: Row = {
        "experiment": "schedulers",
        "configuration": name,
        "scheme": "rep:3",
        "iops": result.row[f"iops_{phase}"],
        "latency_mean_ms": result.row[f"latency_mean_{phase}_ns"] / 1e6,
        "latency_p99_ms": result.row[f"latency_p99_{phase}_ns"] / 1e6,
        "limits": result.row["limits"],
    }
    if phase == "recovery":
        seconds = sum(stop - start for start, stop in result.timeline["phases"]["recovery"])
        row["objects_per_s"] = result.row["recovery_operations"] / seconds
    return [row]


def hung_row(name: str, engine: str) -> list[Row]:
    """Let one OSD hang while one client writes 4 KiB after another, and take the longest wait."""
    generation, optimised, shard = HUNG[name]
    sets = (
        f'generation="{generation}"',
        'schemes=["rs:4,2"]',
        "cluster.hosts=6",
        "cluster.osds_per_host=1",
        "cluster.pg_num=1",
        f"cluster.ec_optimizations={str(optimised).lower()}",
        "cluster.stripe_unit_bytes=4096",
        "workload.queue_depth=1",
        'workload.patterns=["seq"]',
        f"workload.image_bytes={4096 * (2 if shard == 1 else 1)}",
        "cluster.object_bytes=16384",
        "workload.duration_s=60",
    )
    healthy = load_scenario(BASE, sets=sets)
    pool = build_pool(healthy, parse_scheme("rs:4,2"), build_models(healthy))
    osd = int(pool.cluster.acting[0][shard])
    event = f'faults.events=[{{osds=[{osd}], at_s={HANGS_AT_S}, return_s=50.0, kind="hang"}}]'
    result = _run(load_scenario(BASE, sets=(*sets, event)), engine)
    done = result.requested.done
    waits = result.requested.completed_ns[done] - result.requested.issued_ns[done]
    after = result.requested.issued_ns[done] <= HANGS_AT_S * 1e9 + 1e9
    return [
        {
            "experiment": "hung",
            "configuration": name,
            "scheme": "rs:4,2",
            "acknowledgement_ms": float(waits[after].max()) / 1e6,
        }
    ]


def repair_rows() -> list[Row]:
    """Bytes that the repair of one shard reads and sends, by the codes' plans."""
    found: list[Row] = []
    for name in ("rs:16,4", "clay:16,4,19", "rs:10,4", "lrc:10,6,5"):
        scheme = parse_scheme(name)
        geometry = scheme.geometry(65536)
        size = 64 * geometry.stripe_bytes
        plan = scheme.plan_repair(
            lost=frozenset({1}), object_size_bytes=size, geometry=geometry, unavailable=frozenset()
        )
        read = sum(extent.length_bytes for extent in plan.reads)
        written = sum(extent.length_bytes for extent in plan.writes)
        # The primary is one of those read, and not the one rebuilt.
        own = sum(extent.length_bytes for extent in plan.reads if extent.shard == 0)
        found.append(
            {
                "experiment": "repair",
                "configuration": name,
                "scheme": name,
                "read_per_lost": read / written,
                "sent_per_lost": (read - own + written) / written,
            }
        )
    return found


# Repairs of one lost OSD in idle clusters: code and its rival, and hosts.
# Assumed of both: links of 1 Gb/s, objects of 16 MiB (a template of Clay has no room for more).
CLAY_OVER_RS = 17.7 / 10.5
PAIRS = {"clay2018": ("rs:16,4", "clay:16,4,19", 26), "xorbas2013": ("rs:10,4", "lrc:10,6,5", 35)}


def pair_row(paper: str, engine: str) -> list[Row]:
    """Rebuild one lost OSD with Reed-Solomon and with the other code, and compare the times."""
    *codes, hosts = PAIRS[paper]
    sets = (
        'generation="pacific"',
        f"schemes={list(codes)}".replace("'", '"'),
        f"cluster.hosts={hosts}",
        "cluster.osds_per_host=1",
        "cluster.pg_num=128",
        "cluster.cores_per_host=4",
        "cluster.public_gbit_per_s=1.0",
        "cluster.private_gbit_per_s=1.0",
        'cluster.ssd="ebs-gp3"',
        "cluster.object_bytes=16777216",
        "cluster.stripe_unit_bytes=65536",
        "workload.queue_depth=1",
        "workload.duration_s=3000",
        'workload.ops=["read"]',
        "workload.image_bytes=21474836480",
        "faults.down_out_interval_s=0",
        "faults.events=[{osds=[0], at_s=0.0}]",
    )
    scenario = load_scenario(BASE, sets=sets)
    seconds = {cell.scheme: _until_clean(scenario, cell, engine) for cell in cells(scenario)}
    rival, code = codes
    return [
        {
            "experiment": "pairs",
            "configuration": paper,
            "scheme": code,
            "recovery_s": seconds[code],
            "time_ratio": seconds[code] / seconds[rival],
        }
    ]


def _models(scenario: Scenario) -> Models:
    """Return the scenario's models; Clay(16,4,19), which was never timed, has the costs of RS(16,4), scaled.

    The factor is that of Clay(9,3,11) over RS(9,3) in Ceph's own tool: 17.7 ms and 10.5 ms a stripe
    (study.clay_kernel_factor of ecfault2024).
    """
    models = build_models(scenario)
    rival, code, _ = PAIRS["clay2018"]
    borrowed = tuple(replace(cost, scheme=code) for cost in models.kernel.costs if cost.scheme == rival)
    table = replace(models.kernel, costs=models.kernel.costs + borrowed)
    return replace(models, kernel=scaled_table(table, "clay:16,4,19", CLAY_OVER_RS))


def _until_clean(scenario: Scenario, cell: Any, engine: str) -> float:
    """Return the seconds from the first recovery operation to a clean cluster; clients read once."""
    from stripesim.scenarios.run.build import build_cell
    from stripesim.sim.ceph.clients.workload import Synthetic
    from stripesim.sim.run import simulate

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
    result = simulate(setting.pool, once.start(), faults=setting.faults, engine=engine)
    return float(result.row["recovery_s"])
