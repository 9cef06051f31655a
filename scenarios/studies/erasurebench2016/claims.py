"""The claims of Vaucher et al. 2016: which result rows each is computed from, and how.

Notes
-----
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

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from stripesim.calibration.ledger.verdicts import Ledger, Observation, judge
from stripesim.scenarios.studies.erasurebench2016.sequences import MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import PREFIX, claims, published

Value = float | str | Observation | None
PERCENT = 100.0
NS_PER_S = 1e9
GIGABYTE = 1e9
MB_PER_GB = 1000.0
INITIAL_WRITE_S, WINDOW_S = 180, (1200, 1800)

METRIC_GROUPS: Mapping[str, str] = {
    **{
        f"{what} {name}": "storage (Table I)"
        for what in ("redis_keys", "binary_blocks", "base64_blocks")
        for name in ("10B", "bc", "httpd")
    },
    **{
        f"available_files_at_0.{share}_killed": "availability (Figure 4)"
        for share in ("05", "10", "15", "20", "25", "30", "40", "50")
    },
    **dict.fromkeys(("throughput FUSE", "throughput Direct"), "throughput (Figure 5)"),
    **{f"median_write_latency_16MiB_{n}nodes": "write latency (Figure 3)" for n in (20, 40, 60, 80, 100)},
    **dict.fromkeys(
        (
            "median-run net throughput mean",
            "median-run net throughput max",
            "duration (last sample)",
            "degraded_read_time",
            "write_slowdown",
        ),
        "httpd written and read (Figure 6)",
    ),
    **dict.fromkeys(
        (
            "peak_net_throughput_initial_write",
            "peak_net_throughput_20_30min",
            "read_bytes_after_initial_write",
            "total_initial_write_bytes",
        ),
        "replay (Figure 7)",
    ),
}

_CONFIGURATION = "part of the configuration: an input to the simulation, not a result of it"
_REPLAY = "the replay was left out of this run"
NOT_COMPUTED: Mapping[str, str] = {
    **{f"{PREFIX}{number}": _CONFIGURATION for number in (*range(291, 296), 493, 494, 495)},
    f"{PREFIX}298": "the source gives no workload for this factor",
}
REPLAYED = tuple(f"{PREFIX}{number}" for number in range(496, 504))


class Lookup:
    """Numbers from result rows, by what they are."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows

    def one(self, column: str, **where: Any) -> float:
        """The only value of a column in the rows that fit."""
        found = self._rows.filter(*(pl.col(name) == value for name, value in where.items()))
        if found.height != 1:
            raise LookupError(f"rows: {where}: got {found.height}, wanted one")
        return float(found[column][0])

    def has(self, experiment: str) -> bool:
        """Whether an experiment was run."""
        return bool((self._rows["experiment"] == experiment).any())

    def storage(self, column: str, name: str, code: str, claim_nc: float | None) -> float:
        """Keys or bytes of an archive in the store; of a code from NC's published number."""
        here = self.one(column, experiment="storage", archive=name, code="NC")
        if claim_nc is None:
            return here
        return claim_nc * self.one("storage_overhead", experiment="storage", archive=name, code=code)


def simulate_claims(rows: pl.DataFrame) -> tuple[dict[str, Value], dict[str, str]]:
    """Compute every claim from result rows.

    Parameters
    ----------
    rows : DataFrame
        Of the study.

    Returns
    -------
    values : dict
        Claim id → value; None where none is computed.
    reasons : dict
        Why, for those.
    """
    look = Lookup(rows)
    values: dict[str, Value] = dict.fromkeys(NOT_COMPUTED)
    reasons = dict(NOT_COMPUTED)
    for claim in claims():
        if claim.id in values:
            continue
        for pattern, function in _RULES:
            match = re.fullmatch(pattern, claim.metric)
            if match is not None:
                values[claim.id] = function(look, claim, match)
                break
    if not look.has("replay"):
        for key in REPLAYED:
            values[key], reasons[key] = None, _REPLAY
    return values, reasons


_NC_OF = {
    f"{what} {name}": f"{PREFIX}{first + index}"
    for name, first in (("10B", 302), ("bc", 313), ("httpd", 324))
    for index, what in enumerate(("redis_keys", "binary_blocks", "base64_blocks"))
}
_STORED = {
    "redis_keys": ("keys", 1.0),
    "binary_blocks": ("binary_bytes", 1.0 / MEGABYTE),
    "base64_blocks": ("stored_bytes", 1.0 / MEGABYTE),
}


