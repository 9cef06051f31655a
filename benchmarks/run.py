"""Run all benchmarks one after another. Each reports ratios measured side by side.

``python benchmarks/run.py --list`` lists them. File names as arguments select some. ``--record`` writes their
output and duration into docs/benchmarks.md, unless one fails.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- measured: written by python benchmarks/run.py --record -->\n"
END = "<!-- end -->\n"
BENCHMARKS = {
    "bench_start.py": "start-up of the command line relative to bare Python, and the first compilation",
    "bench_engine.py": "engines: textbook SimPy, both engines, a C++ loop, size and memory",
    "bench_scale.py": "scale: time and memory of a cell as clusters and clients grow",
    "bench_sweep.py": "sweeps on one worker, two, and Dask",
    "bench_crush.py": "placement: mappings per second relative to crushtool",
    "bench_traces.py": "trace readers relative to the CSV reader of Polars, and the memory of a long stream",
    "bench_kernel.py": "erasure-code kernels relative to a copy, a null code, cold buffers and plain loops",
    "bench_durability.py": "durability: splitting relative to plain Monte Carlo, a year of a million OSDs",
}


def run(name: str) -> tuple[str, float, int]:
    """Run a benchmark in a fresh process, and return its output, seconds and status."""
    begun = time.monotonic()
    lines = []
    with subprocess.Popen(
        [sys.executable, "-u", HERE / name], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    return "\n".join(lines).strip("\n"), time.monotonic() - begun, process.returncode


def recorded(outputs: dict[str, tuple[str, float, int]]) -> str:
    """Format the outputs of benchmarks as a section of the page."""
    total_s = sum(taken_s for _, taken_s, _ in outputs.values())
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    parts = [f"Measured on {day}: {os.cpu_count()} cores, Python {platform.python_version()}, "
             f"{total_s / 60:.0f} min in total.\n"]  # fmt: skip
    for name, (text, taken_s, _) in outputs.items():
        parts.append(
            f"### {BENCHMARKS[name]}\n\n`{name}`, {taken_s:.0f} s:\n\n```text\n{text}\n```\n"
        )
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Run all benchmarks or the named ones, and return the number of failures."""
    if arguments == ["--list"]:
        for name, title in BENCHMARKS.items():
            print(f"{name:22} {title}")
        return 0
    outputs = {}
    for name in [name for name in arguments if name != "--record"] or BENCHMARKS:
        print(f"\n== {name}: {BENCHMARKS[name]}\n", flush=True)
        outputs[name] = run(name)
        print(f"\n{outputs[name][1]:.0f} s", flush=True)
    failed = [name for name, (*_, status) in outputs.items() if status]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    elif "--record" in arguments:
        page, count = re.subn(
            f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{recorded(outputs)}\n{END}",
            PAGE.read_text(encoding="utf-8"), flags=re.DOTALL,
        )  # fmt: skip
        assert count == 1, f"{PAGE}: missing {BEGIN}"
        PAGE.write_text(page, encoding="utf-8")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
