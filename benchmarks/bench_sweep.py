"""Wall time of sweeps on one worker, on two, and on Dask with two, for the same rows.

First it measures the machine: how much more two independent copies of the same work achieve than one. Two
processors that share caches, memory or a core give less than 2, and no number of workers can give more.

Start-up is included, except that of the Dask cluster. Other programs lengthen wall times, and
those of two workers most. On Linux, the processor times of all processes tell about how long a quiet machine
takes: as the command and then its slowest worker, or as two busy processors. It can take a little less, since
the command loads Polars while workers start.

Run: ``python benchmarks/bench_sweep.py``. It runs 20 cells of 20,000 requests and 1,000 cells of 200.
``--small`` runs 40 cells of 200 instead. Dask takes part if it is installed.

``--long 100000`` instead runs so many cells of 200 requests on a Dask cluster of four workers, kills one of
them, and prints the memory of the scheduler as the sweep goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

#: Queue depths, network rates and requests per cell. Two schemes, reads and writes: four cells per point.
SWEEPS = ((5, 1, 20_000), (25, 10, 200))
SWEEPS_SMALL = ((5, 2, 200),)
ROUNDS = 3
PATIENCE_S = 60
WORKERS = 2
LOOK_EVERY_S = 0.01
#: Looks at the clocks of known processes per search for new ones, which takes far longer. Two workers on two
#: processors would lack that time.
SEARCH_EVERY_LOOKS = 10
#: Rounds in which one copy of the work runs alone, and then two at a time.
COPY_ROUNDS = 12
#: Of a long sweep: workers, requests per cell, and the share of the rows at which a worker is killed.
LONG_WORKERS = 4
LONG_REQUESTS = 200
LONG_KILLED_AT = 0.2

# An installed package has its byte code on disk, so the first run writes that of a checkout.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def arguments(depth_count: int, rate_count: int, requests: int) -> list[str]:
    """Return the sweep's options: queue depths times network rates."""
    depths = range(1, depth_count + 1)
    rates = range(1, rate_count + 1)
    return [
        "sweep", "quickstart", "--set", f"workload.requests={requests}",
        "--over", "workload.queue_depth=" + ",".join(str(2 * depth) for depth in depths),
        "--over", "cluster.private_gbit_per_s=" + ",".join(str(10 * rate) for rate in rates),
    ]  # fmt: skip


