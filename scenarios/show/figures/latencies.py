"""Draw the distribution of latencies as percentiles, with room for the tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.scenarios.schema.units import format_size, number_text, size_text
from stripesim.scenarios.show.figures.captions import (
    in_sentence,
    kind_words,
    scheme_label,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    series_style,
)

_SIZE_INCHES: Final = (5.6, 3.9)
#: Fractions marked on the axis, with the names of the percentiles they belong to.
_MARKED: Final = {0.5: "p50", 0.1: "p90", 0.01: "p99", 0.001: "p99.9"}


def draw_latencies(
    distributions: Sequence[Mapping[str, Any]],
) -> dict[str, CaptionedFigure]:
    """Draw the latencies of each kind of request, a line for each scheme.

    Parameters
    ----------
    distributions
        `ScenarioResult.latencies`.

    Returns
    -------
    dict
        File stem → figure, such as ``latency-rand-write-4KiB``.
    """
    kinds: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for one in distributions:
        key = (one["op"], one["pattern"], one["block_size_bytes"])
        kinds.setdefault(key, []).append(one)
    return {
        _stem(*kind): drawn(_figure(kind, members)) for kind, members in kinds.items()
    }


def _stem(op: str, pattern: str, block_bytes: int | None) -> str:
    size = f"-{format_size(block_bytes)}" if block_bytes else ""
    return f"latency-{pattern}-{op}{size}"


def _figure(
    kind: tuple[Any, ...], distributions: Sequence[Mapping[str, Any]]
) -> FigureSpec:
    op, pattern, block_bytes = kind
    size = f" of {size_text(block_bytes)}" if block_bytes else ""
    title = f"{kind_words(op, pattern)}{size}"
    layers = [
        LayerSpec(
            mark="line",
            x=[time_ns / 1e6 for time_ns in one["latency_ns"]],
            y=[1 - fraction for fraction in one["fractions"]],
            label=scheme_label(one["scheme"]),
            style={**series_style(number), "marker": ""},
        )
        for number, one in enumerate(distributions)
    ]
    panel = PanelSpec(
        title=f"{title}: latencies",
        layers=layers,
        x=AxisSpec(label="latency [ms]", scale="log"),
        y=AxisSpec(
            label="percentile of requests",
            scale="log",
            ticks=list(_MARKED),
            names=list(_MARKED.values()),
            low=min(_MARKED),
            high=1,
        ),
    )
    caption = _caption(title, distributions)
    return FigureSpec(size=_SIZE_INCHES, panels=[panel], caption=caption)


def _caption(title: str, distributions: Sequence[Mapping[str, Any]]) -> str:
    parts = [
        f"{scheme_label(one['scheme'])} {_percentile(one, 0.5)}, {_percentile(one, 0.99)} and "
        f"{_percentile(one, 0.999)} ms"
        for one in distributions
    ]
    return (
        f"Distribution of the latency of {in_sentence(title)}, simulated. Median, 99th and 99.9th "
        f"percentile: {'; '.join(parts)}."
    )


def _percentile(distribution: Mapping[str, Any], fraction: float) -> str:
    position = distribution["fractions"].index(fraction)
    return number_text(distribution["latency_ns"][position], 1e-6)
