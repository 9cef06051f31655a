"""Read workloads from fio's JSON, or from a result folder of CBT (the Ceph benchmarking tool)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.clusters.fio import (
    FioJob,
    check_rate,
    count,
    is_of_fio,
    latency_mean_ns,
    mean_block_bytes,
    percentile_ns,
    rate_of,
    read_fio_jobs,
)

_FILES_MAX = 10_000
_OPS = ("read", "write")
# Least share of the stated depth that a closed loop keeps in flight, as of measured rows.
_IN_FLIGHT_LEAST = 0.5
# Share of a limit from which a rate counts as limited. Below, the cluster was the limit.
_LIMIT_REACHED = 0.9


def import_fio(path: Path) -> list[dict[str, Any]]:
    """Read the jobs of a fio JSON file. The clones of a job (``numjobs``) are clients of one workload.

    Raises
    ------
    MeasuredError
        If the file is not an output of fio, a job ended with an error, or none moved data.
    """
    rows = [row for job in read_fio_jobs(path) for row in _rows_of(job)]
    if not rows:
        raise MeasuredError(
            f"{path}: jobs: got none that moved data, wanted one at least"
        )
    return rows


def import_cbt(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Read all outputs of fio in a CBT result folder.

    Returns
    -------
    rows : list
        The rows of `import_fio`. Each names its file.
    refused : list of str
        Why a file is left out, a sentence for each output of fio that has no usable result.

    Raises
    ------
    MeasuredError
        If there is no such folder, or no row in it.
    """
    if not folder.is_dir():
        raise MeasuredError(f"{folder}: got no folder, wanted the result folder of CBT")
    files = [
        p
        for p in sorted(folder.rglob("*"))
        if re.match(r"json_output\.|.*\.json$|output\.\d", p.name)
    ]
    rows: list[dict[str, Any]] = []
    refused: list[str] = []
    imported: set[Path] = set()
    for file in files[:_FILES_MAX]:
        # CBT copies the JSON of each output.N to json_output.N, which comes first here.
        if file.with_name(f"json_{file.name}") in imported:
            continue
        try:
            rows += [
                {"file": str(file.relative_to(folder)), **row}
                for row in import_fio(file)
            ]
            imported.add(file)
        except MeasuredError as error:
            # CBT keeps other JSON in the folder, too: its configuration and outputs of ceph.
            if file.name.startswith("json_output.") or is_of_fio(file):
                refused.append(f"{error}. The file is left out")
    if not rows:
        raise MeasuredError(
            f"{folder}: got no fio results in {len(files)} files, wanted json_output.*"
        )
    return rows, refused


def _rows_of(job: FioJob) -> Iterator[dict[str, Any]]:
    """Yield a row for the reads and one for the writes of a job, as far as it has them."""
    moved = job.moved
    rates = {op: rate_of(job.directions(op)) for op in moved}
    for op in moved:
        check_rate(job.path, rates[op], op)
    load, warnings = _load_of(job, rates)
    for op in moved:
        directions = job.directions(op)
        yield {
            "job": job.name,
            "op": op,
            "workload": {
                "patterns": ["rand" if "rand" in job.kind else "seq"],
                "block_sizes_bytes": [mean_block_bytes(job, op)],
                **load,
            },
            "measured": {
                "iops": rates[op],
                "throughput_bytes_per_s": sum(one.bytes_per_s for one in directions),
                "latency_mean_ns": _latency_ns(job, op),
                "latency_p99_ns": percentile_ns(directions, "99.000000"),
            },
            "warnings": warnings,
        }


def _load_of(
    job: FioJob, rates: Mapping[str, float]
) -> tuple[dict[str, Any], list[str]]:
    """Return how the requests of a job arrive, and a warning if they do not keep its depth in flight."""
    depth = job.option("iodepth", "1", count)
    load: dict[str, Any] = {"queue_depth": depth, "clients": job.clients}
    if len(rates) == len(_OPS):
        load["read_fraction"] = round(rates["read"] / sum(rates.values()), 4)
    else:
        load["ops"] = list(rates)
    asked = job.clients * depth
    in_flight = sum(
        rate * (_latency_ns(job, op) or 0) / 1e9 for op, rate in rates.items()
    )
    keeps_depth = in_flight >= _IN_FLIGHT_LEAST * asked
    limits = _limits_of(job, list(rates))
    if all(limits.values()):
        limit_per_s = sum(limits.values())
        if not keeps_depth or sum(rates.values()) >= _LIMIT_REACHED * limit_per_s:
            return load | {"kind": "open", "rate_per_s": float(limit_per_s)}, []
    if not in_flight or keeps_depth:
        return load, []
    warning = (
        f"{job.path}: {job.name}: by rate × latency, {in_flight:.2g} requests were in flight, and the "
        f"workload keeps {asked:,} (numjobs × iodepth): it paused (thinktime), part of it was limited, or "
        "its ioengine waits for each request"
    )
    return load, [warning]


def _latency_ns(job: FioJob, op: str) -> float | None:
    """Return the mean latency of the reads or writes [ns], without submission if fio has no other."""
    directions = job.directions(op)
    return latency_mean_ns(directions) or latency_mean_ns(
        directions, lambda one: one.completion_mean_ns
    )


def _limits_of(job: FioJob, ops: Sequence[str]) -> dict[str, float]:
    """Return the requests per second to which ``rate_iops`` or ``rate`` limits each operation, 0 for none.

    Each clone has a limit of its own for reads, and one for writes.
    """
    requests = job.option("rate_iops", "0", _rate_limits)
    bytes_per_s = job.option("rate", "0", _rate_limits)
    limits = {}
    for op in ops:
        stated = [
            float(requests[op]),
            bytes_per_s[op] / mean_block_bytes(job, op),
        ]
        limits[op] = job.clients * min(filter(None, stated), default=0.0)
    return limits


def _rate_limits(text: str) -> dict[str, int]:
    """Parse ``rate_iops`` or ``rate`` of reads and writes, 0 without a limit. One number applies to both."""
    first, *others = text.split(",")
    limit = _rate_limit(first)
    if not others:
        return {"read": limit, "write": limit}
    return {"read": limit, "write": _rate_limit(others[0])}


def _rate_limit(text: str) -> int:
    """Parse a rate with fio's units, which are powers of 1024 here too."""
    match = re.fullmatch(r"(\d{0,12})([kKmMgG]?)(?:i?[bB])?", text)
    if match is None:
        raise ValueError(f"got {text}, wanted a rate such as 500")
    return int(match[1] or 0) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]
