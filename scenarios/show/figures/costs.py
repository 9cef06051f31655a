"""Draw the cost of requests by step as stacked bars: which step dominates, by scheme and block size."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.figures.captions import (
    STEP_LOOKS,
    kind_words,
    kinds_of_requests,
    scheme_label,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    ABOVE,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    key,
)
from stripesim.sim.observe.critical_path import (
    COST_KEYS,
    STEPS,
    cost_key,
    steps_with_time,
)

_HATCH: Final = "////"
_BAR_INCH: Final = 0.42
_WIDTH_INCH: Final = (11.5, 16.0)


def draw_costs(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw the cost by step of every pattern and op, as ``costs-<pattern>-<op>``, from rows with costs.

    Panel (a) is the mean latency [ms], (b) its composition in per cent: a bar for each block size and scheme,
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
        figures[f"costs-{pattern}-{op}"] = drawn(
            _figure(ordered.to_dicts(), pattern, op)
        )
    return figures


def _figure(rows: Sequence[Mapping[str, Any]], pattern: str, op: str) -> FigureSpec:
    positions = _positions(rows)
    narrowest, widest = _WIDTH_INCH
    width = 2 * (_BAR_INCH * (positions[-1] + 1) + 1.2)
    in_ms = _panel(rows, positions, [1e-6] * len(rows), "latency [ms]")
    shares = [100 / row["cost_latency_mean_ns"] for row in rows]
    in_percent = _panel(rows, positions, shares, "share of the latency [%]")
    return FigureSpec(
        size=(min(widest, max(narrowest, width)), 5.6),
        panels=[
            replace(in_ms, title="Mean latency", layers=[*in_ms.layers, *_keys(rows)]),
            replace(
                in_percent,
                title="Composition",
                y=replace(in_percent.y, low=0, high=100),
            ),
        ],
        lettered=True,
        legend_style={"handlelength": 1.6, "fontsize": 11},
        caption=_caption(rows, pattern, op),
    )


def _keys(rows: Sequence[Mapping[str, Any]]) -> Iterator[LayerSpec]:
    """Yield the legend's entries: each step, and the hatch of waiting."""
    look = {"edgecolor": "#222222", "linewidth": 1}
    for step in steps_with_time(rows):
        yield key(STEP_LOOKS[step].words, STEP_LOOKS[step].colour, **look)
    yield key("hatched: waiting for it", "white", hatch=_HATCH, **look)


def _positions(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the positions of bars: one apart, and more between block sizes."""
    positions = [0.0]
    for before, row in itertools.pairwise(rows):
        same_size = row["block_size_bytes"] == before["block_size_bytes"]
        positions.append(positions[-1] + (1.0 if same_size else 1.7))
    return positions


def _panel(
    rows: Sequence[Mapping[str, Any]],
    positions: Sequence[float],
    factors: Sequence[float],
    label: str,
) -> PanelSpec:
    """Specify a bar for each row, whose steps are scaled by the row's factor."""
    layers = []
    tops = [0.0] * len(rows)
    for step, waiting in itertools.product(STEPS, (False, True)):
        heights = [
            (row.get(cost_key(step, waiting=waiting)) or 0.0) * factor
            for row, factor in zip(rows, factors, strict=True)
        ]
        drawn_bars = [index for index, height in enumerate(heights) if height > 0]
        layers.append(
            LayerSpec(
                mark="bars",
                x=[positions[index] for index in drawn_bars],
                y=[heights[index] for index in drawn_bars],
                low=[tops[index] for index in drawn_bars],
                style=_bar_style(step, waiting=waiting),
            )
        )
        tops = [top + height for top, height in zip(tops, heights, strict=True)]
    return PanelSpec(
        layers=[*layers, *_group_names(rows, positions)],
        x=AxisSpec(
            ticks=positions,
            names=[scheme_label(row["scheme"]) for row in rows],
            rotation=90 if len(rows) > 4 else 0,
            size=10 if len(rows) > 3 else 12,
            low=positions[0] - 0.7,
            high=positions[-1] + 0.7,
        ),
        y=AxisSpec(label=label),
        # Room for the block sizes between a panel and its title.
        title_pad=20 if len({row["block_size_bytes"] for row in rows}) > 1 else 6,
    )


def _bar_style(step: str, *, waiting: bool) -> dict[str, Any]:
    is_dark = waiting and step in ("lock", "hung")
    return {
        "color": STEP_LOOKS[step].colour,
        "thick": 0.86,
        "linewidth": 0.4,
        "hatch": _HATCH if waiting else None,
        "edgecolor": "#FFFFFF" if is_dark else "#222222",
    }


def _group_names(
    rows: Sequence[Mapping[str, Any]], positions: Sequence[float]
) -> Iterator[LayerSpec]:
    """Yield the block size above the bars of each group."""
    groups: dict[int | None, list[float]] = {}
    for x, row in zip(positions, rows, strict=True):
        groups.setdefault(row["block_size_bytes"], []).append(x)
    groups.pop(None, None)
    if len(groups) < 2:
        # The caption names the only size.
        return
    yield LayerSpec(
        mark="text",
        x=[(bars[0] + bars[-1]) / 2 for bars in groups.values()],
        y=[1.0] * len(groups),
        texts=[size_text(size) for size in groups if size is not None],
        style={"lift": (0, 4), "xycoords": ABOVE, "color": "#444444"},
    )


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
    distinct = dict.fromkeys((min(counts), max(counts)))
    requests = " to ".join(f"{count:,}" for count in distinct)
    sentences.append("Service and waiting are separate parts.")
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
        text += f" at {size_text(size)}"
    return text
