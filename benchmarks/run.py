"""Every benchmark, one after another, each as ratios measured side by side in this one run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = (
    ("engines: textbook SimPy, our SimPy engine, the compiled one, a C++ loop", "bench_engine.py"),
    ("placement: mappings per second beside crushtool", "bench_crush.py"),
    ("trace readers beside plain loops", "bench_traces.py"),
    ("erasure-code kernels beside a copy", "bench_kernel.py"),
    ("durability: splitting beside plain Monte Carlo", "bench_durability.py"),
)


def main() -> int:
    """Run all, each in a process of its own, so that none warms another's caches."""
    failed = 0
    for title, name in BENCHMARKS:
        print(f"\n== {title}\n", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / name)], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
