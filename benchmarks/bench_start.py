"""Start-up of the command line relative to bare Python, and the first compilation of the engine.

Run: ``python benchmarks/bench_start.py``. It measures processor time instead of wall time, which reduces the
influence of other processes. The commands alternate, and the median of each is shown.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from statistics import median

ROUNDS = 9
PARTIES = {
    "python -c pass": ["-c", "pass"],
    "start: stripesim --version": ["-m", "stripesim", "--version"],
    "start: stripesim --help": ["-m", "stripesim", "--help"],
    "start: stripesim run --help": ["-m", "stripesim", "run", "--help"],
    "import stripesim": ["-c", "import stripesim"],
    "import stripesim.api": ["-c", "import stripesim.api"],
    "run quickstart": ["-m", "stripesim", "run", "quickstart"],
}
FIRST = "import stripesim; stripesim.run('quickstart', sets={'workload.requests': 50}, costs=False)"

# An installed package has its byte code on disk, so the first run writes that of a checkout.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def cpu_seconds(arguments: list[str], **environment: str) -> float:
    """Run Python once and return its processor time [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print processor time and ratios."""
    times: dict[str, list[float]] = {name: [] for name in PARTIES}
    for _ in range(ROUNDS + 1):
        for name, arguments in PARTIES.items():
            times[name].append(cpu_seconds(arguments))
    # The first round fills the caches of files and of compiled modules.
    base = median(times["python -c pass"][1:])
    for name, rounds in times.items():
        middle = median(rounds[1:])
        print(
            f"{name:28} {middle * 1e3:7.0f} ms   {middle / base:6.1f} × python -c pass"
        )
    with tempfile.TemporaryDirectory() as folder:
        first, second = (
            cpu_seconds(
                ["-c", FIRST], NUMBA_CACHE_DIR=folder, STRIPESIM_KERNELS="compile"
            )
            for _ in range(2)
        )
    print(
        f"first compilation: {first - second:.1f} s, the same small run afterwards: {second:.1f} s"
    )


if __name__ == "__main__":
    main()
