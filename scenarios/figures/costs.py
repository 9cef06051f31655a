"""The cost of requests by step as stacked bars: which step dominates, for each scheme and block size."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from stripesim.scenarios.figures.captions import (
    STEP_LOOKS,
    kind_words,
    scheme_label,
)
from stripesim.scenarios.figures.panels import note
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.run.costs import COST_KEYS, cost_key, steps_with_time
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.sim.observe.critical_path import STEPS

_HATCH: Final = "////"
_BAR_INCH: Final = 0.42
_WIDTH_INCH: Final = (9.0, 16.0)


def draw_costs(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw the cost by step of every pattern and op, as ``costs-<pattern>-<op>``; rows need costs.

    Panel (a) is the mean latency [ms], (b) the same in per cent: a bar for each block size and scheme,
    stacked in the order of a write. Hatched is waiting.

    References
    ----------
    The form is that of the stacked cost figures of Kim et al., "ExSTorus-FS", Figures 10, 12 and 14.
    """
    if COST_KEYS[0] not in rows.columns:
        return {}
    costed = rows.filter(pl.col(COST_KEYS[0]).is_not_null())
    figures = {}
    for pattern, op in (
        costed.select("pattern", "op").unique(maintain_order=True).iter_rows()
    ):
        here = costed.filter((pl.col("pattern") == pattern) & (pl.col("op") == op))
        # Bars of one block size side by side, schemes in the order of the scenario.
        listed = (
            here.with_row_index()
            .sort("block_size_bytes", "index", nulls_last=True)
            .to_dicts()
        )
        figures[f"costs-{pattern}-{op}"] = _draw(listed, pattern, op)
    return figures


def _draw(rows: Sequence[Mapping[str, Any]], pattern: str, op: str) -> CaptionedFigure:
    places = _places(rows)
    low, high = _WIDTH_INCH
    width = min(high, max(low, 2 * (_BAR_INCH * (places[-1] + 1) + 1.2)))
    with styled():
        figure = new_figure((width, 5.6))
        panels = figure.subplots(1, 2)
        # Block sizes stand between a panel and its title.
        for axes, title, shares in zip(
            panels,
            ("(a) mean latency [ms]", "(b) share of it [%]"),
            (False, True),
            strict=True,
        ):
            _draw_panel(axes, rows, places, shares=shares)
            axes.set_title(title, pad=20)
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
        columns = 4 if width > 11 else 3
        figure.legend(
            handles=entries,
            loc="outside upper left",
            ncols=columns,
            handlelength=1.6,
            fontsize=11,
        )
    return CaptionedFigure(figure, _caption(rows, pattern, op))


def _places(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Place bars one apart, and groups of one block size a little further."""
    sizes = [row["block_size_bytes"] for row in rows]
    steps = [
        1.0 if size == before else 1.7 for before, size in itertools.pairwise(sizes)
    ]
    return list(itertools.accumulate([0.0, *steps]))


def _draw_panel(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    places: Sequence[float],
    *,
    shares: bool,
) -> None:
    for place, row in zip(places, rows, strict=True):
        factor = 100 / row["cost_latency_mean_ns"] if shares else 1e-6
        bottom = 0.0
        for step in STEPS:
            for waiting in (False, True):
                height = (row.get(cost_key(step, waiting=waiting)) or 0.0) * factor
                if height <= 0:
                    continue
                axes.bar(
                    place,
                    height,
                    width=0.86,
                    bottom=bottom,
                    color=STEP_LOOKS[step].colour,
                    linewidth=0.4,
                    hatch=_HATCH if waiting else None,
                    edgecolor="#FFFFFF"
                    if waiting and step in ("lock", "hung")
                    else "#222222",
                )
                bottom += height
    axes.set_xticks(
        list(places),
        [scheme_label(row["scheme"]) for row in rows],
        rotation=90 if len(rows) > 4 else 0,
        fontsize=10 if len(rows) > 12 else 12,
    )
    axes.set_xlim(places[0] - 0.7, places[-1] + 0.7)
    if shares:
        axes.set_ylim(0, 100)
    _name_groups(axes, rows, places)


def _name_groups(
    axes: Axes, rows: Sequence[Mapping[str, Any]], places: Sequence[float]
) -> None:
    """Write the block size above the bars of each group."""
    groups: dict[int | None, list[float]] = {}
    for place, row in zip(places, rows, strict=True):
        groups.setdefault(row["block_size_bytes"], []).append(place)
    if list(groups) == [None]:
        return
    for size, mine in groups.items():
        words = "" if size is None else format_size(size)
        above: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "color": "#444444",
        }
        note(axes, words, ((mine[0] + mine[-1]) / 2, 1), (0, 2), fontsize=10, **above)


def _caption(rows: Sequence[Mapping[str, Any]], pattern: str, op: str) -> str:
    """Say of each scheme which part is the largest at its smallest and its largest block size."""
    sentences = [
        f"{kind_words(op, pattern)}: what the mean latency consists of, "
        "along each request's own critical path in the simulated run."
    ]
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        mine = [row for row in rows if row["scheme"] == scheme]
        costed = []
        for row in mine if len(mine) == 1 else (mine[0], mine[-1]):
            name, size = row["cost_dominant"], row["block_size_bytes"]
            waiting = "waiting for " if name.endswith("_wait") else ""
            share = number_text(
                round(100 * row[f"cost_{name}_ns"] / row["cost_latency_mean_ns"])
            )
            at = "" if size is None else f" at {format_size(size)}"
            costed.append(
                f"{waiting}{STEP_LOOKS[name.removesuffix('_wait')].words} ({share} %){at}"
            )
        sentences.append(
            f"Largest part of {scheme_label(scheme)}: {', '.join(costed)}."
        )
    counts = [row["cost_requests"] for row in rows]
    requests = " to ".join(dict.fromkeys(map(str, (min(counts), max(counts)))))
    sentences.append(f"Means of {requests} requests a bar.")
    return " ".join(sentences)
