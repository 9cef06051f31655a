"""Figures 19 and 20: what happens second by second."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from stripesim.calibration.ledger.verdicts import Entry
from stripesim.scenarios.figures.results import CaptionedFigure, styled
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.koh2017.figures.claims import claims_caption
from stripesim.scenarios.studies.koh2017.figures.sheet import sheet
from stripesim.scenarios.studies.koh2017.series import (
    COMPARED_S,
    PAUSES_NS,
    RUNS,
    THROUGHPUT,
    course,
    dips_of,
    pause_run,
)

_LOOKS: Final = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
)
QUANTITIES: Final = (
    ("cpu_utilisation", "CPU, all storage cores", "%", 100.0),
    ("context_switches_per_s", "Context switches", "million per s", 1e-6),
    ("private_net_bytes_per_s", "Private network", "MB/s", 1e-6),
)


def needed_pause_ns(series: pl.DataFrame) -> int | None:
    """Shortest pause tried that makes RS(6,3) dip near zero periodically [ns]; None if none does."""
    for pause_ns in PAUSES_NS:
        if dips_of(series, pause_run(pause_ns)).says == "near-zero, periodic":
            return pause_ns
    return None


def _courses(
    axes: Axes,
    series: pl.DataFrame,
    names: Sequence[str],
    quantity: tuple[str, str, str, float],
    room: float,
) -> None:
    """Draw one quantity of some runs, with room above for a legend."""
    column, title, unit, factor = quantity
    highest = 0.0
    for name, (colour, style) in zip(names, _LOOKS, strict=False):
        values = course(series, name, column)
        times = np.arange(1, len(values) + 1)
        axes.plot(
            times,
            values * factor,
            color=colour,
            linestyle=style,
            linewidth=1.8,
            label=RUNS[name].says,
        )
        highest = max(highest, float(values.max()))
    axes.set_title(title, fontsize=12)
    axes.set(xlabel="time [s]", ylabel=unit, ylim=(0, room * factor * highest))


def draw_figure_19(
    series: pl.DataFrame, entries: Sequence[Entry]
) -> CaptionedFigure | None:
    """Draw throughput per second of first sequential writes, and what would make it dip."""
    if "fig19-rs" not in series["series"]:
        return None
    pause_ns = needed_pause_ns(series)
    what_if = (
        "fig19-rs",
        "fig19-object-map",
        "fig19-fill-object",
        pause_run(pause_ns or PAUSES_NS[-1]),
    )

    def lines(axes: Sequence[Axes]) -> None:
        for place, names, title in (
            (axes[0], ("fig19-rep", "fig19-rs"), "(a) As modelled"),
            (axes[1], what_if, "(b) RS(6,3), what if"),
        ):
            _courses(place, series, names, (THROUGHPUT, title, "MB/s", 1e-6), 1.55)
            place.legend(fontsize=8.5, loc="upper right")

    with styled():
        figure = sheet("Fig 19  First sequential writes of 16 KiB", 2, entries, lines)
    return CaptionedFigure(
        figure, _caption_19(series, pause_ns) + claims_caption(entries)
    )


def _caption_19(series: pl.DataFrame, pause_ns: int | None) -> str:
    def mean(name: str) -> str:
        return number_text(course(series, name).mean() / 1e6)

    parts = []
    for name in ("fig19-rs", "fig19-rep", "fig19-object-map", "fig19-fill-object"):
        found = dips_of(series, name)
        parts.append(
            f"{RUNS[name].says}: {mean(name)} MB/s, dips {found.says}, "
            f"lowest second {number_text(100 * found.numbers[0])} % of the level between dips"
        )
    update_ms = course(series, "fig19-object-map", "pause_ns")[0] / 1e6
    entries = int(course(series, "fig19-rs", "pg_log_entries_max")[0])
    needed = "None of the pauses tried gives such dips. "
    if pause_ns is not None:
        needed = (
            f"It would take a stall of about {pause_ns / 1e9:g} s at every new object, and then the mean is "
            f"{mean(pause_run(pause_ns))} MB/s: no mechanism among those tried stalls nearly so long. "
        )
    return (
        f"Figure 19 of the paper: throughput per second. {'; '.join(parts)}. One update of the object map "
        f"takes {number_text(update_ms)} ms. Trimming cannot be it: no placement group's log reaches more "
        f"than {entries:,} entries, and trimming begins at 3,000. {needed}"
    )


def draw_figure_20(
    series: pl.DataFrame, entries: Sequence[Entry]
) -> CaptionedFigure | None:
    """Draw CPU, context switches and private traffic of a pristine image against overwrites."""
    names = ("fig20-pristine", "fig20-overwrite")
    if not set(names) <= set(series["series"]):
        return None

    def lines(axes: Sequence[Axes]) -> None:
        for place, letter, (column, title, unit, factor) in zip(
            axes, "abc", QUANTITIES, strict=True
        ):
            _courses(
                place, series, names, (column, f"({letter}) {title}", unit, factor), 1.3
            )
            place.axvline(COMPARED_S, color="#777777", linewidth=1, linestyle=":")
        axes[0].legend(fontsize=9, loc="upper right")

    with styled():
        figure = sheet("Fig 20  RS(6,3), random writes of 16 KiB", 3, entries, lines)
    parts = []
    for column, title, unit, factor in QUANTITIES:
        first, second = (
            course(series, name, column)[:COMPARED_S].mean() * factor for name in names
        )
        parts.append(
            f"{title} {number_text(first)} against {number_text(second)} {unit}"
        )
    return CaptionedFigure(
        figure,
        f"Figure 20 of the paper: a pristine image against overwrites, means of the first {COMPARED_S} s: "
        f"{'; '.join(parts)}. {claims_caption(entries)}",
    )
