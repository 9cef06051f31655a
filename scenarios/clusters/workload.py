"""Read workloads from fio's JSON, or from a result folder of CBT (the Ceph benchmarking tool)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stripesim.models.documents import document_in
from stripesim.models.problems import MeasuredError, file_reason

_NS_PER_US = 1000.0
_FILES_MAX = 10_000
_BYTES_MAX = 64 << 20
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def import_fio(path: Path) -> list[dict[str, Any]]:
    """Read the jobs of a fio JSON file."""
    try:
        text = (
            path.read_text(encoding="utf-8-sig")
            if path.stat().st_size <= _BYTES_MAX
            else ""
        )
        document = document_in(text)
        jobs = document["jobs"]
        rows = [row for job in jobs for row in _job(document, job)]
    except OSError as error:
        raise MeasuredError(
            f"{path}: got {file_reason(error)}, wanted a readable file"
        ) from None
    except UnicodeDecodeError:
        raise MeasuredError(
            f"{path}: got a binary file, wanted the JSON of fio"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise MeasuredError(
            f"{path}: got no fio results, wanted the output of `fio --output-format=json`"
        ) from None
    if not rows:
        raise MeasuredError(
            f"{path}: jobs: got none that moved data, wanted one at least"
        )
    return rows


def import_cbt(folder: Path) -> list[dict[str, Any]]:
    """Read all fio JSON files of a CBT result folder. Each row names its file."""
    if not folder.is_dir():
        raise MeasuredError(f"{folder}: got no folder, wanted the result folder of CBT")
    files = [
        p
        for p in sorted(folder.rglob("*"))
        if re.match(r"json_output\.|.*\.json$|output\.\d", p.name)
    ]
    rows: list[dict[str, Any]] = []
    for file in files[:_FILES_MAX]:
        try:
            rows += [
                {"file": str(file.relative_to(folder)), **row}
                for row in import_fio(file)
            ]
        except MeasuredError:
            # CBT keeps other JSON in the folder, too: its configuration and outputs of ceph.
            continue
    if not rows:
        raise MeasuredError(
            f"{folder}: got no fio results in {len(files)} files, wanted json_output.*"
        )
    return rows


def _job(
    document: Mapping[str, Any], job: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    options = {**document.get("global options", {}), **job.get("job options", {})}
    pattern = (
        "rand"
        if "rand" in str(options.get("rw", options.get("readwrite", "")))
        else "seq"
    )
    sides = {op: job.get(op, {}) for op in ("read", "write")}
    moved = {
        op: side
        for op, side in sides.items()
        if side.get("total_ios", side.get("iops", 0))
    }
    rates = {op: float(side.get("iops", 0)) for op, side in moved.items()}
    for op, side in moved.items():
        ios = side.get("total_ios") or 0
        size = _size(options.get("bs", "4k"))
        if ios and side.get("io_bytes"):
            size = round(side["io_bytes"] / ios)
        workload: dict[str, Any] = {
            "patterns": [pattern],
            "block_sizes_bytes": [size],
            "queue_depth": int(options.get("iodepth", 1)),
            "clients": int(options.get("numjobs", 1)),
        }
        if len(moved) == 2:
            workload["read_fraction"] = round(rates["read"] / sum(rates.values()), 4)
        else:
            workload["ops"] = [op]
        if str(options.get("rate_iops", "")).isdigit():
            workload |= {"kind": "open", "rate_per_s": float(options["rate_iops"])}
        yield {
            "job": job.get("jobname", ""),
            "op": op,
            "workload": workload,
            "measured": _measured(side),
        }


def _size(text: object) -> int:
    size = re.match(r"(\d+)\s*([kmgt]?)", str(text).lower())
    if size is None:
        return 4096
    return int(size[1]) * _UNITS[size[2]]


def _measured(side: Mapping[str, Any]) -> dict[str, Any]:
    """Return rates, mean and 99th percentile. Older releases of fio print microseconds."""
    scales = {"lat_ns": 1.0, "clat_ns": 1.0, "lat": _NS_PER_US, "clat": _NS_PER_US}
    means = (
        side[key]["mean"] * scale
        for key, scale in scales.items()
        if side.get(key, {}).get("mean")
    )
    tails = (
        (side.get(key, {}).get("percentile", {}).get("99.000000"), scales[key])
        for key in ("clat_ns", "clat")
    )
    return {
        "iops": float(side.get("iops", 0)),
        "throughput_bytes_per_s": float(side.get("bw_bytes", side.get("bw", 0) * 1024)),
        "latency_mean_ns": next(means, None),
        "latency_p99_ns": next(
            (value * scale for value, scale in tails if value is not None), None
        ),
    }
