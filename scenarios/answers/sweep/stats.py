"""Average replications, and decide if the means can be drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.units import counted_text
from stripesim.scenarios.show.quantities import QUANTITIES, Rows
from stripesim.sim.observe.intervals import student_interval

if TYPE_CHECKING:
    import polars as pl

#: Columns that distinguish the cells of a point.
CELL_COLUMNS: Final = Cell._fields
#: Swept keys that already are columns of result rows.
CELL_KEYS: Final = ("workload.ops", "workload.patterns", "workload.block_sizes_bytes")

#: Columns that are not averaged, besides the intervals of single runs, which replications replace.
_NOT_AVERAGED: Final = frozenset({"replication", "seed", "steady", "engine_wall_s"})
#: Ends of the names of an interval's columns, the last part of the name.
_INTERVAL_ENDS: Final = ("_ci_low", "_ci_high")


def aggregate(rows: Rows, swept: Sequence[str] = ()) -> list[dict[str, Any]]:
    r"""Average replications, cell by cell.

    Parameters
    ----------
    rows
        Rows with the same columns.
    swept
        Keys that distinguish points.

    Notes
    -----
    Over the n replications that hold a value,

    .. math:: \bar x \pm t_{0.975, n-1} \, s / \sqrt n \tag{1}

    with Student's t, since replications are independent (they have different seeds) and their means are
    nearly normal. The ends are None for n = 1.

    >>> cell = {"scheme": "rep:3", "op": "read", "pattern": "seq", "block_size_bytes": 4096}
    >>> means = aggregate([{**cell, "iops": 1.0}, {**cell, "iops": 3.0}])
    >>> [(mean["replications"], mean["iops"], round(mean["iops_ci_high"], 3)) for mean in means]
    [(2, 2.0, 14.706)]
    >>> means[0]["iops_ci_low"]  # 2.0 - 12.706, but no rate is negative
    0.0
    """
    keys = _keys(swept)
    numbers = _averaged(rows, keys)
    return [_cell(group, keys, numbers) for group in grouped(rows, keys).values()]


def grouped(
    rows: Rows, names: Sequence[str]
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return rows by their values in some columns, in the order of their first row."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def mean_columns(rows: Rows, swept: Sequence[str] = ()) -> dict[str, type]:
    """Return the columns of the means of rows, with the types of their values."""
    keys = _keys(swept)
    columns = {name: _kind(rows, name) for name in keys}
    columns["replications"] = int
    for name, kind in (("steady", bool), ("bottleneck", str), ("refused", int)):
        if name in _names(rows):
            columns[name] = kind
    for name in _averaged(rows, keys):
        columns |= dict.fromkeys((name, *_ends(name)), float)
    return columns


def _keys(swept: Sequence[str]) -> list[str]:
    """Return the columns whose values distinguish means."""
    return list(dict.fromkeys([*swept, *CELL_COLUMNS]))


def _names(rows: Rows) -> Sequence[str]:
    """Return the columns of rows."""
    return list(rows[0]) if rows else list(QUANTITIES)


def _kind(rows: Rows, name: str) -> type:
    """Return the type of a column: that of its quantity, or else of its first value."""
    if name in QUANTITIES:
        return QUANTITIES[name].kind
    values = (row[name] for row in rows)
    return next((type(value) for value in values if value is not None), object)


def _averaged(rows: Rows, keys: Sequence[str]) -> list[str]:
    """Return the columns whose means are meaningful."""
    not_averaged = {*keys, *_NOT_AVERAGED}
    return [
        name
        for name in _names(rows)
        if name not in not_averaged
        and not name.endswith(_INTERVAL_ENDS)
        and _kind(rows, name) in (int, float)
    ]


def _cell(group: Rows, keys: Sequence[str], numbers: Sequence[str]) -> dict[str, Any]:
    """Average the replications of one cell."""
    first = group[0]
    row: dict[str, Any] = {name: first[name] for name in keys}
    row["replications"] = len(group)
    if "steady" in first:
        row["steady"] = all(one["steady"] for one in group)
    if "bottleneck" in first:
        row["bottleneck"] = _commonest([one["bottleneck"] for one in group])
    if "refused" in first:
        row["refused"] = sum(one["refused"] is not None for one in group)
    for name in numbers:
        row |= _mean(name, [one[name] for one in group])
    return row


def _commonest(names: Sequence[str | None]) -> str | None:
    """List names, the most frequent first."""
    present = sorted(name for name in names if name is not None)
    return ", ".join(name for name, _ in Counter(present).most_common()) or None


def _mean(name: str, column: Sequence[float | None]) -> dict[str, float | None]:
    """Return the mean of a column and the ends of its interval, by the names of their columns."""
    low, high = _ends(name)
    mean: dict[str, float | None] = dict.fromkeys((name, low, high))
    values = [float(value) for value in column if value is not None]
    if len(values) == 1:
        mean[name] = values[0]
    elif values:
        interval = student_interval(values)
        mean |= {name: interval.mean, low: interval.low, high: interval.high}
        if interval.low is not None and min(values) >= 0:
            # Few replications that differ much would reach below 0, where no rate or latency is.
            mean[low] = max(0.0, interval.low)
    return mean


def _ends(name: str) -> tuple[str, str]:
    """Return the names of the columns with the ends of an interval."""
    low, high = _INTERVAL_ENDS
    return name + low, name + high


def why_no_figure(
    aggregated: pl.DataFrame, keys: Sequence[str], metric: str
) -> str | None:
    """Return why means cannot be drawn against the first swept key, or None if they can."""
    if not keys:
        return "no key is swept (--over KEY=V,V)"
    first = keys[0]
    if not _is_axis(aggregated, first):
        return f"{first} is no axis: sweep another key first"
    values = aggregated.filter(aggregated[metric].is_not_null())[first].n_unique()
    if values < 2:
        return f"{counted_text(values, 'value')} of {first}, wanted 2 or more"
    return None


def _is_axis(aggregated: pl.DataFrame, key: str) -> bool:
    """Return True if a key has numbers, or other values that no line or panel stands for."""
    import polars as pl

    dtype = aggregated.schema.get(key, pl.Null())
    if dtype.is_numeric():
        return True
    return dtype in (pl.String, pl.Boolean) and key not in ("schemes", *CELL_KEYS)
