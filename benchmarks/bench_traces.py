"""Trace readers: speed relative to the CSV reader of Polars on the same file, and peak memory.

Run: ``python benchmarks/bench_traces.py [--long LINES]``. It prints one JSON document. The two readers
alternate, so a slow moment of the machine affects both, and the ratio of medians is comparable between
machines. Polars reads the file into text and number columns without checks. It reads blkparse text, which
is not CSV, as a single column of lines.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from stripesim import BlockTrace
from stripesim.blocks import (
    COMMAND_SCHEMA,
    REQUEST_SCHEMA,
    FaultLog,
    iter_trace,
    write_blkparse,
)

ROUNDS = 5
REQUESTS = 200_000


def made_trace() -> BlockTrace:
    rng = np.random.default_rng(1)
    issue = np.cumsum(rng.integers(1_000, 100_000, REQUESTS))
    dispatch = issue + rng.integers(500, 5_000, REQUESTS)
    requests = pl.DataFrame(
        {
            "issue_ns": issue - issue[0],
            "dispatch_ns": dispatch - issue[0],
            "complete_ns": dispatch
            - issue[0]
            + rng.integers(50_000, 500_000, REQUESTS),
            "device": ["259,0"] * REQUESTS,
            "offset_bytes": rng.permutation(REQUESTS) * 131072,
            "length_bytes": rng.integers(1, 257, REQUESTS) * 512,
            "is_write": rng.random(REQUESTS) < 0.3,
        },
        schema=REQUEST_SCHEMA,
    )
    return BlockTrace(
        requests, requests.select(COMMAND_SCHEMA.keys()), "blkparse", "made"
    )


def texts(trace: BlockTrace) -> dict[str, tuple[str, str]]:
    """Return the text and separator of each format."""
    base = 128166385295514663
    out: dict[str, list[str]] = {
        name: [] for name in ("msr", "spc", "systor", "tencent", "blkreplay", "ssdsim")
    }
    for i, _, c, _, o, n, w in trace.requests.iter_rows():
        out["msr"].append(
            f"{base + i // 100},hm,0,{'Write' if w else 'Read'},{o},{n},{(c - i) // 100}\n"
        )
        out["spc"].append(f"0,{o // 512},{n},{'w' if w else 'r'},{i / 1e9:.6f}\n")
        out["systor"].append(
            f"{1455591804 + i // 10**9}.{i % 10**9:09d},{(c - i) / 1e9:.9f},{'W' if w else 'R'},0,{o},{n}\n"
        )
        out["tencent"].append(
            f"{1538323200 + i // 10**9},{o // 512},{n // 512},{int(w)},1058\n"
        )
        out["blkreplay"].append(
            f"{i / 1e9:16.9f} ; {o // 512:12} ; {n // 512:4} ; {'W' if w else 'R'} ; 0.0 ; 0.0\n"
        )
        out["ssdsim"].append(f"{i} 0 {o // 512} {n // 512} {int(not w)}\n")
    separators = {"blkreplay": ";", "ssdsim": " "}
    return {
        name: ("".join(lines), separators.get(name, ",")) for name, lines in out.items()
    }


def stream(path: Path, name: str) -> int:
    return sum(
        chunk.requests.height
        for chunk in iter_trace(path, FaultLog(str(path)), format=name)
    )


def compare(
    ours: Callable[[], object], theirs: Callable[[], object], lines: int
) -> dict[str, float]:
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for times, action in zip(spent, (ours, theirs), strict=True):
            began = time.perf_counter()
            action()
            times.append(time.perf_counter() - began)
    mine, polars = (statistics.median(times) for times in spent)
    return {
        "lines": lines,
        "lines_per_s": lines / mine,
        "polars_lines_per_s": lines / polars,
        "ratio": polars / mine,
    }


def short_files(folder: Path) -> dict[str, dict[str, float]]:
    trace = made_trace()
    report = {}
    for name, (text, separator) in texts(trace).items():
        path = folder / name
        path.write_text(text)
        report[name] = compare(
            lambda path=path, name=name: stream(path, name),
            lambda path=path, separator=separator: pl.read_csv(
                path, has_header=False, separator=separator
            ),
            REQUESTS,
        )
    path = folder / "blkparse"
    write_blkparse(trace, path)
    report["blkparse"] = compare(
        lambda: stream(path, "blkparse"),
        lambda: pl.read_csv(path, has_header=False, separator="\x01", quote_char=None),
        3 * REQUESTS,
    )
    return report


def long_file(folder: Path, lines: int) -> dict[str, float]:
    """Stream a long file in a separate process, and report the peak of its memory."""
    path = folder / "long.spc"
    rng = np.random.default_rng(2)
    with path.open("w") as file:
        for start in range(0, lines, 100_000):
            sectors = rng.integers(0, 1 << 40, min(100_000, lines - start))
            file.writelines(
                f"0,{sector},4096,w,{(start + i) / 1e4:.6f}\n"
                for i, sector in enumerate(sectors.tolist())
            )
    peaks = {}
    for stream_name, count in (("nothing", 0), ("long", lines)):
        code = f"import bench_traces as b; b.child({str(path)!r}, {count})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent,
            capture_output=True,
            check=True,
            text=True,
        )
        peaks[stream_name] = json.loads(done.stdout)
    return {
        "lines": lines,
        "file_bytes": path.stat().st_size,
        "seconds": peaks["long"]["seconds"],
        "peak_bytes": peaks["long"]["peak_bytes"],
        "peak_bytes_of_imports": peaks["nothing"]["peak_bytes"],
    }


def child(path: str, expected: int) -> None:
    began = time.perf_counter()
    if expected:
        assert stream(Path(path), "spc") == expected
    # Unlike getrusage's, this peak does not include the process that started this one.
    status = Path("/proc/self/status").read_text()
    used = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps({"seconds": time.perf_counter() - began, "peak_bytes": used}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--long", type=int, default=1_000_000, help="lines of the long stream"
    )
    lines = parser.parse_args().long
    with tempfile.TemporaryDirectory() as folder:
        report = {
            "formats": short_files(Path(folder)),
            "stream": long_file(Path(folder), lines),
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
