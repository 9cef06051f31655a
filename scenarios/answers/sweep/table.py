"""Lay out the means of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from stripesim.scenarios.show.quantities import QUANTITIES, Quantity, Rows
from stripesim.scenarios.show.result_table import block_text
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.limits import resource_name

#: Abbreviations and signs of the table.
NOTE: Final = (
    "MB = 10⁶ bytes; latency = mean; ± half of the 95 % interval over replications;"
    " ! no steady state"
)
_NUMBERS: Final = tuple(
    QUANTITIES[key]
    for key in (
        "throughput_bytes_per_s",
        "latency_mean_ns",
        "latency_p99_ns",
        "private_net_bytes_per_client_byte",
    )
)
# A HEAD, LIST or DELETE has a rate, but no bytes.
_RATE_OF_OBJECTS: Final = replace(QUANTITIES["iops"], unit="1/s")


def means_table(means: Rows, keys: Sequence[str], *, of_objects: bool) -> Table:
    """Lay out the means of every point and cell.

    Parameters
    ----------
    means
        Means and intervals, as `stripesim.scenarios.answers.sweep.stats.aggregate` returns them.
    keys
        Swept keys.
    of_objects
        True for requests for objects in buckets, which are all random.
    """
    names = [*keys, "scheme", "op", *(() if of_objects else ("pattern",))]
    size = "object" if of_objects else "block"
    numbers = (_RATE_OF_OBJECTS, *_NUMBERS) if of_objects else _NUMBERS
    headings = [quantity.short_heading for quantity in numbers]
    columns = [*names, size, *headings, "bottleneck"]
    return Table(
        "Means of every point and cell",
        columns,
        [_row(row, names, numbers) for row in means],
        words=(*range(len(names) + 1), len(columns) - 1),
    )


def for_terminal(table: Table) -> Table:
    """Return a table with its units below the names, and a note."""
    columns = [name.replace(" [", "\n[") for name in table.columns]
    return replace(table, columns=columns, note=NOTE)


def value_text(value: Any) -> str:
    """Write the value of a swept key as scenarios do.

    >>> value_text(True), value_text("rep:3"), value_text(65536)
    ('true', 'rep:3', '65536')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(
    row: Mapping[str, Any], names: Sequence[str], numbers: Sequence[Quantity]
) -> list[str]:
    cells = [value_text(row[name]) for name in names]
    cells.append(block_text(row))
    for quantity in numbers:
        ends = (f"{quantity.key}_ci_low", f"{quantity.key}_ci_high")
        cells.append(quantity.padded_text(row, ends))
    return [*cells, _bottleneck(row)]


def _bottleneck(row: Mapping[str, Any]) -> str:
    """Name the bottlenecks of a mean, and mark refused rows and those without a steady state."""
    kinds = (row.get("bottleneck") or "–").split(", ")
    names = ", ".join(map(resource_name, kinds))
    if row.get("refused"):
        return f"{names} (refused: {row['refused']} of {row['replications']})"
    if not row.get("steady", True):
        return f"{names} !"
    return names