@contextmanager
def dask(folder: Path, workers: int = WORKERS) -> Iterator[tuple[str, list[int]]]:
    """Start a scheduler and workers of one thread, as on a cluster.

    Yield the scheduler's file and the processes, that of the scheduler first.
    """
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    worker = [
        "--no-nanny",
        "--nthreads",
        "1",
        "--memory-limit",
        "0",
        "--local-directory",
        str(folder),
        "--preload",
        "stripesim.scenarios.work.preload",
    ]
    scheduler = ["--host", "127.0.0.1", "--port", "0"]
    started = []
    for name, more in (
        ("dask_scheduler", scheduler),
        *[("dask_worker", worker)] * workers,
    ):
        words = [sys.executable, "-m", f"distributed.cli.{name}", *common, *more]
        started.append(
            subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        end = time.monotonic() + PATIENCE_S
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.05)
    try:
        yield str(file), [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


class Measured(NamedTuple):
    """Times of one sweep, and its rows."""

    wall_s: float
    command_s: float  # Processor time of the command.
    others_s: list[float]  # Processor time of each further process.
    rows: list[str]  # Fingerprint of each row.

    @property
    def processor_s(self) -> float:
        """Processor time of all processes [s]."""
        return self.command_s + sum(self.others_s)

    @property
    def quiet_s(self) -> float:
        """About the wall time on a quiet machine [s]."""
        if not self.others_s:
            return self.command_s
        return max(self.command_s + max(self.others_s), self.processor_s / WORKERS)


def measure(
    sweep: tuple[int, int, int], *workers: str, cluster: list[int] | None = None
) -> Measured:
    """Run the sweep on workers of its own or on those of a cluster."""
    cluster = cluster or []
    before_s = {pid: processor_s(pid) for pid in cluster}
    seen_s: dict[int, float] = {}
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        command = subprocess.Popen(
            [sys.executable, "-m", "stripesim", *arguments(*sweep), *workers, "--json", "-"],
            stdout=output, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for look in itertools.count():
            if command.poll() is not None:
                break
            if look % SEARCH_EVERY_LOOKS == 0:
                for pid in (*descendants(command.pid), *cluster):
                    seen_s.setdefault(pid, 0.0)
            for pid, earlier_s in seen_s.items():
                seen_s[pid] = max(earlier_s, processor_s(pid))
            time.sleep(LOOK_EVERY_S)
        wall_s = time.monotonic() - begun
        assert command.returncode == 0, f"exit status {command.returncode}"
        output.seek(0)
        rows = [row["completions_sha256"] for row in json.load(output)["rows"]]
    command_s = seen_s.pop(command.pid, 0.0)
    others_s = [own_s - before_s.get(pid, 0.0) for pid, own_s in seen_s.items()]
    return Measured(wall_s, command_s, others_s, rows)


def processor_s(pid: int) -> float:
    """Return the processor time of a process until now [s], 0 if it has ended or the system does not say."""
    if sys.platform != "linux":
        return 0.0
    try:
        # The number of a process's clock, as clock_getcpuclockid(3) makes it.
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def descendants(pid: int) -> list[int]:
    """Return a process and all that it started, directly or not."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


#: A process that runs one point of the first sweep for each line that it reads, and prints its wall time [s].
COPY = """
import sys
from time import perf_counter
import stripesim

def run():
    stripesim.run("quickstart", sets=["workload.requests={requests}"], costs=False)

run()
print("ready", flush=True)
for _ in sys.stdin:
    begun = perf_counter()
    run()
    print(perf_counter() - begun, flush=True)
"""


def ceiling(requests: int, rounds: int) -> list[float]:
    """Return the throughput of two independent copies over that of one, round by round.

    Both have loaded and compiled everything before the first round. They take turns to run alone.
    """
    code = COPY.format(requests=requests)
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    with ExitStack() as stack:
        copies = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
                )
            )
            for _ in range(WORKERS)
        ]  # fmt: skip
        for copy in copies:
            assert copy.stdout and copy.stdout.readline() == "ready\n"
        ratios = []
        for number in range(rounds):
            (alone_s,) = durations_s([copies[number % WORKERS]])
            together_s = durations_s(copies)
            ratios.append(sum(alone_s / own_s for own_s in together_s))
        return ratios


def durations_s(copies: list[subprocess.Popen[str]]) -> list[float]:
    """Run copies at the same time, and return the wall time of each [s]."""
    for copy in copies:
        assert copy.stdin
        copy.stdin.write("\n")
        copy.stdin.flush()
    return [float(copy.stdout.readline()) for copy in copies if copy.stdout]


def main(small: bool) -> None:
    """Print wall time, cells per second and the ratio to one worker of each sweep."""
    # Run once outside the measurement, to load the compiled engine from its cache.
    measure((1, 1, 200), "--jobs", "1")
    sweep = (SWEEPS_SMALL if small else SWEEPS)[0]
    ratios = ceiling(sweep[2], rounds=2 if small else COPY_ROUNDS)
    print(
        f"this machine: two independent copies reach {median(ratios):.2f} × one "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)"
    )
    parties = {"1 worker": ("--jobs", "1"), "2 workers": ("--jobs", str(WORKERS))}
    cluster: list[int] = []
    with ExitStack() as stack:
        if find_spec("distributed") is None:
            print("Dask is not installed (pip install 'stripesim[cluster]'): skipped")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            scheduler, cluster = stack.enter_context(dask(Path(folder)))
            parties["Dask, 2 workers"] = ("--dask", scheduler)
            # A cluster is up before a sweep comes, so this loads the engine on its workers.
            measure((1, 1, 200), "--dask", scheduler)
        for sweep in SWEEPS_SMALL if small else SWEEPS:
            compare(sweep, parties, cluster, rounds=1 if small else ROUNDS)


def compare(
    sweep: tuple[int, int, int],
    parties: dict[str, tuple[str, ...]],
    cluster: list[int],
    rounds: int,
) -> None:
    """Print the numbers of one sweep: medians over rounds, in which all parties take turns.

    Processor times are the least of all rounds, which other programs disturb least.
    """
    runs: dict[str, list[Measured]] = {name: [] for name in parties}
    rows: list[str] = []
    for number in range(rounds):
        for name, workers in parties.items():
            # Dask would return the rows of an earlier round with the same seed.
            own = measure(
                sweep,
                *workers,
                "--seed",
                str(number),
                cluster=cluster if "--dask" in workers else None,
            )
            runs[name].append(own)
            if name == "1 worker":
                rows = own.rows
            assert own.rows == rows, "not the same rows"
    print(
        f"Sweep of {len(rows):,} cells of {sweep[2]:,} requests, the same rows to the bit"
    )
    alone = runs["1 worker"]
    alone_s = min(own.quiet_s for own in alone)
    for name, every in runs.items():
        wall_s = median(own.wall_s for own in every)
        ratio = median(
            base.wall_s / own.wall_s for base, own in zip(alone, every, strict=True)
        )
        print(
            f"  {name:16} {wall_s:7.1f} s  {len(rows) / wall_s:7.1f} cells/s   × 1 worker: {ratio:.2f}"
        )
        if not alone_s:
            # The system does not tell processor times.
            continue
        best = min(every, key=lambda own: own.quiet_s)
        others = " + ".join(f"{own_s:.2f}" for own_s in best.others_s)
        print(
            f"    processor time {best.command_s:.2f} s"
            + (f" + {others} s" if others else "")
            + f"; on a quiet machine about × 1 worker: {alone_s / best.quiet_s:.2f}"
        )


def long_sweep(cells: int) -> None:
    """Run a sweep on a Dask cluster, kill one worker, and print time and memory until every row is there."""
    # A thousand cells as in the short sweep, each with so many seeds.
    depths, rates, _ = SWEEPS[1]
    replications = -(-cells // (4 * depths * rates))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with dask(folder, LONG_WORKERS) as (scheduler, processes):
            command = subprocess.Popen(
                [
                    *(sys.executable, "-m", "stripesim"),
                    *arguments(depths, rates, LONG_REQUESTS),
                    *("--replications", str(replications)),
                    *("--dask", scheduler, "--out", str(folder / "out")),
                ],
                stdout=subprocess.DEVNULL,
            )
            count = 4 * depths * rates * replications
            _watch(command, count, processes, folder / "out" / "parts")
        assert command.returncode == 0, f"exit status {command.returncode}"
        counts = json.loads((folder / "out" / "provenance.json").read_text())["sweep"]
    print(
        f"{counts['rows']:,} of {counts['tasks']:,} rows, {counts['failed']} failed, "
        f"{counts['refused']} refused"
    )
    assert counts["rows"] == counts["tasks"] == count


def _watch(
    command: subprocess.Popen[bytes], count: int, processes: list[int], parts: Path
) -> None:
    """Print rows and memory as a sweep goes on, and kill one worker."""
    scheduler, victim, *others = processes
    begun = time.monotonic()
    print("  time, s     rows  memory, MiB: scheduler  command  workers")
    killed = False
    shown = -1
    while command.poll() is None:
        time.sleep(1)
        done = rows_in(parts)
        if done > shown:
            memory = " ".join(f"{memory_mib(pid):.0f}" for pid in others)
            print(
                f"  {time.monotonic() - begun:7.0f} {done:8,}  {memory_mib(scheduler):22.0f} "
                f"{memory_mib(command.pid):8.0f}  {memory}",
                flush=True,
            )
            shown = done
        if not killed and done >= LONG_KILLED_AT * count:
            os.kill(victim, signal.SIGKILL)
            killed = True
            print("          one worker killed", flush=True)
    wall_s = time.monotonic() - begun
    assert killed, "the sweep ended too soon"
    print(f"  {wall_s:7.0f} s, {wall_s / count * 1e3:.1f} ms per cell")


def rows_in(parts: Path) -> int:
    """Return how many rows are in the merged files of a sweep, by their names."""
    return sum(
        int(path.name.split(".")[0].removeprefix("merged-"))
        for path in parts.glob("merged-*.jsonl.gz")
    )


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process [MiB], 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="run 40 cells of 200")
    parser.add_argument(
        "--long", type=int, metavar="CELLS", help="run one sweep and kill a worker"
    )
    options = parser.parse_args()
    if options.long is not None:
        long_sweep(options.long)
    else:
        main(options.small)
