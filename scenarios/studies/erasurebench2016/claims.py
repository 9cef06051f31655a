"""The claims of Vaucher et al. 2016: which result rows each is computed from, and how.

Decisions on the source's words, made once:

1. MB are 10⁶ bytes, MiB 2²⁰.
2. Table I: NC's keys and bytes come from planning the extraction of an archive of that many files and bytes.
   Those of RS and LRC are NC's *published* ones times n/k, for every write makes a row of n keys, all alike.
3. An availability is the mean over seeded repetitions of placements and kills.
4. The traffic of Figures 6 and 7 is plotted in bytes per sampling interval, 5 s and 20 s, and labelled MB/s.
   In the data of Figure 7 RS's writes up to minute 3 add up to 250 MB, which is what Table I says RS stores
   of this archive (247.79 MB); taken for rates over 20 s they would be 5 GB. The published scripts that made
   both figures print sums over intervals, never divided. ``claims.csv`` gives these rows the unit that the
   sums prove, and sums over intervals are what is compared.
5. A duration is that of the run; the source's is the last of its samples, 5 s apart.
6. Slow-downs of one code against another are ratios of durations.
"""

import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Claim, Simulated
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import PREFIX, STUDY, value_of
from stripesim.scenarios.studies.lookup import (
    CONFIGURATION,
    claims_of,
    groups_by_metric,
    number,
)

PERCENT = 100.0
NS_PER_S = 1e9
GIGABYTE = 1e9

METRIC_GROUPS: Mapping[str, str] = groups_by_metric(
    {
        "storage (Table I)": [
            f"{what} {name}"
            for what in ("redis_keys", "binary_blocks", "base64_blocks")
            for name in ARCHIVES
        ],
        "availability (Figure 4)": [
            f"available_files_at_0.{share}_killed"
            for share in ("05", "10", "15", "20", "25", "30", "40", "50")
        ],
        "throughput (Figure 5)": ("throughput FUSE", "throughput Direct"),
        "write latency (Figure 3)": [
            f"median_write_latency_16MiB_{n}nodes" for n in (20, 40, 60, 80, 100)
        ],
        "httpd written and read (Figure 6)": (
            "median-run net throughput mean",
            "median-run net throughput max",
            "duration (last sample)",
            "degraded_read_time",
            "write_slowdown",
        ),
        "replay (Figure 7)": (
            "peak_net_throughput_initial_write",
            "peak_net_throughput_20_30min",
            "read_bytes_after_initial_write",
            "total_initial_write_bytes",
        ),
    }
)

NOT_COMPUTED: Mapping[str, str] = {
    **{
        f"{PREFIX}{claim}": CONFIGURATION for claim in (*range(291, 296), 493, 494, 495)
    },
    f"{PREFIX}298": "the source gives no workload for this factor",
}
REPLAYED = tuple(f"{PREFIX}{claim}" for claim in range(496, 504))
_REPLAY = "the replay was left out of this run"

#: The only value of a column in the rows of an experiment that fit.
Value = Callable[..., float]


def _bytes(claim: Claim) -> int:
    return int(claim.block_size.removesuffix("MB")) * MEGABYTE


# What Table I counts of an archive: column, unit, and the claim of the first archive's number without code.
_STORED = {
    "redis_keys": ("keys", 1, 302),
    "binary_blocks": ("binary_bytes", MEGABYTE, 303),
    "base64_blocks": ("stored_bytes", MEGABYTE, 304),
}
# Metric → experiment, column and unit of those claims that are looked up by code and operation, or by code.
_BY_CODE_AND_OP = {
    "duration (last sample)": ("traffic", "simulated_s", 1),
    "median-run net throughput mean": ("traffic", "mean_bin_bytes", MEGABYTE),
    "median-run net throughput max": ("traffic", "peak_bin_bytes", MEGABYTE),
}
_BY_CODE = {
    "peak_net_throughput_initial_write": ("replay", "peak_initial_bin_bytes", MEGABYTE),
    "peak_net_throughput_20_30min": ("replay", "peak_window_bin_bytes", MEGABYTE),
    "read_bytes_after_initial_write": ("replay", "read_after_bytes", GIGABYTE),
    "total_initial_write_bytes": ("replay", "initial_bytes", GIGABYTE),
}


def _storage(value: Value, claim: Claim, match: re.Match[str]) -> float:
    """Keys or bytes of an archive in the store; those of a code from the published number without one."""
    column, unit, first = _STORED[match[1]]
    if claim.scheme == "NC":
        return value("storage", column, archive=match[2], code="NC") / unit
    overhead = value("storage", "storage_overhead", archive=match[2], code=claim.scheme)
    return value_of(first + 11 * ARCHIVES.index(match[2])) * overhead


