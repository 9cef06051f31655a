"""Draw the figure of a sweep: throughput, or another quantity, against the first swept key."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.answers.sweep.stats import (
    CELL_COLUMNS,
    CELL_KEYS,
    why_no_figure,
)
from stripesim.scenarios.answers.sweep.table import value_text
from stripesim.scenarios.schema.units import size_text
from stripesim.scenarios.show.figures.captions import (
    OP_WORDS,
    PATTERN_WORDS,
    ShownQuantity,
    block_sizes,
    key_words,
    kind_words,
    scheme_label,
    size_name,
)
from stripesim.scenarios.show.figures.panels import (
    THROUGHPUT,
    main_quantity,
    quantity_shown,
    whiskers,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    LINES,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    on_one_scale,
    series_style,
)
from stripesim.scenarios.show.quantities import check_columns, has_objects

#: Most schemes and most combinations of other values in a figure: one for each colour and style of line.
_SCHEMES_MAX: Final = len(COLOURS)
#: Colour of the legend of line styles.
_GREY: Final = "#555555"

#: Factor between the largest and smallest value above which the axis of the swept key is logarithmic.
_LOG_SPAN: Final = 10.0

#: Up to this many values, the axis has ticks at exactly the values that were run.
_TICKS_MAX: Final = 8


class _Lines(NamedTuple):
    """Styles that tell lines apart: schemes by colour and mark, other values by the style of the line."""

    schemes: Sequence[str]
    #: Values of further keys, one mapping for each style
    combinations: Sequence[Mapping[str, Any]]
    #: Texts of schemes and values without a line
    left_out: Sequence[str]


def draw_sweep(
    aggregated: pl.DataFrame,
    keys: Sequence[str],
    *,
    metric: str = THROUGHPUT.metric,
    of_objects: bool = False,
) -> CaptionedFigure | None:
    """Draw a quantity against the first swept key, in one panel per pattern and op.

    Parameters
    ----------
    aggregated
        Means and intervals over replications, `SweepResult.aggregated`.
    keys
        Swept keys, as ``over`` names them.
    metric
        Column of the quantity, such as ``latency_p99_ns``.
    of_objects
        True for requests for objects in buckets. Only those of mixed operations have to be stated.

    Returns
    -------
    CaptionedFigure or None
        None if the means cannot be drawn, see `stripesim.scenarios.answers.sweep.stats.why_no_figure`.

    Raises
    ------
    AnswerError
        If the rows have no such quantity or key, or are no means of a sweep.
    """
    needed = (*CELL_COLUMNS, "replications")
    check_columns(aggregated, needed, key="aggregated", wanted="SweepResult.aggregated")
    unknown = {*keys} - {*aggregated.columns, "schemes", *CELL_KEYS}
    if unknown:
        got = ", ".join(sorted(unknown))
        raise AnswerError(
            Problem(key="keys", got=got, wanted="swept keys, columns of the rows")
        )
    spec = sweep_figure(aggregated, keys, metric=metric, of_objects=of_objects)
    return None if spec is None else drawn(spec)


def sweep_figure(
    aggregated: pl.DataFrame,
    keys: Sequence[str],
    *,
    metric: str = THROUGHPUT.metric,
    of_objects: bool = False,
) -> FigureSpec | None:
    """Specify the figure of `draw_sweep`."""
    of_objects = of_objects or has_objects(aggregated["op"].to_list())
    if metric == THROUGHPUT.metric:
        metric = main_quantity(aggregated).metric
    quantity = quantity_shown(metric, aggregated.columns, of_objects=of_objects)
    if why_no_figure(aggregated, keys, metric) is not None:
        return None
    x = keys[0]
    shown = aggregated.filter(pl.col(metric).is_not_null())
    lines = _lines(shown, keys)
    simulated = set(shown.select("op", "pattern").iter_rows())
    known = itertools.product((*OP_WORDS, "trace"), (*PATTERN_WORDS, "mixed", "trace"))
    size = _size_text(shown)
    of_size = f", {size}" if size else ""
    panels = [
        _panel(
            shown.filter((pl.col("op") == op) & (pl.col("pattern") == pattern)),
            _FigureAxis(x, _categories(shown, x)),
            quantity,
            lines,
            kind_words(op, pattern) + of_size,
        )
        for op, pattern in known
        if (op, pattern) in simulated
    ]
    columns = min(2, len(panels))
    return FigureSpec(
        size=(5.75 * columns, 0.8 + 3.6 * -(-len(panels) // columns)),
        panels=on_one_scale(panels),
        columns=columns,
        caption=_caption(shown, x, quantity, lines.left_out),
    )


def _size_text(shown: pl.DataFrame) -> str:
    """Return the size of all requests, or nothing if they have several or none."""
    sizes = block_sizes(shown)
    return size_text(sizes[0]) if len(sizes) == 1 else ""


def _lines(shown: pl.DataFrame, keys: Sequence[str]) -> _Lines:
    """Choose the lines of each panel, as many as there are colours and styles."""
    left_out: list[str] = []
    schemes = shown["scheme"].unique(maintain_order=True).to_list()
    if len(schemes) > _SCHEMES_MAX:
        left_out += [scheme_label(name) for name in schemes[_SCHEMES_MAX:]]
        schemes = schemes[:_SCHEMES_MAX]
    further = _further_keys(shown, keys)
    combinations = shown.select(further).unique(maintain_order=True).to_dicts() or [{}]
    if len(combinations) > len(LINES):
        left_out += [_values_text(one) for one in combinations[1:]]
        combinations = combinations[:1]
    return _Lines(schemes, combinations, left_out)


def _further_keys(shown: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the columns that vary besides the axis and the scheme."""
    # The columns of cells already show swept schemes and block sizes.
    hidden = {keys[0], "schemes", *CELL_KEYS}
    if keys[0] == "workload.block_sizes_bytes":
        hidden.add("block_size_bytes")
    return [
        name
        for name in dict.fromkeys((*keys[1:], "block_size_bytes"))
        if name not in hidden and shown[name].n_unique() > 1
    ]


