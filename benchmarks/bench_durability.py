"""Splitting relative to plain Monte Carlo, and a year of a million OSDs.

Run: ``python benchmarks/bench_durability.py``. The first part estimates rs:8,2 on 50 drives (AFR 2 %, 20 TB
at 100 MB/s, one repair at a time) until the interval is ± 0.1 nines. Plain Monte Carlo would need
(1.96 / (0.1 ln 10))² / P walks. Its speed is measured on two million walks and extrapolated. The second part
follows one year of 1,000,000 OSDs, each with 100 shards of placement groups in different racks, until data
is lost or the year ends. Then it estimates the probability of loss in that year (method history), without
and with racks that lose power and upgrades that fail. Seconds of these lines are processor time.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from functools import partial
from math import log, log10

import numpy as np

from stripesim.blocks import (
    YEAR_S,
    Burst,
    DriveRepair,
    Lifetime,
    System,
    chain_of,
    code_of,
    exposure_losses,
    plain_monte_carlo,
    prepare,
    run_batch,
    split,
)

HALF_NINES = 0.1


def seconds(call):
    begun = time.perf_counter()
    value = call()
    return value, time.perf_counter() - begun


def against_plain() -> None:
    system = System(
        code=code_of("rs:8,2"), placement="clustered", drives=50, drive_bytes=20e12,
        lifetime=Lifetime.exponential(0.02), repair=DriveRepair(1e8, "serial", fixed=False), units={},
    )  # fmt: skip
    exact = chain_of(system).loss_probability(YEAR_S)
    print(f"rs:8,2 on 50 drives, AFR 2 %: exact {-log10(exact):.3f} nines")
    split(system, walks=10)
    walks = 10
    while True:
        estimated, wall_s = seconds(lambda walks=walks: split(system, walks=walks))
        nines, low, high = estimated.nines
        if high - low <= 2 * HALF_NINES:
            break
        walks *= 2
    print(
        f"splitting    {nines:.3f} ({low:.3f} … {high:.3f}): {estimated.walks:,} walks, "
        f"{estimated.events:,} events, {wall_s:.3f} s"
    )
    plain_monte_carlo(system, walks=10)
    plain, plain_s = seconds(lambda: plain_monte_carlo(system, walks=100_000))
    # One walk of plain Monte Carlo simulates a pool. The loss of any of the five counts.
    pool = exact / system.pools
    needed = (1.96 / (HALF_NINES * log(10))) ** 2 / pool
    factor = needed / plain.walks
    print(
        f"plain        {needed:,.0f} walks, {factor * plain.events:,.0f} events, {factor * plain_s:,.0f} s "
        f"for the same (measured: {plain.walks:,} walks in {plain_s:.2f} s)"
    )
    events = factor * plain.events / estimated.events
    wall = factor * plain_s / wall_s
    print(f"ratio        {events:,.0f} in events, {wall:,.0f} in time")


#: Drives of a rack and of a host.
RACK = 400
HOST = 20


def in_different_racks(groups: int, width: int, racks: int) -> np.ndarray:
    """Return a random drive of different racks for each shard of a group, shape (groups, width)."""
    generator = np.random.default_rng(1)
    chosen = generator.integers(0, racks, (groups, width), dtype=np.int32)
    repeated = np.arange(groups)
    while len(repeated):
        rows = np.sort(chosen[repeated], axis=1)
        repeated = repeated[(rows[:, 1:] == rows[:, :-1]).any(axis=1)]
        size = (len(repeated), width)
        chosen[repeated] = generator.integers(0, racks, size, dtype=np.int32)
    return chosen * RACK + generator.integers(0, RACK, chosen.shape, dtype=np.int32)


def a_million() -> None:
    drives = 1_000_000
    code = code_of("rs:8,3")
    groups = drives * 100 // code.width
    numbers = np.arange(drives, dtype=np.int32)
    members = in_different_racks(groups, code.width, drives // RACK)
    system = System(
        code=code, placement="crush", drives=drives, drive_bytes=16e12, lifetime=Lifetime.exponential(0.02),
        repair=DriveRepair(2e8, "parallel", 620.0, groups_at_once=16), groups=members,
        units={"host": numbers // HOST, "rack": numbers // RACK},
    )  # fmt: skip
    prepared, build_s = seconds(lambda: prepare(system, biased=False))
    print(
        f"\n1,000,000 OSDs, {groups:,} placement groups of rs:8,3: tables in {build_s:.1f} s"
    )
    # Loss is the only level, and it is rare, so the walk continues for the entire year.
    batch, wall_s = seconds(partial(run_batch, prepared, 1, 0, 1, levels=False))
    print(
        f"one year: {batch.events:,} failures and rebuilt shards, {wall_s:.1f} s on one core"
    )
    del prepared
    power = Burst("a rack loses power", "rack", 1, 12 / YEAR_S, lost_fraction=0.01)
    upgrade = Burst("failed upgrade", "host", 50, 4 / YEAR_S, lost_fraction=0.05)
    struck = replace(system, bursts=(power, upgrade))
    for name, example in (("history", system), ("with bursts", struck)):
        begun_s = time.process_time()
        estimated = exposure_losses(example)
        taken_s = time.process_time() - begun_s
        nines, low, high = estimated.nines
        print(
            f"{name}: {nines:.2f} nines ({low:.2f} … {high:.2f}), {estimated.walks:,} side walks, "
            f"{estimated.events:,} events, {taken_s:.0f} s"
        )
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak_gib:.1f} GiB")


if __name__ == "__main__":
    against_plain()
    a_million()