def _encoder(value: Value, claim: Claim, _: re.Match[str]) -> float:
    size = {"block_size_bytes": _bytes(claim)} if claim.op == "encode" else {}
    found = value(
        "encoders", "throughput_bytes_per_s", code=claim.scheme, op=claim.op, **size
    )
    return found / MEGABYTE


def _throughput(value: Value, claim: Claim, match: re.Match[str]) -> float:
    where = {
        "code": claim.scheme,
        "op": claim.op,
        "way": match[1],
        "block_size_bytes": _bytes(claim),
    }
    return value("throughput", "throughput_bytes_per_s", **where) / MEGABYTE


def _slowdown(value: Value, claim: Claim, _: re.Match[str]) -> str:
    """Least and most that a code slows a file down, over all sizes and both ways [%]."""
    changes = []
    for code, way, megabytes in product(("LRC", "RS"), ("FUSE", "Direct"), (4, 16, 64)):
        where = {"op": claim.op, "way": way, "block_size_bytes": megabytes * MEGABYTE}
        rates = [
            value("throughput", "throughput_bytes_per_s", code=name, **where)
            for name in (code, "NC")
        ]
        changes.append(PERCENT * (rates[0] / rates[1] - 1))
    return f"{max(changes):.1f} .. {min(changes):.1f}"


def _base64(value: Value, *_: Any) -> float:
    sizes = [
        value("storage", f"{kind}_bytes", archive="httpd", code="NC")
        for kind in ("stored", "binary")
    ]
    return PERCENT * (sizes[0] / sizes[1] - 1)


def _httpd_slowdown(value: Value, *_: Any) -> float:
    lrc, rs = (
        value("traffic", "simulated_s", code=code, op="write") for code in ("LRC", "RS")
    )
    return PERCENT * (lrc / rs - 1)


def _available(value: Value, claim: Claim, match: re.Match[str]) -> float:
    where = {
        "code": claim.scheme,
        "archive": claim.pattern,
        "killed_fraction": float(match[1]),
    }
    return value("availability", "available", **where)


def _tabled(value: Value, claim: Claim, _: re.Match[str]) -> float:
    experiment, column, unit = (_BY_CODE | _BY_CODE_AND_OP)[claim.metric]
    where = {} if claim.metric in _BY_CODE else {"op": claim.op}
    return value(experiment, column, code=claim.scheme, **where) / unit


RULES: Mapping[str, Callable[[Value, Claim, re.Match[str]], Simulated]] = {
    r"(redis_keys|binary_blocks|base64_blocks) (\w+)": _storage,
    "files": lambda value, claim, _: value(
        "storage", "files", archive=claim.scheme, code="NC"
    ),
    "size": lambda value, claim, _: (
        value("storage", "block_size_bytes", archive=claim.scheme, code="NC") / MEGABYTE
    ),
    "storage_overhead": lambda value, claim, _: value(
        "storage",
        "storage_overhead",
        archive="10B",
        code=claim.scheme.partition("(")[0],
    ),
    "base64_overhead": _base64,
    "(?:en|de)code_throughput": _encoder,
    "throughput (FUSE|Direct)": _throughput,
    "slowdown_vs_NC": _slowdown,
    r"median_write_latency_16MiB_(\d+)nodes": lambda value, claim, match: (
        value("latency", "latency_p50_ns", code=claim.scheme, nodes=int(match[1]))
        / NS_PER_S
    ),
    "median_write_latency_httpd_100nodes": lambda value, *_: (
        value("small files", "latency_p50_ns") / NS_PER_S
    ),
    "write_slowdown": _httpd_slowdown,
    "degraded_read_time": lambda value, claim, _: value(
        "traffic", "simulated_s", code=claim.scheme, op="degraded read"
    ),
    r"available_files_at_([\d.]+)_killed": _available,
    "|".join(map(re.escape, _BY_CODE | _BY_CODE_AND_OP)): _tabled,
}
"""Metric of a claim → its simulated value, from result rows."""


def simulate_claims(rows: pl.DataFrame) -> tuple[dict[str, Simulated], dict[str, str]]:
    """Compute every claim from the study's result rows; return values and reasons where there is none."""
    reasons = dict(NOT_COMPUTED)
    if not (rows["experiment"] == "replay").any():
        reasons |= dict.fromkeys(REPLAYED, _REPLAY)
    values: dict[str, Simulated] = {}

    def value(experiment: str, column: str, **where: Any) -> float:
        return number(rows, column, experiment=experiment, **where)

    for claim in claims_of(STUDY):
        for pattern, rule in RULES.items():
            match = re.fullmatch(pattern, claim.metric)
            if match is not None and claim.id not in reasons:
                values[claim.id] = rule(value, claim, match)
    return values, reasons
