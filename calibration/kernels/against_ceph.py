"""Compare results of Ceph's erasure-code benchmark with rows measured on this machine."""

import datetime
import itertools
import math
import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.kernels.bench import TABLE_BYTES
from stripesim.calibration.kernels.cost_fit import table_from_rows
from stripesim.calibration.kernels.store import CEPH_TABLE
from stripesim.calibration.kernels.timing import row_of
from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.cost import KernelModel
from stripesim.models.problems import KernelError, Problem, file_reason, first_problem

_LINE = re.compile(
    r"(?P<seconds>\d+\.\d+)\s+(?P<kb>\d+)\s+(?P<plugin>\S+)\s+(?P<k>\d+)\s+(?P<m>\d+)\s+"
    r"(?P<workload>encode|decode)\s+(?P<iterations>\d+)\s+(?P<size>\d+)\s+(?P<erasures>\d+)\s*"
)
_HEADING = re.compile(r"seconds\s+KB\s+plugin\b.*")
#: Plugins to run with a benchmark binary, each with the parameters that select its technique.
PLUGINS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "isa:cauchy": ("isa", {"technique": "cauchy"}),
    "isa:reed_sol_van": ("isa", {"technique": "reed_sol_van"}),
    "jerasure:reed_sol_van": ("jerasure", {"technique": "reed_sol_van"}),
    "jerasure:cauchy_good": (
        "jerasure",
        {"technique": "cauchy_good", "packetsize": "3072"},
    ),
}
_TIMEOUT_S = 600
# Marks the rows of a measured ``kernels.csv`` that time Ceph's plugins.
_LIBRARY = "ceph-16.2.15"
_COLUMNS = (
    "lib",
    "backend",
    "technique",
    "k",
    "m",
    "op",
    "erasures",
    "iters",
    "cpu_s",
    "chunk_len",
    "time",
)


def ceph_rows_against(
    path: Path,
    *,
    schemes: Sequence[str] = ("rs:6,2",),
    sizes_bytes: Sequence[int] = (1 << 20,),
) -> list[dict[str, Any]]:
    """Return the rows of Ceph's benchmark, by running it or by reading its recorded output.

    Parameters
    ----------
    path
        The program ``ceph_erasure_code_benchmark``, or a text file with the columns seconds, KB, plugin, k,
        m, workload, iterations, size, erasures.
    schemes, sizes_bytes
        Reed-Solomon codes and data sizes [B] to run. A text file has its own.

    Returns
    -------
    list of dict
        Rows as `stripesim.calibration.kernels.timing.row_of` returns them.

    Raises
    ------
    KernelError
        If the file is missing, a line cannot be read, or the program fails.
    """
    if is_program(path):
        return _run(path, schemes, sizes_bytes)
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise KernelError(
            f"{path}: got bytes that are neither text nor an executable program"
        ) from None
    return parse_output(text, where=str(path))


def is_program(path: Path) -> bool:
    """Return True for a benchmark to run, False for recorded output.

    Raises
    ------
    KernelError
        If the file is missing or cannot be read.
    """
    if not path.is_file():
        raise KernelError(
            f"{path}: got no such file, wanted Ceph's benchmark or its recorded output"
        )
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise KernelError(f"{path}: cannot read: {file_reason(error)}") from None
    return os.access(path, os.X_OK) and (head == b"\x7fELF" or head.startswith(b"#!"))


