"""Read workloads from fio's JSON, or from a result folder of CBT (the Ceph benchmarking tool)."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.clusters.fio import (
    FioDirection,
    FioJob,
    block_bytes,
    check_rate,
    count,
    is_of_fio,
    latency_mean_ns,
    percentile_ns,
    rate_of,
    read_fio_jobs,
)

_FILES_MAX = 10_000
_OPS = ("read", "write")


def import_fio(path: Path) -> list[dict[str, Any]]:
    """Read the jobs of a fio JSON file. The clones of a job (``numjobs``) are clients of one workload.

    Raises
    ------
    MeasuredError
        If the file is no output of fio, a job ended with an error, or none moved data.
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
    for file in files[:_FILES_MAX]:
        try:
            rows += [
                {"file": str(file.relative_to(folder)), **row}
                for row in import_fio(file)
            ]
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
    moved = [op for op in _OPS if any(entry.has_moved for entry in job.directions(op))]
    rates = {op: rate_of(job.directions(op)) for op in moved}
    for op in moved:
        directions = job.directions(op)
        check_rate(job.path, rates[op], op)
        workload: dict[str, Any] = {
            "patterns": [_pattern(job)],
            "block_sizes_bytes": [_block_bytes(job, directions)],
            "queue_depth": job.option("iodepth", "1", count),
            "clients": job.clients,
        }
        if len(moved) == len(_OPS):
            workload["read_fraction"] = round(rates["read"] / sum(rates.values()), 4)
        else:
            workload["ops"] = [op]
        limits = job.option("rate_iops", "0", _rate_limits)
        # Each clone has a limit of its own for reads, and one for writes.
        limit_per_s = job.clients * sum(limits[op] for op in moved)
        if all(limits[op] for op in moved):
            workload |= {"kind": "open", "rate_per_s": float(limit_per_s)}
        yield {
            "job": job.name,
            "op": op,
            "workload": workload,
            "measured": {
                "iops": rates[op],
                "throughput_bytes_per_s": sum(one.bytes_per_s for one in directions),
                "latency_mean_ns": latency_mean_ns(directions)
                or latency_mean_ns(directions, lambda one: one.completion_mean_ns),
                "latency_p99_ns": percentile_ns(directions, "99.000000"),
            },
        }


def _pattern(job: FioJob) -> str:
    kind = str(job.options.get("rw", job.options.get("readwrite", "")))
    return "rand" if "rand" in kind else "seq"


def _block_bytes(job: FioJob, directions: Sequence[FioDirection]) -> int:
    """Return the mean size of the requests [B], by the options if fio did not count them."""
    requests = sum(direction.total_ios or 0 for direction in directions)
    moved_bytes = sum(direction.moved_bytes for direction in directions)
    if requests and moved_bytes:
        return round(moved_bytes / requests)
    return job.option("bs", "4k", block_bytes)


def _rate_limits(text: str) -> dict[str, int]:
    """Parse ``rate_iops`` of reads and writes [1/s], 0 without a limit. One number applies to both."""
    first, *others = text.split(",")
    limit = _rate_limit(first)
    if not others:
        return {"read": limit, "write": limit}
    return {"read": limit, "write": _rate_limit(others[0])}


def _rate_limit(text: str) -> int:
    """Parse a rate with fio's units, which are powers of 1024 here too."""
    match = re.fullmatch(r"(\d{0,12})([kKmM]?)", text)
    if match is None:
        raise ValueError(f"got {text}, wanted requests per second such as 500")
    return int(match[1] or 0) << {"": 0, "k": 10, "m": 20}[match[2].lower()]
