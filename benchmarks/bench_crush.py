"""Inputs that CRUSH maps per second, relative to crushtool on the same maps.

Run: ``python benchmarks/bench_crush.py``. Both use one core, and neither prints its mappings. CPU time
instead of wall time reduces the influence of other processes. The rounds alternate, and the best of each
counts. crushtool's time excludes a run over a single input (start-up, reading the map). Our time excludes
reading the map and the compilation, which is cached on disk after the first use.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from stripesim.blocks import build_map, map_to_text

LAST_X = 200_000
ROUNDS = 5
CASES = (
    (
        "4 hosts × 6",
        {"hosts": 4, "osds_per_host": 6},
        (("rep", 3), ("ec", 4), ("ec_osd", 9), ("ec_osd", 14)),
    ),
    (
        "3 racks × 10 × 12",
        {"hosts": 30, "osds_per_host": 12, "racks": 3},
        (("rep", 3), ("rep_rack", 3), ("ec", 9), ("ec_osd", 14)),
    ),
)


def cpu_seconds_of_command(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_seconds_of_call(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    crushtool = shutil.which("crushtool")
    if crushtool is None:
        print("skipped: crushtool is not installed (Debian and Ubuntu: ceph-base)")
        return
    print(
        f"inputs mapped per CPU second, x = 0 … {LAST_X}, ratio = stripesim / crushtool"
    )
    print(
        f"{'map':<18} {'rule':<9} {'n':>3} {'stripesim':>12} {'crushtool':>12} {'start-up':>9} {'ratio':>6}"
    )
    xs = np.arange(LAST_X + 1)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "map.txt")
        compiled = Path(folder, "map.bin")
        for name, shape, rules in CASES:
            crush = build_map(**shape)
            text.write_text(map_to_text(crush))
            subprocess.run(
                [crushtool, "-c", str(text), "-o", str(compiled)], check=True
            )
            for rule, num_rep in rules:
                options = [
                    "--test",
                    "--rule",
                    str(crush.rule(rule).id),
                    "--num-rep",
                    str(num_rep),
                    "--min-x",
                    "0",
                ]
                command = [crushtool, "-i", str(compiled), *options, "--max-x"]
                crush.map_many(rule, xs[:1], num_rep)
                ours = []
                theirs = []
                start_up = []
                for number in range(ROUNDS):
                    # A map keeps its last results, so each round maps other inputs.
                    new = xs + (number + 1) * len(xs)
                    ours.append(
                        cpu_seconds_of_call(partial(crush.map_many, rule, new, num_rep))
                    )
                    theirs.append(cpu_seconds_of_command([*command, str(LAST_X)]))
                    start_up.append(cpu_seconds_of_command([*command, "0"]))
                rate = len(xs) / min(ours)
                rate_theirs = LAST_X / (min(theirs) - min(start_up))
                print(
                    f"{name:<18} {rule:<9} {num_rep:>3} {rate:>12,.0f} {rate_theirs:>12,.0f} "
                    f"{min(start_up) * 1e3:>6.0f} ms {rate / rate_theirs:>6.2f}"
                )


if __name__ == "__main__":
    main()