def parse_output(text: str, *, where: str = "benchmark output") -> list[dict[str, Any]]:
    """Parse recorded output, skipping headings, blank lines and lines that start with #.

    Parameters
    ----------
    text
        Output of the benchmark.
    where
        Name of the file for error messages.

    Raises
    ------
    KernelError
        If a line cannot be read or contradicts itself, or there is no result.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#") or _HEADING.fullmatch(stripped):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise KernelError(
                f"{where}:{number}: got {stripped[:60]!r}, wanted seconds, KB, plugin, k, m, workload, "
                "iterations, size, erasures"
            )
        seconds = float(match["seconds"])
        size = int(match["size"])
        iterations = int(match["iterations"])
        kb = int(match["kb"])
        if iterations * size != kb * 1024 or not seconds > 0:
            raise KernelError(
                f"{where}:{number}: got {kb} KB in {seconds} s from {iterations} iterations of {size} bytes, "
                "which do not agree"
            )
        case = (
            match["plugin"],
            f"rs:{match['k']},{match['m']}",
            match["workload"],
            int(match["erasures"]),
        )
        rows.append(_row(*case, size, seconds / iterations))
    if not rows:
        raise KernelError(f"{where}: got no line of results, wanted at least one")
    return rows


def _run(
    path: Path, schemes: Sequence[str], sizes_bytes: Sequence[int]
) -> list[dict[str, Any]]:
    rows = []
    for scheme, size in itertools.product(map(parse_scheme, schemes), sizes_bytes):
        iterations = max(1, math.ceil(TABLE_BYTES / 4 / size))
        for plugin, (plugin_name, parameters) in PLUGINS.items():
            for erasures in range(scheme.m + 1):
                workload = "decode" if erasures else "encode"
                command = [str(path), "--plugin", plugin_name, "--workload", workload]
                command += ["--iterations", str(iterations), "--size", str(size)]
                command += ["--erasures", str(erasures)] if erasures else []
                for key, value in {"k": scheme.k, "m": scheme.m, **parameters}.items():
                    command += ["--parameter", f"{key}={value}"]
                per_call_s = _seconds(command) / iterations
                rows.append(
                    _row(plugin, scheme.name, workload, erasures, size, per_call_s)
                )
    return rows


def _seconds(command: Sequence[str]) -> float:
    """Run the benchmark once. It prints seconds and KB."""
    try:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        return float(done.stdout.split()[0])
    except subprocess.CalledProcessError as error:
        output_lines = (error.stderr or error.stdout or "").strip().splitlines()
        raise KernelError(
            f"{command[0]}: exited with status {error.returncode}: {(output_lines or ['no message'])[-1]}"
        ) from None
    except subprocess.TimeoutExpired:
        raise KernelError(f"{command[0]}: got no answer in {_TIMEOUT_S} s") from None
    except (OSError, ValueError, IndexError) as error:
        raise KernelError(
            f"{command[0]}: wanted seconds and KB on its output ({error})"
        ) from None


def _row(
    backend: str, scheme: str, op: str, erasures: int, size_bytes: int, seconds: float
) -> dict[str, Any]:
    # The benchmark reports neither the time spent copying nor whether the results were correct.
    return row_of(
        f"ceph {backend}", scheme, op, erasures, size_bytes, [seconds], verified=None
    )


def side_by_side(
    ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Pair rows with equal scheme, operation and erasures whose sizes differ by at most a quarter.

    Parameters
    ----------
    ours, theirs
        Rows of this machine, of which only those with warm buffers on one core count, and of Ceph.

    Returns
    -------
    list of dict
        One row per pair, with both speeds [B/s] and their ratio ``ceph_over_ours``.
    """
    # The benchmark runs on one core with data in cache.
    mine = [
        row
        for row in ours
        if row.get("cores", 1) == 1 and row.get("buffers", "warm") == "warm"
    ]
    return [
        {
            **{
                key: row[key]
                for key in ("scheme", "op", "erasures", "size_bytes", "backend")
            },
            "ceph_backend": other["backend"],
            "bytes_per_s": row["bytes_per_s"],
            "ceph_bytes_per_s": other["bytes_per_s"],
            "ceph_over_ours": other["bytes_per_s"] / row["bytes_per_s"],
        }
        for other in theirs
        for row in mine
        if all(row[key] == other[key] for key in ("scheme", "op", "erasures"))
        and 0.8 < row["size_bytes"] / other["size_bytes"] < 1.25
    ]


def ceph_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of Ceph's plugins from a file like ``ceph16/kernels.csv``, jerasure's reed_sol_van first.

    Sizes include the plugin's padding: cauchy_good with packets of 3,072 bytes encodes 576 KiB for 24 KiB.

    Raises
    ------
    KernelError
        If the file cannot be read, or lacks columns or rows of Ceph's plugins.
    """
    try:
        frame = pl.read_csv(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise KernelError(f"{path}: cannot read: {first_problem(error)}") from None
    absent = [column for column in _COLUMNS if column not in frame.columns]
    if absent:
        got = f"no {', '.join(absent)}"
        wanted = ", ".join(_COLUMNS)
        raise KernelError(
            Problem(place=str(path), key="columns", got=got, wanted=wanted)
        )
    groups: dict[tuple[str, str, str, int, int], list[float]] = {}
    for raw in frame.filter(pl.col("lib") == _LIBRARY).iter_rows(named=True):
        backend = f"{raw['backend']}:{raw['technique']}"
        scheme = f"rs:{raw['k']},{raw['m']}"
        key = (backend, scheme, raw["op"], raw["erasures"], raw["k"] * raw["chunk_len"])
        groups.setdefault(key, []).append(raw["cpu_s"] / raw["iters"])
    if not groups:
        raise KernelError(f"{path}: lib: no row of {_LIBRARY}")
    rows = [
        row_of(*key, samples_s, verified=None)
        | {"seconds_p10": min(samples_s), "seconds_p90": max(samples_s)}
        for key, samples_s in groups.items()
    ]
    return sorted(rows, key=lambda row: row["backend"] != "jerasure:reed_sol_van")


def ceph_table_from(path: Path) -> KernelModel:
    """Fit the kernel table of Ceph's plugins to a file as in `ceph_rows`."""
    times_s = (
        pl.read_csv(path).filter(pl.col("lib") == _LIBRARY)["time"].cast(pl.Float64)
    )
    provenance: Mapping[str, Any] = {
        "basis": "measured",
        "command": "not stated; rows lib = ceph-16.2.15 of ceph16/kernels.csv, three rounds interleaved",
        "cpu": {"name": "not stated in the source"},
        "versions": {"ceph": "16.2.15"},
        "date": datetime.datetime.fromtimestamp(max(times_s.to_list()), tz=datetime.UTC)
        .date()
        .isoformat(),
        "note": (
            "Two sizes for each operation, so the line passes through both and its residuals say nothing; "
            "one call encodes the whole size. The copy cost was not measured."
        ),
    }
    return table_from_rows(ceph_rows(path), name=CEPH_TABLE, provenance=provenance)
