"""Time and memory of a cell as a function of OSDs, placement groups and clients.

Each line runs in a separate process, so its memory belongs to that cell. A run that is too short for a steady
rate is repeated with as many requests as the audit wants, up to eight times as many, and the line is that of
the last run. ``--small`` skips cells that take more than 10 s.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

#: OSDs on hosts of 10 (20 above 1,000), placement groups, clients, requests in flight per client, requests of
#: the first run.
SIZES = (
    # OSDs from 24 to 100,000.
    (24, 1024, 10, 100, 20_000),
    (120, 4096, 10, 100, 20_000),
    (630, 32_768, 10, 100, 20_000),
    (2_000, 65_536, 10, 100, 20_000),
    (10_000, 131_072, 10, 100, 20_000),
    (100_000, 262_144, 10, 100, 20_000),
    # Clients from 1 to 10,000.
    (120, 4096, 1, 100, 20_000),
    (120, 4096, 100, 10, 20_000),
    (120, 4096, 1_000, 1, 20_000),
    (120, 4096, 10_000, 1, 20_000),
    # The largest published cluster under its load.
    (630, 32_768, 500, 100, 500_000),
)
SMALL_MOST = 2_000
#: Longest run, over the first one, and its most requests.
LONGER_MOST = 32
REQUESTS_MOST = 4_000_000


def measure(
    osds: int, groups: int, clients: int, depth: int, requests: int
) -> dict[str, float]:
    """Simulate a cell, in a run that is long enough if one is, and return its time and memory."""
    most = min(LONGER_MOST * requests, REQUESTS_MOST)
    while True:
        measured = measure_run(osds, groups, clients, depth, requests)
        if measured["iops"] or requests == most:
            return measured
        requests = min(most, max(2 * requests, int(measured["wanted"])))


def measure_run(
    osds: int, groups: int, clients: int, depth: int, requests: int
) -> dict[str, float]:
    """Simulate one run of random 4 KiB reads, and return its time and memory. A refused run has no rate."""
    import stripesim

    per_host = 6
    if osds > 1_000:
        per_host = 20
    elif osds % 10 == 0:
        per_host = 10
    scenario = stripesim.parse_scenario(
        f"""schemes = ["rep:3"]
[cluster]
hosts = {osds // per_host}
osds_per_host = {per_host}
pg_num = {groups}
[workload]
ops = ["read"]
patterns = ["rand"]
clients = {clients}
queue_depth = {depth}
requests = {requests}
image_bytes = "{max(64, 16 * groups // clients)}MiB"
"""
    )
    started_s = time.process_time()
    pool = stripesim.pool(scenario)
    load = stripesim.workload(scenario)
    built_s = time.process_time()
    # The first fifth is a warm-up, as in `stripesim run`.
    result = stripesim.simulate(pool, load, prefilled=True, warm_up=0.2)
    done_s = time.process_time()
    return {
        "build_s": built_s - started_s,
        "run_s": done_s - built_s,
        "engine_s": result.engine_run.wall_s,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "iops": 0.0 if result.refused else result.row.iops,
        "requests": requests,
        "wanted": result.requests_wanted,
    }


def main(arguments: list[str]) -> None:
    """Print one line per size."""
    if arguments and arguments[0] == "--one":
        print(json.dumps(measure(*map(int, arguments[1:]))))
        return
    print(f"{'OSDs':>8} {'PGs':>9} {'clients':>8} {'in flight':>9} {'requests':>9}"
          f" {'build, s':>9} {'run, s':>7} {'MiB':>7} {'simulated IOPS':>15}")  # fmt: skip
    for size in SIZES:
        osds, groups, clients, depth, requests = size
        if "--small" in arguments and (osds > SMALL_MOST or requests > 100_000):
            continue
        text = subprocess.run(
            [sys.executable, __file__, "--one", *map(str, size)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        cell = json.loads(text)
        # More in flight than the queues of most OSDs hold: the busiest one's grows throughout.
        iops = f"{cell['iops']:,.0f}" if cell["iops"] else "not steady"
        print(
            f"{osds:8,} {groups:9,} {clients:8,} {clients * depth:9,} {cell['requests']:9,} "
            f"{cell['build_s']:9.2f} {cell['run_s']:7.2f} {cell['memory_mib']:7,.0f} "
            f"{iops:>15}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
