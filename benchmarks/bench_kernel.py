"""Encode speeds as ratios measured side by side: backends, kernels, copies, codes, plans.

Run: ``python benchmarks/bench_kernel.py``. It prints one JSON document of ratios. Absolute times are not
claims.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

from stripesim.blocks import (
    KernelError,
    ReedSolomon,
    Replication,
    benchmark_kernels,
    isal_available,
    malloc_effect,
    measure_codes_apart,
    measure_kernels,
)

SCHEME = "rs:6,3"
REFERENCE = "isa_l_rs_vand"
SIZES_BYTES = (24576, 1 << 20)


def kernel_ratios() -> dict[str, float]:
    """Return each backend's speed relative to the reference, and each call's time relative to its copy."""
    rows = [
        row for row in measure_kernels([SCHEME], SIZES_BYTES) if row["op"] == "encode"
    ]
    reference = {
        row["size_bytes"]: row["bytes_per_s"]
        for row in rows
        if row["backend"] == REFERENCE
    }
    ratios = {}
    for row in rows:
        key = f"{row['backend']} {SCHEME} {row['size_bytes']} B"
        ratios[f"encode speed over {REFERENCE}: {key}"] = (
            row["bytes_per_s"] / reference[row["size_bytes"]]
        )
        ratios[f"encode time over null code: {key}"] = (
            row["seconds_median"] / row["copy_seconds_median"]
        )
    return ratios


def roof_ratios() -> dict[str, float]:
    """Return the speed of kernel and pyeclib relative to a copy, cold to warm buffers, all cores to one."""
    rows = benchmark_kernels(
        [SCHEME], SIZES_BYTES, [REFERENCE, "liberasurecode_rs_vand"]
    )
    ratios = {}
    for row in rows:
        if row["op"] == "encode" and row["roofline"] is not None:
            what = f"{row['backend']} {row['size_bytes']} B, {row['buffers']} buffers"
            ratios[f"encode bytes moved over copied: {what}"] = row["roofline"]
    for size in SIZES_BYTES:
        speeds = {
            (row["buffers"], row["cores"]): row["bytes_per_s"]
            for row in rows
            if (row["backend"], row["op"], row["size_bytes"])
            == (REFERENCE, "encode", size)
        }
        one = speeds["warm", 1]
        for (buffers, cores), speed in speeds.items():
            if (buffers, cores) != ("warm", 1):
                ratios[
                    f"encode, {buffers} buffers on {cores} cores over warm on one: {REFERENCE} {size} B"
                ] = speed / one
    return ratios


def code_ratios() -> dict[str, float]:
    """Return times of plain codes relative to ISA-L's AVX2 Cauchy code, stripes of 4 + 2 blocks of 1 KiB."""
    ratios = measure_codes_apart()["ratio"]
    return {
        f"encode time over AVX2:CRS: {code}": ratio for code, ratio in ratios.items()
    }


def allocator_ratio() -> dict[str, float]:
    """Return the encode speed with raised malloc thresholds relative to glibc's defaults."""
    effect = malloc_effect()
    ratio = effect["raised_bytes_per_s"] / effect["default_bytes_per_s"]
    return {"encode speed, malloc thresholds raised over default: rs:6,2 1 MiB": ratio}


def plan_ratio(plans: int = 2000, rounds: int = 7) -> dict[str, float]:
    """Return the time to plan a small Reed-Solomon write relative to a replicated one."""
    coded = ReedSolomon(k=6, m=3)
    copied = Replication(copies=3)
    coded_geometry = coded.geometry(4096)
    copied_geometry = copied.geometry(4096)

    def plan_coded(offset_bytes: int) -> None:
        coded.plan_write(
            offset_bytes=offset_bytes,
            length_bytes=4096,
            object_size_bytes=1 << 22,
            geometry=coded_geometry,
        )

    def plan_copied(offset_bytes: int) -> None:
        copied.plan_write(
            offset_bytes=offset_bytes,
            length_bytes=4096,
            object_size_bytes=1 << 22,
            geometry=copied_geometry,
        )

    ratios = [
        _seconds(plan_coded, plans) / _seconds(plan_copied, plans)
        for _ in range(rounds)
    ]
    return {"time to plan a 4 KiB write, rs:6,3 over rep:3": statistics.median(ratios)}


def _seconds(plan: Callable[[int], None], plans: int) -> float:
    start = time.perf_counter()
    for index in range(plans):
        plan(4096 * index % (1 << 22))
    return time.perf_counter() - start


def main() -> int:
    """Measure and print. Without pyeclib, compare the plans only, and state so in the document."""
    ratios: dict[str, float] = plan_ratio()
    document: dict[str, object] = {"ratios": ratios}
    try:
        # The allocator first, because it uses separate interpreters and the kernels use this one.
        ratios |= allocator_ratio()
        ratios |= kernel_ratios()
        if isal_available():
            ratios |= roof_ratios()
            ratios |= code_ratios()
    except KernelError as error:
        document["left_out"] = str(error)
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