def _storage(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    column, factor = _STORED[match[1]]
    if claim.scheme == "NC":
        return look.storage(column, match[2], "NC", None) * factor
    return look.storage(column, match[2], claim.scheme, published()[_NC_OF[claim.metric]])


def _archive(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    column, factor = {"files": ("files", 1.0), "size": ("block_size_bytes", 1.0 / MEGABYTE)}[match[1]]
    return look.one(column, experiment="storage", archive=claim.scheme, code="NC") * factor


def _overhead(look: Lookup, claim: Any, _match: re.Match[str]) -> Value:
    code = claim.scheme.partition("(")[0]
    return look.one("storage_overhead", experiment="storage", archive="10B", code=code)


def _base64(look: Lookup, _claim: Any, _match: re.Match[str]) -> Value:
    where = {"experiment": "storage", "archive": "httpd", "code": "NC"}
    return PERCENT * (look.one("stored_bytes", **where) / look.one("binary_bytes", **where) - 1)


def _megabytes(text: str) -> int:
    return int(text.removesuffix("MB")) * MEGABYTE


def _encode(look: Lookup, claim: Any, _match: re.Match[str]) -> Value:
    where = {"experiment": "encoders", "code": claim.scheme, "op": claim.op}
    if claim.op == "encode":
        where["block_size_bytes"] = _megabytes(claim.block_size)
    return look.one("throughput_bytes_per_s", **where) / MEGABYTE


def _throughput(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    size = _megabytes(claim.block_size)
    where = {"code": claim.scheme, "op": claim.op, "way": match[1], "block_size_bytes": size}
    return look.one("throughput_bytes_per_s", experiment="throughput", **where) / MEGABYTE


def _slowdown(look: Lookup, claim: Any, _match: re.Match[str]) -> Value:
    listed = []
    for code in ("LRC", "RS"):
        for way in ("FUSE", "Direct"):
            for megabytes in (4, 16, 64):
                where = {"op": claim.op, "way": way, "block_size_bytes": megabytes * MEGABYTE}
                rates = [
                    look.one("throughput_bytes_per_s", experiment="throughput", code=name, **where)
                    for name in (code, "NC")
                ]
                listed.append(PERCENT * (rates[0] / rates[1] - 1))
    return f"{max(listed):.1f} .. {min(listed):.1f}"


def _latency(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    where = {"experiment": "latency", "code": claim.scheme, "nodes": int(match[1])}
    return look.one("latency_p50_ns", **where) / NS_PER_S


def _small(look: Lookup, _claim: Any, _match: re.Match[str]) -> Value:
    return look.one("latency_p50_ns", experiment="small files") / NS_PER_S


def _duration(look: Lookup, claim: Any, _match: re.Match[str]) -> Value:
    op = "degraded read" if claim.metric == "degraded_read_time" else claim.op
    return look.one("simulated_s", experiment="traffic", code=claim.scheme, op=op)


def _httpd_slowdown(look: Lookup, _claim: Any, _match: re.Match[str]) -> Value:
    times = [look.one("simulated_s", experiment="traffic", code=code, op="write") for code in ("LRC", "RS")]
    return PERCENT * (times[0] / times[1] - 1)


def _traffic(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    column = {"mean": "mean_bin_bytes", "max": "peak_bin_bytes"}[match[1]]
    return look.one(column, experiment="traffic", code=claim.scheme, op=claim.op) / MEGABYTE


def _available(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    where = {"code": claim.scheme, "archive": claim.pattern, "killed_fraction": float(match[1])}
    return look.one("available", experiment="availability", **where)


def _replay(look: Lookup, claim: Any, match: re.Match[str]) -> Value:
    if not look.has("replay"):
        return None
    column, factor = {
        "peak_net_throughput_initial_write": ("peak_initial_bin_bytes", 1.0 / MEGABYTE),
        "peak_net_throughput_20_30min": ("peak_window_bin_bytes", 1.0 / MEGABYTE),
        "read_bytes_after_initial_write": ("read_after_bytes", 1.0 / GIGABYTE),
        "total_initial_write_bytes": ("initial_bytes", 1.0 / GIGABYTE),
    }[match[0]]
    return look.one(column, experiment="replay", code=claim.scheme) * factor


_RULES: tuple[tuple[str, Callable[[Lookup, Any, re.Match[str]], Value]], ...] = (
    (r"(redis_keys|binary_blocks|base64_blocks) (\w+)", _storage),
    (r"(files|size)", _archive),
    (r"storage_overhead", _overhead),
    (r"base64_overhead", _base64),
    (r"(?:en|de)code_throughput", _encode),
    (r"throughput (FUSE|Direct)", _throughput),
    (r"slowdown_vs_NC", _slowdown),
    (r"median_write_latency_16MiB_(\d+)nodes", _latency),
    (r"median_write_latency_httpd_100nodes", _small),
    (r"write_slowdown", _httpd_slowdown),
    (r"degraded_read_time|duration \(last sample\)", _duration),
    (r"median-run net throughput (mean|max)", _traffic),
    (r"available_files_at_([\d.]+)_killed", _available),
    (r"peak_net_throughput_\w+|read_bytes_after_initial_write|total_initial_write_bytes", _replay),
)


def ledger_for(rows: pl.DataFrame, parameters: Iterable[Mapping[str, Any]] = ()) -> Ledger:
    """Judge the study's claims."""
    values, reasons = simulate_claims(rows)
    return judge(claims(), values, reasons=reasons, parameters=parameters, groups=METRIC_GROUPS)
