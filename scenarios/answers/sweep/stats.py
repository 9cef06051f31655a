"""Average replications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stripesim.sim.observe.intervals import student_interval

if TYPE_CHECKING:
    import polars as pl

#: Columns that distinguish the cells of a point.
CELL_COLUMNS: Final = ("scheme", "op", "pattern", "block_size_bytes")

#: Columns that are not averaged, besides the intervals of single runs, which replications replace.
_NOT_AVERAGED: Final = frozenset({"replication", "seed", "steady", "engine_wall_s"})
#: Ends of the names of an interval's columns, the last part of the name.
_INTERVAL_ENDS: Final = ("_ci_low", "_ci_high")


def aggregate(rows: pl.DataFrame, swept: Sequence[str] = ()) -> pl.DataFrame:
    r"""Average replications, cell by cell.

    Notes
    -----
    Over the n replications that hold a value,

    .. math:: \bar x \pm t_{0.975, n-1} \, s / \sqrt n \tag{1}

    with Student's t, since replications are independent (they have different seeds) and their means are
    nearly normal. The ends are null for n = 1.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"scheme": ["rep:3"] * 2, "op": "read", "pattern": "seq",
    ...     "block_size_bytes": 4096, "replication": [0, 1], "iops": [1.0, 3.0]})
    >>> aggregate(rows).select("replications", "iops", pl.col("iops_ci_low").round(3)).rows()
    [(2, 2.0, -10.706)]
    """
    # Workers of a sweep load this module, and Polars is not small.
    import polars as pl

    keys = list(dict.fromkeys([*swept, *CELL_COLUMNS]))
    numbers = _averaged(rows, keys)
    schema = _schema(rows, keys, numbers)
    columns = {
        name: rows[name].cast(dtype).to_list()
        for name, dtype in schema.items()
        if name in rows.columns and name != "refused"
    }
    if "refused" in schema:
        columns["refused"] = rows["refused"].is_not_null().cast(pl.Int64).to_list()
    numbered = rows.with_row_index("_position").group_by(keys, maintain_order=True)
    groups = numbered.agg("_position")["_position"].to_list()
    means = [_cell(columns, keys, numbers, group) for group in groups]
    return pl.DataFrame(means, schema=schema)


def _averaged(rows: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the columns whose means are meaningful."""
    not_averaged = {*keys, *_NOT_AVERAGED}
    return [
        name
        for name, dtype in rows.schema.items()
        if dtype.is_numeric()
        and name not in not_averaged
        and not name.endswith(_INTERVAL_ENDS)
    ]


def _schema(
    rows: pl.DataFrame, keys: Sequence[str], numbers: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of the means, with their types."""
    import polars as pl

    schema: dict[str, Any] = {name: rows.schema[name] for name in keys}
    schema["replications"] = pl.Int64
    for name in ("steady", "bottleneck"):
        if name in rows.columns:
            schema[name] = rows.schema[name]
    if "refused" in rows.columns:
        schema["refused"] = pl.Int64
    for name in numbers:
        schema |= dict.fromkeys((name, *_ends(name)), pl.Float64)
    return schema


def _cell(
    columns: Mapping[str, Sequence[Any]],
    keys: Sequence[str],
    numbers: Sequence[str],
    group: Sequence[int],
) -> dict[str, Any]:
    """Average the replications of one cell, which are the rows of `group`."""
    row: dict[str, Any] = {name: columns[name][group[0]] for name in keys}
    row["replications"] = len(group)
    if "steady" in columns:
        row["steady"] = all(columns["steady"][position] for position in group)
    if "refused" in columns:
        row["refused"] = sum(columns["refused"][position] for position in group)
    if "bottleneck" in columns:
        row["bottleneck"] = _commonest(columns["bottleneck"], group)
    for name in numbers:
        row |= _mean(name, columns[name], group)
    return row


def _commonest(names: Sequence[str | None], group: Sequence[int]) -> str | None:
    """List the names in a group of rows, the most frequent first."""
    present = sorted(
        name for position in group if (name := names[position]) is not None
    )
    return ", ".join(name for name, _ in Counter(present).most_common()) or None


def _mean(
    name: str, column: Sequence[float | None], group: Sequence[int]
) -> dict[str, float | None]:
    """Return the mean of a group of rows and the ends of its interval, by the names of their columns."""
    values = [value for position in group if (value := column[position]) is not None]
    if not values:
        return {}
    if len(values) == 1:
        return {name: values[0]}
    interval = student_interval(values)
    low, high = _ends(name)
    return {name: interval.mean, low: interval.low, high: interval.high}


def _ends(name: str) -> tuple[str, str]:
    """Return the names of the columns with the ends of an interval."""
    low, high = _INTERVAL_ENDS
    return name + low, name + high
