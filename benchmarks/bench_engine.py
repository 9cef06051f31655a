"""Speed of the engines, as ratios measured side by side in one process.

Run it without other load: ``python benchmarks/bench_engine.py``. Each comparison runs in rounds that
alternate between its parties, so that a slow spell of the machine affects all of them. Medians are shown.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import textbook

import stripesim
from stripesim.blocks import (
    BATCH,
    FACTOR_ONE,
    FACTOR_POINTS,
    FIFO,
    POOL,
    EngineRun,
    GraphBuilder,
    IntArray,
    Program,
    RequestChunk,
    RequestPlanner,
    Resources,
    Template,
    engine_named,
    factor_cells,
    factor_table,
    factor_tables,
    splitmix64,
)

Run = Callable[[Program], EngineRun]
run_simpy = engine_named("simpy")
run_compiled = engine_named("compiled")


@dataclass
class FixedBook:
    """Templates and bindings that do not grow."""

    templates: list[Template]
    bindings: IntArray


@dataclass
class Cycle:
    """A closed loop of one template that cycles through the binding rows in a fixed order."""

    queue_depth: int
    requests: int
    order: IntArray
    at: int = 0

    def take(self, count: int) -> RequestChunk:
        """Return the next requests."""
        count = min(count, self.requests - self.at)
        rows = self.order[np.arange(self.at, self.at + count) % len(self.order)]
        self.at += count
        zeros = np.zeros(count, dtype=np.int64)
        return RequestChunk(zeros, rows, zeros)


def exponential_factors() -> IntArray:
    """Return 256 equally likely exponential factors: the means of 256 slices of the distribution."""
    edges = np.arange(FACTOR_POINTS + 1) / FACTOR_POINTS
    left = 1 - edges
    integral = np.where(left > 0, left * (1 - np.log(np.where(left > 0, left, 1))), 0)
    return factor_table((-np.diff(integral) * FACTOR_POINTS).tolist())


# ------------------------------------------------------------------- RS(6,3), 4 KiB writes

K = 6
M = 3
HOST_PARTS = ("cpu", "tx", "rx")
OSD_PARTS = ("ssd", "sync")


def representative_write() -> Template:
    """Build a graph like a small RS(6,3) write: lock, read a stripe, encode, write it.

    Roles 0 to 3 belong to the client and the lock. Five roles per shard follow. Shard 0 is the primary's.
    """
    client_tx, client_rx, lock, worker = range(4)

    def role(shard: int, part: int) -> int:
        return 4 + 5 * shard + part

    cpu, tx, rx, ssd, sync = range(5)
    graph = GraphBuilder("write rs:6,3 4096 B")
    step = graph.use(client_tx, 4_000, after=[0], label="send")
    step = graph.use(role(0, rx), 4_000, after=[step], label="receive")
    step = graph.acquire(lock, after=[step], label="lock")
    step = graph.acquire(worker, after=[step], label="thread")
    step = graph.use(role(0, cpu), 60_000, after=[step], label="dispatch")
    read = []
    for shard in range(K):
        chain = step
        if shard:
            chain = graph.use(role(0, tx), 500, after=[chain], label="ask")
            chain = graph.use(role(shard, rx), 500, after=[chain], label="hear")
            chain = graph.use(role(shard, cpu), 20_000, after=[chain], label="prepare")
        chain = graph.use(
            role(shard, ssd), 90_000, after=[chain], label="read", spread=1
        )
        if shard:
            chain = graph.use(role(shard, cpu), 15_000, after=[chain], label="answer")
            chain = graph.use(role(shard, tx), 4_000, after=[chain], label="send")
            chain = graph.use(role(0, rx), 4_000, after=[chain], label="receive")
        read.append(chain)
    step = graph.use(role(0, cpu), 40_000, after=read, label="encode")
    written = []
    for shard in range(K + M):
        chain = step
        if shard:
            chain = graph.use(role(0, tx), 4_000, after=[chain], label="send")
            chain = graph.use(role(shard, rx), 4_000, after=[chain], label="receive")
            chain = graph.use(role(shard, cpu), 30_000, after=[chain], label="prepare")
        chain = graph.use(
            role(shard, ssd), 70_000, after=[chain], label="write", spread=1
        )
        chain = graph.use(role(shard, sync), 100_000, after=[chain], label="sync")
        if shard:
            chain = graph.use(role(shard, cpu), 10_000, after=[chain], label="answer")
            chain = graph.use(role(shard, tx), 500, after=[chain], label="send")
            chain = graph.use(role(0, rx), 500, after=[chain], label="receive")
        written.append(chain)
    step = graph.use(role(0, cpu), 20_000, after=written, label="finish")
    step = graph.release(worker, after=[step], label="thread")
    step = graph.release(lock, after=[step], label="unlock")
    step = graph.use(role(0, tx), 500, after=[step], label="reply")
    step = graph.use(client_rx, 500, after=[step], label="hear")
    return graph.finish(reply=step)


def cluster_program(*, osds: int, requests: int, queue_depth: int) -> Program:
    """Build the representative write on a cluster with 6 OSDs per host and 32 groups per OSD."""
    hosts = -(-osds // 6)
    groups = 32 * osds // (K + M)
    host_base = 2
    osd_base = host_base + len(HOST_PARTS) * hosts
    lock_base = osd_base + len(OSD_PARTS) * osds
    worker_base = lock_base + groups
    count = worker_base + osds
    capacities = np.ones(count, dtype=np.int64)
    disciplines = np.full(count, FIFO, dtype=np.int64)
    capacities[host_base:osd_base:3] = 12
    capacities[osd_base:lock_base:2] = 4
    disciplines[osd_base + 1 : lock_base : 2] = BATCH
    capacities[worker_base:] = 10
    disciplines[lock_base:] = POOL
    random = np.random.default_rng(1)
    rows = np.empty((groups, 4 + 5 * (K + M)), dtype=np.int64)
    for group in range(groups):
        acting = random.choice(osds, K + M, replace=False)
        row = [0, 1, lock_base + group, worker_base + acting[0]]
        for osd in acting:
            row += [host_base + 3 * (osd // 6) + part for part in range(3)]
            row += [osd_base + 2 * osd, osd_base + 2 * osd + 1]
        rows[group] = row
    names = ("",) * count
    order = random.integers(groups, size=1 << 16)
    return Program(
        resources=Resources(names, names, capacities, disciplines),
        book=FixedBook([representative_write()], rows),
        streams=[Cycle(queue_depth, requests, order)],
        factor_tables=np.stack(
            [np.full(FACTOR_POINTS, FACTOR_ONE), exponential_factors()]
        ),
    )


def fresh(program: Program, requests: int) -> Program:
    """Return the program with another number of requests, from its start."""
    streams = [replace(stream, requests=requests, at=0) for stream in program.streams]  # type: ignore[type-var]
    return replace(program, streams=streams)


@dataclass
class PlannedRequests:
    """Requests planned in advance, issued in order."""

    queue_depth: int
    chunk: RequestChunk
    requests: int
    at: int = 0

    def take(self, count: int) -> RequestChunk:
        """Return the next requests."""
        part = slice(self.at, min(self.at + count, self.requests))
        self.at = part.stop
        return RequestChunk(
            self.chunk.templates[part],
            self.chunk.bindings[part],
            self.chunk.groups[part],
        )


def koh_program(requests: int) -> Program:
    """Plan RS(6,3) 4 KiB random writes at queue depth 256 on the cluster of the Koh et al. study."""
    asked = [
        'schemes=["rs:6,3"]',
        'workload.ops=["write"]',
        'workload.patterns=["rand"]',
        "workload.block_sizes_bytes=[4096]",
        'workload.image="prefilled"',
        "workload.queue_depth=256",
    ]
    pool = stripesim.pool("koh2017", sets=asked)
    # The benchmark bounds the number of requests, regardless of the scenario's bound.
    workload = replace(
        stripesim.workload("koh2017", sets=asked).workload, requests=requests
    ).start()
    book = pool.book()
    planner = RequestPlanner(pool, book, workload, prefilled=True)
    chunk = planner.take(requests)
    return Program(
        resources=pool.cluster.resources,
        book=book,
        streams=[PlannedRequests(256, chunk, len(chunk))],
        groups=pool.cluster.groups,
        factor_tables=factor_tables(pool),
    )


def bench_write(
    name: str, program: Program, requests: tuple[int, int, int], rounds: int = 5
) -> None:
    """Compare textbook SimPy, the SimPy engine and the compiled engine on the same graphs."""
    parties: list[tuple[str, Run, int]] = [
        ("textbook SimPy", textbook.run, requests[0]),
        ("engine simpy", run_simpy, requests[1]),
        ("engine compiled", run_compiled, requests[2]),
    ]
    rates: dict[str, list[float]] = {party: [] for party, _, _ in parties}
    # Run once outside the measurement, to fill the caches of kernel, templates and processor.
    same = [run(fresh(program, requests[0])) for _, run, _ in parties]
    for _ in range(rounds):
        for party, run, count in parties:
            rates[party].append(count / run(fresh(program, count)).wall_s)
    streams = [result.streams[0] for result in same]
    assert (streams[1].completed_ns == streams[2].completed_ns).all(), (
        "the engines differ"
    )
    assert same[0].uses == same[1].uses == same[2].uses, "not the same work"
    steps = program.book.templates[int(streams[1].templates[0])].steps
    print(f"RS(6,3) 4 KiB random writes at queue depth 256, {name}, {steps} steps")
    for (party, _, _), result in zip(parties, same, strict=True):
        stream = result.streams[0]
        mean_us = (stream.completed_ns - stream.issued_ns).mean() / 1e3
        ratios = [
            median(
                [
                    own / baseline
                    for own, baseline in zip(rates[party], rates[base], strict=True)
                ]
            )
            for base in rates
        ]
        text = "  ".join(f"{ratio:8.2f}" for ratio in ratios[:2])
        rate = median(rates[party])
        print(
            f"  {party:16s} {rate:10.0f} requests/s   × textbook, × simpy: {text}   mean {mean_us:.0f} us"
        )


# -------------------------------------------------------------------------- closed network


def network_program(
    *, stations: int, routes: int, visits: int, customers: int, requests: int
) -> Program:
    """Build a closed network: each request visits the stations of its route one after another."""
    graph = GraphBuilder("route")
    step = graph.issue
    for visit in range(visits):
        step = graph.use(visit, 50_000, after=[step], label="visit", spread=1)
    visited = [splitmix64(index) % stations for index in range(routes * visits)]
    names = ("",) * stations
    ones = np.ones(stations, dtype=np.int64)
    return Program(
        resources=Resources(names, names, ones, 0 * ones),
        book=FixedBook(
            [graph.finish(reply=step)], np.array(visited).reshape(routes, visits)
        ),
        streams=[Cycle(customers, requests, np.arange(routes))],
        seed=1,
        factor_tables=np.stack(
            [np.full(FACTOR_POINTS, FACTOR_ONE), exponential_factors()]
        ),
    )


def bench_network(rounds: int = 7) -> None:
    """Compare the compiled engine with a hand-written C++ event loop on a closed network."""
    compiler = shutil.which("g++")
    if compiler is None:
        print("closed network: skipped the comparison with C++, because g++ is missing")
        return
    stations = 64
    routes = 1000
    visits = 20
    customers = 256
    requests = 100_000
    program = network_program(
        stations=stations,
        routes=routes,
        visits=visits,
        customers=customers,
        requests=requests,
    )
    cells = factor_cells(program.factor_tables)[1]
    factors = "\n".join(map(str, cells.ravel().tolist()))
    source = Path(__file__).with_name("closed_network.cpp")
    with tempfile.TemporaryDirectory() as folder:
        binary = str(Path(folder) / "closed_network")
        subprocess.run(
            [compiler, "-O2", "-std=c++17", "-o", binary, str(source)], check=True
        )
        arguments = [stations, routes, visits, customers, requests, 1, 50_000]
        ours = []
        theirs = []
        for _ in range(rounds):
            done = subprocess.run(
                [binary, *map(str, arguments)],
                input=factors,
                capture_output=True,
                text=True,
                check=True,
            )
            uses, end_ns, total_ns, seconds = done.stdout.split()
            result = run_compiled(fresh(program, requests))
            assert result.uses == int(uses) and result.end_ns == int(end_ns), (
                "not the same network"
            )
            assert int(result.streams[0].completed_ns.sum()) == int(total_ns), (
                "not the same completions"
            )
            ours.append(result.uses / result.wall_s)
            theirs.append(int(uses) / float(seconds))
    ratio = median([own / hand for own, hand in zip(ours, theirs, strict=True)])
    print(
        f"Closed network, {customers} customers, {stations} stations: same uses, end and completions"
    )
    print(f"  C++ by hand      {median(theirs) / 1e6:8.2f} million uses/s")
    print(
        f"  engine compiled  {median(ours) / 1e6:8.2f} million uses/s   × C++: {ratio:.2f}"
    )


# ------------------------------------------------------------------------ size and memory


def bench_scale(rounds: int = 5) -> None:
    """Compare the cost of a use on 24 and 10,000 OSDs, at equal queue depth and equal load per OSD."""
    sizes = {
        f"{osds} OSDs at queue depth {queue_depth}": cluster_program(
            osds=osds, requests=0, queue_depth=queue_depth
        )
        for osds, queue_depth in (
            (24, 256),
            (10_000, 256),
            (10_000, 256 * 10_000 // 24),
        )
    }
    costs: dict[str, list[float]] = {name: [] for name in sizes}
    for _ in range(rounds):
        for name, program in sizes.items():
            requests = max(50_000, 3 * program.streams[0].queue_depth)
            result = run_compiled(fresh(program, requests))
            costs[name].append(1e9 * result.wall_s / result.uses)
    base = next(iter(costs))
    print("Cost of a use, engine compiled, representative graph")
    for name, cost in costs.items():
        ratio = median(
            [own / first for own, first in zip(cost, costs[base], strict=True)]
        )
        print(f"  {name:36s} {median(cost):6.1f} ns   × the first: {ratio:.2f}")


# Reset the peak that Linux records first, because importing and compiling would hide it.
_MEMORY = """
import re, sys
sys.path.insert(0, {folder!r})
import bench_engine as bench
def bytes_of(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read()).group(1))
program = bench.network_program(stations=64, routes=1000, visits=4, customers=256, requests=0)
bench.run_compiled(bench.fresh(program, 10_000))
open("/proc/self/clear_refs", "w").write("5")
before = bytes_of("VmRSS")
answer = bench.run_compiled(bench.fresh(program, {requests}))
assert len(answer.streams[0].completed_ns) == {requests}
print((bytes_of("VmHWM") - before) / {requests})
"""


def bench_memory(requests: int = 3_000_000) -> None:
    """Measure the peak memory per request in a separate process, including the result."""
    if not Path("/proc/self/clear_refs").exists():
        print("Peak memory: skipped, because /proc is missing")
        return
    code = _MEMORY.format(
        folder=str(Path(__file__).resolve().parent), requests=requests
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    print(
        f"Peak memory: {float(done.stdout):.0f} bytes per request ({requests} requests, result included)"
    )


def main() -> None:
    """Print all comparisons."""
    bench_write(
        "cluster of Koh et al. (model)", koh_program(100_000), (600, 3_000, 100_000)
    )
    representative = cluster_program(osds=24, requests=0, queue_depth=256)
    bench_write("representative graph", representative, (600, 3_000, 100_000))
    bench_network()
    bench_scale()
    bench_memory()


if __name__ == "__main__":
    main()
