"""Draw the cost of requests by step as stacked bars: which step dominates, by scheme and block size."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.show.figures.captions import (
    STEP_LOOKS,
    kind_words,
    kinds_of_requests,
    scheme_label,
)
from stripesim.scenarios.show.figures.panels import note
from stripesim.scenarios.show.figures.results import CaptionedFigure, new_figure, styled
from stripesim.sim.observe.critical_path import (
    COST_KEYS,
    STEPS,
    cost_key,
    steps_with_time,
)

_HATCH: Final = "////"
_BAR_INCH: Final = 0.42
_WIDTH_INCH: Final = (9.0, 16.0)


def draw_costs(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw the cost by step of every pattern and op, as ``costs-<pattern>-<op>``, from rows with costs.

    Panel (a) is the mean latency [ms], (b) the same in per cent: a bar for each block size and scheme,
    stacked in the order of a write. Waiting is hatched.

    References
    ----------
    The form is that of the stacked cost figures of Kim et al., "ExSTorus-FS", Figures 10, 12 and 14.
    """
    if COST_KEYS[0] not in rows.columns:
        return {}
    costed = rows.filter(pl.col(COST_KEYS[0]).is_not_null())
    figures = {}
    for op, pattern in kinds_of_requests(costed):
        own = costed.filter((pl.col("pattern") == pattern) & (pl.col("op") == op))
        # Bars of one block size next to each other, schemes in the order of the scenario.
        ordered = own.with_row_index().sort(
            "block_size_bytes", "index", nulls_last=True
        )
        figures[f"costs-{pattern}-{op}"] = _draw(ordered.to_dicts(), pattern, op)
    return figures


def _draw(rows: Sequence[Mapping[str, Any]], pattern: str, op: str) -> CaptionedFigure:
    positions = _positions(rows)
    narrowest, widest = _WIDTH_INCH
    width = 2 * (_BAR_INCH * (positions[-1] + 1) + 1.2)
    width = min(widest, max(narrowest, width))
    with styled():
        figure = new_figure((width, 5.6))
        latencies, shares = figure.subplots(1, 2)
        _draw_panel(latencies, rows, positions, shares=False)
        _draw_panel(shares, rows, positions, shares=True)
        # Leave room for the block sizes between a panel and its title.
        latencies.set_title("(a) mean latency [ms]", pad=20)
        shares.set_title("(b) share of it [%]", pad=20)
        entries = [
            Patch(
                facecolor=STEP_LOOKS[step].colour,
                edgecolor="#222222",
                label=STEP_LOOKS[step].words,
            )
            for step in steps_with_time(rows)
        ]
        waiting = "hatched: waiting for it"
        entries.append(
            Patch(facecolor="white", edgecolor="#222222", hatch=_HATCH, label=waiting)
        )
        figure.legend(
            handles=entries,
            loc="outside upper left",
            ncols=4 if width > 11 else 3,
            handlelength=1.6,
            fontsize=11,
        )
    return CaptionedFigure(figure, _caption(rows, pattern, op))


def _positions(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the positions of bars: one apart, and more between block sizes."""
    positions = [0.0]
    for before, row in itertools.pairwise(rows):
        same_size = row["block_size_bytes"] == before["block_size_bytes"]
        positions.append(positions[-1] + (1.0 if same_size else 1.7))
    return positions


def _draw_panel(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    positions: Sequence[float],
    *,
    shares: bool,
) -> None:
    for x, row in zip(positions, rows, strict=True):
        factor = 100 / row["cost_latency_mean_ns"] if shares else 1e-6
        bottom = 0.0
        for step, waiting in itertools.product(STEPS, (False, True)):
            height = (row.get(cost_key(step, waiting=waiting)) or 0.0) * factor
            if height <= 0:
                continue
            edge = "#222222"
            if waiting and step in ("lock", "hung"):
                edge = "#FFFFFF"
            axes.bar(
                x,
                height,
                width=0.86,
                bottom=bottom,
                color=STEP_LOOKS[step].colour,
                linewidth=0.4,
                hatch=_HATCH if waiting else None,
                edgecolor=edge,
            )
            bottom += height
    axes.set_xticks(
        list(positions),
        [scheme_label(row["scheme"]) for row in rows],
        rotation=90 if len(rows) > 4 else 0,
        fontsize=10 if len(rows) > 12 else 12,
    )
    axes.set_xlim(positions[0] - 0.7, positions[-1] + 0.7)
    if shares:
        axes.set_ylim(0, 100)
    _name_groups(axes, rows, positions)


def _name_groups(
    axes: Axes, rows: Sequence[Mapping[str, Any]], positions: Sequence[float]
) -> None:
    """Write the block size above the bars of each group."""
    groups: dict[int | None, list[float]] = {}
    for x, row in zip(positions, rows, strict=True):
        groups.setdefault(row["block_size_bytes"], []).append(x)
    if list(groups) == [None]:
        return
    look: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "color": "#444444"}
    for size, bars in groups.items():
        label = "" if size is None else format_size(size)
        centre = (bars[0] + bars[-1]) / 2
        note(axes, label, (centre, 1), (0, 2), fontsize=10, **look)


def _caption(rows: Sequence[Mapping[str, Any]], pattern: str, op: str) -> str:
    """Name each scheme's largest part at its smallest and its largest block size."""
    sentences = [
        f"{kind_words(op, pattern)}: composition of the mean latency, "
        "along the critical path of each simulated request."
    ]
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        own = [row for row in rows if row["scheme"] == scheme]
        ends = [own[0], own[-1]][: len(own)]
        parts = ", ".join(map(_dominant_text, ends))
        sentences.append(f"Largest part of {scheme_label(scheme)}: {parts}.")
    counts = [row["cost_requests"] for row in rows]
    requests = " to ".join(dict.fromkeys(map(str, (min(counts), max(counts)))))
    sentences.append(f"Means of {requests} requests per bar.")
    return " ".join(sentences)


def _dominant_text(row: Mapping[str, Any]) -> str:
    name = row["cost_dominant"]
    share = round(100 * row[f"cost_{name}_ns"] / row["cost_latency_mean_ns"])
    step = STEP_LOOKS[name.removesuffix("_wait")].words
    if name.endswith("_wait"):
        step = f"waiting for {step}"
    text = f"{step} ({number_text(share)} %)"
    size = row["block_size_bytes"]
    if size is not None:
        text += f" at {format_size(size)}"
    return text
