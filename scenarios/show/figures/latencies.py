"""Draw the distribution of latencies as percentiles, with room for the tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.show.figures.captions import kind_words, scheme_label
from stripesim.scenarios.show.figures.panels import COLOURS, LINES
from stripesim.scenarios.show.figures.results import (
    CaptionedFigure,
    legend,
    new_figure,
    styled,
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
    return {_stem(*kind): _draw(kind, members) for kind, members in kinds.items()}


def _stem(op: str, pattern: str, block_bytes: int | None) -> str:
    size = f"-{format_size(block_bytes)}" if block_bytes else ""
    return f"latency-{pattern}-{op}{size}"


def _draw(
    kind: tuple[Any, ...], distributions: Sequence[Mapping[str, Any]]
) -> CaptionedFigure:
    op, pattern, block_bytes = kind
    size = f" of {format_size(block_bytes)}" if block_bytes else ""
    title = f"{kind_words(op, pattern)}{size}"
    with styled():
        figure = new_figure(_SIZE_INCHES)
        axes = figure.subplots()
        for number, one in enumerate(distributions):
            times_ms = [time_ns / 1e6 for time_ns in one["latency_ns"]]
            slower = [1 - fraction for fraction in one["fractions"]]
            axes.plot(
                times_ms,
                slower,
                LINES[number % len(LINES)],
                color=COLOURS[number % len(COLOURS)],
                label=scheme_label(one["scheme"]),
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(list(_MARKED), list(_MARKED.values()))
        axes.set_yticks([], minor=True)
        axes.set_ylim(min(_MARKED), 1)
        axes.set_title(f"{title}: latencies", fontsize=12.5)
        axes.set_xlabel("latency [ms]")
        axes.set_ylabel("percentile of requests")
        legend(figure)
    return CaptionedFigure(figure, _caption(title, distributions))


def _caption(title: str, distributions: Sequence[Mapping[str, Any]]) -> str:
    parts = [
        f"{scheme_label(one['scheme'])} {_percentile(one, 0.5)}, {_percentile(one, 0.99)} and "
        f"{_percentile(one, 0.999)} ms"
        for one in distributions
    ]
    return f"{title}. Median, 99th and 99.9th percentile: {'; '.join(parts)}."


def _percentile(distribution: Mapping[str, Any], fraction: float) -> str:
    place = distribution["fractions"].index(fraction)
    return number_text(distribution["latency_ns"][place], 1e-6)