def _values_text(values: Mapping[str, Any]) -> str:
    """Write values of swept keys.

    >>> _values_text({"cluster.hosts": 4, "block_size_bytes": 65536})
    'hosts 4, block size 64 KiB'
    """
    return ", ".join(
        f"{key_words(key)} {_value_text(key, value)}" for key, value in values.items()
    )


def _value_text(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key.endswith("_bytes"):
        return size_text(int(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value_text(value)
    return f"{value:,.10g}"


class _FigureAxis(NamedTuple):
    """The swept key of the axis, and its values in order if they are no numbers."""

    key: str
    categories: Sequence[Any]

    def positions(self, rows: pl.DataFrame) -> list[float]:
        """Return the place of each row on the axis."""
        values = rows[self.key].to_list()
        if self.categories:
            return [float(self.categories.index(value)) for value in values]
        return [float(value) for value in values]


def _categories(shown: pl.DataFrame, key: str) -> list[Any]:
    """Return the values of a key in the order of the sweep, or none if they are numbers."""
    if shown.schema[key].is_numeric():
        return []
    return shown[key].drop_nulls().unique(maintain_order=True).to_list()


def _panel(
    rows: pl.DataFrame,
    axis: _FigureAxis,
    shown: ShownQuantity,
    lines: _Lines,
    title: str,
) -> PanelSpec:
    """Specify one pattern and op, with a legend entry for each scheme and each style of line."""
    layers: list[LayerSpec] = []
    for index, scheme in enumerate(lines.schemes):
        for number, values in enumerate(lines.combinations):
            points = rows.filter(
                pl.col("scheme") == scheme,
                pl.col(axis.key).is_not_null(),
                *(pl.col(name).eq_missing(value) for name, value in values.items()),
            )
            points = points[np.argsort(axis.positions(points), kind="stable").tolist()]
            if points.is_empty():
                continue
            style = series_style(index)
            if len(lines.combinations) > 1:
                style["linestyle"] = LINES[number]
            label = scheme_label(scheme) if number == 0 else ""
            layers += _line(points, axis, shown, style, label)
    layers += _style_keys(lines.combinations)
    return PanelSpec(
        title=title,
        layers=layers,
        x=_axis_of(axis, sorted(set(axis.positions(rows)))),
        y=AxisSpec(label=shown.axis_label, scale="auto"),
    )


def _line(
    points: pl.DataFrame,
    axis: _FigureAxis,
    shown: ShownQuantity,
    style: Mapping[str, Any],
    label: str,
) -> Iterator[LayerSpec]:
    """Yield one line and its intervals."""
    quantity = replace(
        shown.quantity, ci=(f"{shown.metric}_ci_low", f"{shown.metric}_ci_high")
    )
    positions = axis.positions(points)
    y = (points[quantity.key] * quantity.factor).to_list()
    yield LayerSpec(mark="outlined line", x=positions, y=y, label=label, style=style)
    yield from whiskers(points, quantity, positions, style["color"])


def _style_keys(combinations: Sequence[Mapping[str, Any]]) -> Iterator[LayerSpec]:
    """Yield a legend entry for each style of line, if there are several."""
    if len(combinations) < 2:
        return
    for line, values in zip(LINES, combinations, strict=False):
        style = {"color": _GREY, "linestyle": line}
        yield LayerSpec(mark="line", label=_values_text(values), style=style)


def _axis_of(axis: _FigureAxis, values: Sequence[float]) -> AxisSpec:
    """Specify the axis of the swept key."""
    x = axis.key
    if axis.categories:
        count = len(axis.categories)
        return AxisSpec(
            label=key_words(x),
            ticks=range(count),
            names=[_value_text(x, value) for value in axis.categories],
            low=-0.3,
            high=count - 0.7,
        )
    is_log = values[0] > 0 and values[-1] / values[0] > _LOG_SPAN
    ticks = values if len(values) <= _TICKS_MAX else None
    return AxisSpec(
        label=key_words(x),
        scale="log2" if is_log else "linear",
        ticks=ticks,
        format="size" if x.endswith("_bytes") else ",.10g",
    )


def _caption(
    shown: pl.DataFrame, x: str, quantity: ShownQuantity, left_out: Sequence[str]
) -> str:
    count = max(shown["replications"].to_list())
    replications = "one replication"
    if count != 1:
        replications = f"means of {count} replications with 95 % intervals"
    unit = " (MB = 10⁶ bytes)" if quantity.quantity.unit.startswith("MB") else ""
    size = _size_text(shown)
    of_size = f", {size_name(shown)} {size}" if size else ""
    text = f"{quantity.title} against {key_words(x)}{of_size}{unit}; {replications}."
    if left_out:
        text += f" Not drawn, but in the table: {'; '.join(left_out)}."
    if "steady" in shown.columns and not shown["steady"].all():
        unsteady = shown.filter(~pl.col("steady")).height
        text += f" {unsteady} of {shown.height} cells did not reach a steady state."
    return text
