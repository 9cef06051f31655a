"""Wall time of sweeps on one worker, on two, and on Dask with two, for the same rows.

Start-up is included, except that of the Dask cluster.

Run: ``python benchmarks/bench_sweep.py``. It runs 20 cells of 20,000 requests and 1,000 cells of 200.
``--small`` runs 40 cells of 200 instead. Dask takes part if it is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

#: Queue depths, network rates and requests per cell. Two schemes, reads and writes: four cells per point.
SWEEPS = ((5, 1, 20_000), (25, 10, 200))
SWEEPS_SMALL = ((5, 2, 200),)
ROUNDS = 3
PATIENCE_S = 60

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
def dask(folder: Path) -> Iterator[str]:
    """Start a scheduler and two workers of one thread, as on a cluster, and yield the scheduler's file."""
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
    ]
    scheduler = ["--host", "127.0.0.1", "--port", "0"]
    started = []
    for name, more in (
        ("dask_scheduler", scheduler),
        ("dask_worker", worker),
        ("dask_worker", worker),
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
        yield str(file)
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(sweep: tuple[int, int, int], *workers: str) -> tuple[float, list[str]]:
    """Run the sweep, and return its wall time [s] and the fingerprint of each row."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "stripesim", *arguments(*sweep), *workers, "--json", "-"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    taken_s = time.monotonic() - begun
    return taken_s, [
        row["completions_sha256"] for row in json.loads(done.stdout)["rows"]
    ]


def main(small: bool) -> None:
    """Print wall time, cells per second and the ratio to one worker of each sweep."""
    # Run once outside the measurement, to load the compiled engine from its cache.
    measure((1, 1, 200), "--jobs", "1")
    parties = {"1 worker": ("--jobs", "1"), "2 workers": ("--jobs", "2")}
    with ExitStack() as stack:
        if find_spec("distributed") is None:
            print("Dask is not installed (pip install 'stripesim[cluster]'): skipped")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            scheduler = stack.enter_context(dask(Path(folder)))
            parties["Dask, 2 workers"] = ("--dask", scheduler)
            # A cluster is up before a sweep comes, so this loads the engine on its workers.
            measure((1, 1, 200), "--dask", scheduler)
        for sweep in SWEEPS_SMALL if small else SWEEPS:
            compare(sweep, parties, rounds=1 if small else ROUNDS)


def compare(
    sweep: tuple[int, int, int], parties: dict[str, tuple[str, ...]], rounds: int
) -> None:
    """Print the numbers of one sweep: medians over rounds, in which all parties take turns."""
    times_s: dict[str, list[float]] = {name: [] for name in parties}
    rows: list[str] = []
    for number in range(rounds):
        for name, workers in parties.items():
            # Dask would return the rows of an earlier round with the same seed.
            taken_s, own = measure(sweep, *workers, "--seed", str(number))
            times_s[name].append(taken_s)
            if name == "1 worker":
                rows = own
            assert own == rows, "not the same rows"
    print(
        f"Sweep of {len(rows):,} cells of {sweep[2]:,} requests, the same rows to the bit"
    )
    for name, own_s in times_s.items():
        taken_s = median(own_s)
        ratio = median(
            base / own for base, own in zip(times_s["1 worker"], own_s, strict=True)
        )
        print(
            f"  {name:16} {taken_s:7.1f} s  {len(rows) / taken_s:7.1f} cells/s   × 1 worker: {ratio:.2f}"
        )


if __name__ == "__main__":
    main("--small" in sys.argv[1:])
