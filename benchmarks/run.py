"""Every benchmark, one after another, each as ratios measured side by side in this one run.

``python benchmarks/run.py --list`` names them; names of files as arguments run those alone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = {
    "bench_start.py": "start-up of the command line beside a bare Python, and the first compilation",
    "bench_engine.py": "engines: textbook SimPy, ours, the compiled one, a C++ loop; size and memory",
    "bench_crush.py": "placement: mappings per second beside crushtool",
    "bench_traces.py": "trace readers beside the CSV reader of Polars, and the memory of a long stream",
    "bench_kernel.py": "erasure-code kernels beside a copy, a null code, cold buffers and plain loops",
    "bench_durability.py": "durability: splitting beside plain Monte Carlo, a year of a million OSDs",
    "bench_scale.py": "scale: time and memory of a cell as clusters and clients grow",
}


def main(names: list[str]) -> int:
    """Run all, each in a process of its own, so that none warms another's caches; return how many failed."""
    if names == ["--list"]:
        for name, title in BENCHMARKS.items():
            print(f"{name:22} {title}")
        return 0
    failed = 0
    for name in names or BENCHMARKS:
        print(f"\n== {name}: {BENCHMARKS[name]}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / name)], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
