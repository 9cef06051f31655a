"""The columns of a result row, described once for the terminal, reports, figures, CSV and the reference.

`number_text` is how all of them write a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

import polars as pl

_MB: Final = 1e-6
_MS: Final = 1e-6
_PER_BYTE: Final = "B/B"


def number_text(value: float | None, factor: float = 1.0, *, digits: int = 3, padded: bool = False) -> str:
    """Write a number with three significant digits, without exponents; a dash where there is none.

    Examples
    --------
    >>> number_text(0.012345), number_text(36.84e6, 1e-6), number_text(1234.4), number_text(None)
    ('0.0123', '36.8', '1,234', '–')
    >>> number_text(5), number_text(5, padded=True), number_text(0.1234, digits=2)
    ('5', '5.00', '0.12')
    """
    if value is None or not math.isfinite(value):
        return "–"
    scaled = value * factor
    if abs(scaled) >= 10**digits:
        return f"{scaled:,.0f}"
    rounded = float(f"{scaled:.{digits}g}")
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text if padded or "." not in text else text.rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Column:
    """A column of the result rows.

    key: its name in the rows; units are part of it; dtype: type of its values; meaning: what it says, for the
    reference; words: what a report calls it; empty: not shown there; short: what a narrow table calls it;
    empty: as `words`; unit: in which it is shown; factor: from the unit of the column to the one shown;
    better: whether less or more of it is better; ci: columns with the ends of its confidence interval.
    """

    key: str
    dtype: type[pl.DataType]
    meaning: str
    words: str = ""
    short: str = ""
    unit: str = ""
    factor: float = 1.0
    better: Literal["less", "more"] = "less"
    ci: tuple[str, str] | None = None

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.words} [{self.unit}]" if self.unit else self.words

    @property
    def short_heading(self) -> str:
        """Name and unit for a narrow table."""
        return f"{self.short or self.words} [{self.unit}]" if self.unit else self.short or self.words

    def text(self, row: Mapping[str, Any], *, padded: bool = False) -> str:
        """Write the value of a row, in the unit shown."""
        return number_text(row.get(self.key), self.factor, padded=padded)


def ci_text(row: Mapping[str, Any], low: str, high: str, factor: float, *, digits: int = 2) -> str:
    """Write half the width of a confidence interval; nothing where there is none."""
    ends = row.get(low), row.get(high)
    if ends[0] is None or ends[1] is None:
        return ""
    return number_text((ends[1] - ends[0]) / 2, factor, digits=digits, padded=True)


_LISTED: Final = (
    Column("scheme", pl.String, "redundancy scheme", "scheme"),
    Column("op", pl.String, "`read`, `write`, `mixed` (a read fraction), or `trace`", "op"),
    Column("pattern", pl.String, "`seq`, `rand`, or `trace`", "pattern"),
    Column("block_size_bytes", pl.Int64, "bytes of one client request; null where a trace decides", "block"),
    Column("requests", pl.Int64, "client requests completed"),
    Column(
        "iops",
        pl.Float64,
        "requests completed per simulated second, in the steady window",
        "rate",
        unit="IOPS",
        better="more",
    ),
    Column(
        "offered_iops",
        pl.Float64,
        "requests that arrived per simulated second, of an open loop or a trace; null for a closed loop",
        "offered",
        unit="IOPS",
        better="more",
    ),
    Column(
        "saturated",
        pl.Boolean,
        "whether an open loop is served less than 97 % of what arrives, and the rest piles up",
    ),
    Column(
        "throughput_bytes_per_s",
        pl.Float64,
        "client bytes per simulated second, in the steady window",
        "throughput",
        unit="MB/s",
        factor=_MB,
        better="more",
        ci=("throughput_ci_low", "throughput_ci_high"),
    ),
    Column(
        "throughput_ci_low", pl.Float64, "lower end of the 95 % interval of throughput [B/s], by batch means"
    ),
    Column("throughput_ci_high", pl.Float64, "its upper end [B/s]"),
    Column(
        "latency_mean_ns",
        pl.Float64,
        "mean time from a request's issue to its completion, in the steady window",
        "latency, mean",
        "latency",
        "ms",
        _MS,
        ci=("latency_ci_low", "latency_ci_high"),
    ),
    Column(
        "latency_ci_low",
        pl.Float64,
        "lower end of the 95 % interval of the mean latency [ns], by batch means",
    ),
    Column("latency_ci_high", pl.Float64, "its upper end [ns]"),
    Column("latency_p50_ns", pl.Float64, "median latency", "latency, median", "p50", "ms", _MS),
    Column(
        "latency_p95_ns",
        pl.Float64,
        "95th percentile of latency",
        "latency, 95th percentile",
        "p95",
        "ms",
        _MS,
    ),
    Column(
        "latency_p99_ns",
        pl.Float64,
        "99th percentile of latency",
        "latency, 99th percentile",
        "p99",
        "ms",
        _MS,
    ),
    Column(
        "latency_max_ns", pl.Float64, "largest latency in the window", "latency, largest", "max", "ms", _MS
    ),
    Column(
        "device_read_bytes_per_client_byte",
        pl.Float64,
        "bytes that all devices read, over the client's bytes, whole run",
        "read from drives",
        "dev. read",
        _PER_BYTE,
    ),
    Column(
        "device_write_bytes_per_client_byte",
        pl.Float64,
        "bytes that all devices write, log and metadata included",
        "written to drives",
        "dev. write",
        _PER_BYTE,
    ),
    Column("device_data_write_bytes_per_client_byte", pl.Float64, "the same without log and metadata"),
    Column(
        "private_net_bytes_per_client_byte",
        pl.Float64,
        "bytes between storage hosts, TCP and IP headers included",
        "private network",
        "priv. net",
        _PER_BYTE,
    ),
    Column(
        "public_net_bytes_per_client_byte",
        pl.Float64,
        "bytes between client and hosts, headers included",
        "public network",
        "publ. net",
        _PER_BYTE,
    ),
    Column(
        "cpu_ns_per_op",
        pl.Float64,
        "processor time of all storage hosts for one client request",
        "CPU time of the hosts",
        "CPU",
        "µs/op",
        1e-3,
    ),
    Column(
        "cpu_utilisation",
        pl.Float64,
        "that time at the measured rate, over all cores of all hosts, 0 to 1",
        "CPU of the hosts in use",
        "CPU",
        "%",
        100.0,
    ),
    Column(
        "context_switches_per_op",
        pl.Float64,
        "hand-offs between threads for one request, times switches per hand-off",
        "context switches",
        "switches",
        "1/op",
    ),
    Column(
        "bottleneck",
        pl.String,
        "class of resources that limits the run: at least 70 % busy on average, or the lock of a "
        "placement group that requests stand in line for most of their time; `none`",
        "bottleneck",
    ),
    Column("bottleneck_utilisation", pl.Float64, "utilisation of the busiest member of that class, 0 to 1"),
    Column("bottleneck_mean_utilisation", pl.Float64, "mean utilisation of that class, 0 to 1"),
    Column("bottleneck_wait_fraction", pl.Float64, "its share of all waiting for resources, 0 to 1"),
    Column(
        "limits",
        pl.String,
        "classes of resources at least 70 % busy, the busiest first, each with mean and highest utilisation "
        "(a list in JSON); a hot spot is one of which only some members are",
    ),
    Column(
        "steady_state_start_s",
        pl.Float64,
        "end of the transient of a closed loop by MSER-5 [s]; 0 under faults, for traces and open loops",
    ),
    Column("window_start_s", pl.Float64, "start of the part of the run that is measured [s]"),
    Column("window_end_s", pl.Float64, "end of that part [s]"),
    Column("simulated_s", pl.Float64, "simulated time of the whole run"),
    Column(
        "engine_wall_s",
        pl.Float64,
        "real time inside the engine; the one column that differs from run to run",
    ),
)

#: Every column of a result row by its key, in the order of the rows.
COLUMNS: Final[Mapping[str, Column]] = MappingProxyType({column.key: column for column in _LISTED})
