"""A sweep's means as a table of text, for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from stripesim.scenarios.run.columns import COLUMNS, Column, ci_text
from stripesim.scenarios.schema.units import format_size

#: What the abbreviations and signs of the table mean.
NOTE: Final = (
    "MB = 10⁶ bytes; latency = mean; ± half of the 95 % interval over replications; ! no steady state"
)
_CELL: Final = ("scheme", "op", "pattern")
_NUMBERS: Final = tuple(
    COLUMNS[key]
    for key in (
        "throughput_bytes_per_s",
        "latency_mean_ns",
        "latency_p99_ns",
        "private_net_bytes_per_client_byte",
    )
)


def aggregated_table(aggregated: pl.DataFrame, keys: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Write a sweep's means."""
    columns = [*keys, *_CELL, "block", *(column.short_heading for column in _NUMBERS), "bottleneck"]
    return columns, [_cells(row, keys) for row in aggregated.iter_rows(named=True)]


def _cells(row: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    size_bytes = row["block_size_bytes"]
    return [
        *(str(row[name]) for name in (*keys, *_CELL)),
        "–" if size_bytes is None else format_size(size_bytes),
        *(_mean(row, column) for column in _NUMBERS),
        f"{row.get('bottleneck') or '–'}{'' if row.get('steady', True) else ' !'}",
    ]


def _mean(row: Mapping[str, Any], column: Column) -> str:
    """Write a mean, with half of its interval where there is one."""
    ends = ci_text(row, f"{column.key}_ci_low", f"{column.key}_ci_high", column.factor)
    return column.text(row, padded=True) + (f" ±{ends}" if ends else "")
