"""Prepare the rows of a sweep for the explorer: axes to move along, metrics to show, one cell per row.

The page itself is `page/explorer.html.j2`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import polars as pl

from stripesim.models.documents import Documented
from stripesim.scenarios.schema.units import format_size
from stripesim.scenarios.show.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    key_words,
    scheme_label,
)
from stripesim.scenarios.show.page.render import render
from stripesim.scenarios.show.quantities import COSTS, Quantity, quantity_of
from stripesim.sim.observe.limits import resource_name

#: Columns that the explorer offers, the first one selected.
METRICS: Final = (
    "throughput_bytes_per_s",
    "iops",
    "offered_iops",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    *COSTS,
)

#: Columns of a cell that are axes unless a swept key already says the same.
_CELL_AXES: Final = ("op", "pattern", "block_size_bytes")

#: Digits of a number on the page. Intervals are never narrower.
_DIGITS: Final = 5


@dataclass(frozen=True)
class ExplorerAxis(Documented):
    """A column that takes several values, and every value is a stop of its slider."""

    key: str
    name: str
    #: Values as the rows have them, in the order of the slider
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    numeric: bool

    in_document: ClassVar = ("key", "name", "texts", "numbers")

    @cached_property
    def stops(self) -> dict[str, int]:
        """Return the stop of each value. Values of different types may be equal, so texts tell them apart."""
        return {repr(value): stop for stop, value in enumerate(self.values)}

    @property
    def numbers(self) -> tuple[Any, ...] | None:
        """Values of an axis of numbers."""
        return self.values if self.numeric else None


@dataclass(frozen=True)
class Explorer:
    """Content of an explorer: what its controls offer, and the data of its script."""

    axes: tuple[ExplorerAxis, ...]
    #: Column and heading of each metric
    metrics: tuple[tuple[str, str], ...]
    data: Mapping[str, Any]


def explorer_of(
    aggregated: pl.DataFrame,
    keys: Sequence[str],
    failed: Sequence[Mapping[str, Any]] = (),
    *,
    of_objects: bool = False,
) -> Explorer | None:
    """Prepare the means of a sweep for the explorer.

    Parameters
    ----------
    aggregated
        Means and intervals, as `stripesim.scenarios.answers.sweep.stats.aggregate` returns them.
    keys
        Swept keys, columns of `aggregated`.
    failed
        Tasks without a result: the same coordinates, and ``reason``.
    of_objects
        True for requests for objects in buckets.

    Returns
    -------
    Explorer or None
        None without a row, or if nothing varies except the scheme.
    """
    metrics = [
        name
        for name in METRICS
        if name in aggregated.columns and aggregated[name].count()
    ]
    coordinates = _coordinates(aggregated, keys, failed)
    axes = _axes(coordinates, keys)
    if not metrics or not axes:
        return None
    schemes = tuple(coordinates["scheme"].unique(maintain_order=True))
    map_of_cells = _Map(schemes, axes)
    cells = aggregated.to_dicts()
    unsteady = [at for at, row in enumerate(cells) if not row.get("steady", True)]
    quantities = [quantity_of(name, of_objects=of_objects) for name in metrics]
    document = {
        "axes": [axis.to_json() for axis in axes],
        "schemes": [scheme_label(scheme) for scheme in schemes],
        "metrics": [_metric(aggregated, quantity) for quantity in quantities],
        "cells": [map_of_cells.place(row) for row in cells],
        "replications": [row["replications"] for row in cells],
        "unsteady": unsteady,
        "bottlenecks": [_bottleneck(row) for row in cells],
        "failed": [[map_of_cells.place(row), row["reason"]] for row in failed],
    }
    headings = tuple((quantity.key, quantity.heading) for quantity in quantities)
    return Explorer(axes, headings, document)


@dataclass(frozen=True)
class _Map:
    """Positions of the cells of a sweep in its grid."""

    schemes: tuple[str, ...]
    axes: tuple[ExplorerAxis, ...]

    def place(self, row: Mapping[str, Any]) -> list[int]:
        """Return the coordinates of a cell as indices: of its scheme, then along each axis."""
        along = [axis.stops[repr(row[axis.key])] for axis in self.axes]
        return [self.schemes.index(row["scheme"]), *along]


def explorer_page(
    explorer: Explorer,
    *,
    kind: str,
    title: str,
    introduction: str,
) -> str:
    """Write a self-contained page that holds only an explorer of cells within the calibrated range.

    Parameters
    ----------
    explorer
        The cells.
    kind, title, introduction
        Texts above the controls.
    """
    return render(
        "explorer_page.html.j2",
        kind=kind,
        title=title,
        introduction=introduction,
        meta=[],
        explorer=explorer,
        explorer_heading="Explore",
        outside=[],
        warnings=[],
        inside="All cells are within the range that their parameter sets were calibrated or checked on.",
    )


def _coordinates(
    aggregated: pl.DataFrame, keys: Sequence[str], failed: Sequence[Mapping[str, Any]]
) -> pl.DataFrame:
    """Return the coordinates of all cells, also of those that failed."""
    names = list(dict.fromkeys([*keys, "scheme", *_CELL_AXES]))
    known = aggregated.select(names)
    if not failed:
        return known
    more = [{name: row.get(name) for name in names} for row in failed]
    return pl.concat([known, pl.DataFrame(more, schema=known.schema)])


def _axes(coordinates: pl.DataFrame, keys: Sequence[str]) -> tuple[ExplorerAxis, ...]:
    """Choose the columns that vary. Of columns that change together, the first stays."""
    kept: list[str] = []
    for name in dict.fromkeys([*keys, *_CELL_AXES]):
        # The lines already show schemes.
        if name == "schemes" or coordinates[name].n_unique() < 2:
            continue
        if not any(_change_together(coordinates, name, one) for one in kept):
            kept.append(name)
    return tuple(_axis(name, coordinates, keys) for name in kept)


def _change_together(rows: pl.DataFrame, one: str, two: str) -> bool:
    pairs = rows.select(one, two).n_unique()
    return pairs == rows[one].n_unique() == rows[two].n_unique()


def _axis(name: str, coordinates: pl.DataFrame, keys: Sequence[str]) -> ExplorerAxis:
    column = coordinates[name]
    values = column.unique(maintain_order=True).to_list()
    numeric = column.dtype.is_numeric() and None not in values
    if numeric:
        values.sort()
    twins = [
        twin
        for twin in keys
        if twin not in (name, "schemes")
        and coordinates[twin].n_unique() > 1
        and _change_together(coordinates, name, twin)
    ]
    first_row = {
        repr(value): number for number, value in reversed([*enumerate(column)])
    }
    texts = []
    for value in values:
        number = first_row[repr(value)]
        parts = [_value_text(name, value)]
        for twin in twins:
            parts.append(
                f"{key_words(twin)} {_value_text(twin, coordinates[twin][number])}"
            )
        texts.append(", ".join(dict.fromkeys(parts)))
    return ExplorerAxis(name, key_words(name), tuple(values), tuple(texts), numeric)


def _value_text(key: str, value: Any) -> str:
    """Write a value of a swept key.

    >>> _value_text("workload.block_sizes_bytes", 65536), _value_text("cluster.hosts", 1200)
    ('64KiB', '1,200')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and key.endswith("_bytes"):
        return format_size(value)
    if isinstance(value, int | float):
        return f"{value:,.10g}"
    names = {**OP_WORDS, **PATTERN_WORDS}
    text = str(value)
    return names.get(text, text) if key in _CELL_AXES else text


def _metric(aggregated: pl.DataFrame, column: Quantity) -> dict[str, Any]:
    """Return a metric: its name, its values and the ends of its intervals in the unit of reports."""
    name = column.key
    ends = [f"{name}_ci_{end}" for end in ("low", "high")]
    known = all(end in aggregated.columns and aggregated[end].count() for end in ends)
    return {
        "key": name,
        "heading": column.heading,
        "unit": column.unit,
        "values": _numbers(aggregated[name], column.factor),
        "low": _numbers(aggregated[ends[0]], column.factor) if known else None,
        "high": _numbers(aggregated[ends[1]], column.factor) if known else None,
    }


def _numbers(column: pl.Series, factor: float) -> list[float | None]:
    shown = column.cast(pl.Float64).fill_nan(None) * factor
    return shown.round_sig_figs(_DIGITS).to_list()


def _bottleneck(row: Mapping[str, Any]) -> str:
    names = (row.get("bottleneck") or "–").split(", ")
    return ", ".join(map(resource_name, names))
