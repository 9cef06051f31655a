"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter, NullLocator

from stripesim.scenarios.figures.captions import scheme_label, three_digits
from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS
from stripesim.scenarios.figures.results import CaptionedFigure, draw_possible, new_figure
from stripesim.scenarios.schema.units import format_size
from stripesim.scenarios.studies.ecfault2024.claims import SWEPT, Lookup, claims
from stripesim.scenarios.studies.ecfault2024.profiles import CODES

COLOUR = dict(zip(CODES, COLOURS, strict=False))
GREY = "#BBBBBB"
PERCENT = 100.0
PUBLISHED = {"linestyle": "none", "marker": "D", "color": "black", "fillstyle": "none", "markersize": 9}
PARTS = (
    ("redundancy", "n / k", COLOURS[0]),
    ("padding", "division and padding", COLOURS[1]),
    ("log", "log files of the OSDs", COLOURS[2]),
)
_NAMES = {
    "stripe unit": "stripe unit",
    "placement groups": "placement groups",
    "cache": "cache scheme",
}


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure that the rows allow.

    Parameters
    ----------
    rows
        Rows of the study; an experiment that was left out leaves its figure out.

    Returns
    -------
    dict
        File stem → figure.
    """
    drawings = {
        "write-amplification": ({"amplification", "padding"}, draw_storage),
        "effects": ({"profiles"}, draw_effects),
        "failures": ({"profiles", "failures, domain osd"}, draw_failures),
        "checking-period": ({"profiles", "pace"}, draw_checking),
        "configurations": ({"profiles"}, draw_configurations),
        "scarce-cache": ({"scarce cache"}, draw_cache),
    }
    return draw_possible(rows, drawings)


def _of(rows: pl.DataFrame, experiment: str, **where: Any) -> pl.DataFrame:
    selected = rows.filter(pl.col("experiment") == experiment)
    for name, value in where.items():
        selected = selected.filter(pl.col(name) == value)
    return selected


def _published(number: int) -> float:
    published = {claim.id: claim for claim in claims()}[f"ecfault2024-{number}"].published
    assert isinstance(published, float)
    return published


def _plain_log(axes: Axes, which: str, ticks: Sequence[float], labels: Sequence[str]) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    getattr(axes, f"set_{which}scale")("log")
    axis.set_ticks(list(ticks), labels=list(labels))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _code_handles() -> list[Patch]:
    return [Patch(color=COLOUR[code], label=scheme_label(code)) for code in CODES]


def draw_storage(rows: pl.DataFrame) -> CaptionedFigure:
    """Bytes stored per byte written: what asks for them, and padding against the stripe unit."""
    figure = new_figure((12.5, 5.2))
    bars, curve = figure.subplots(1, 2, width_ratios=(1, 1.25))
    values = {row["scheme"]: row for row in _of(rows, "amplification").iter_rows(named=True)}
    published = {"rs:9,3": _published(179), "rs:12,3": _published(182)}
    for place, (code, row) in enumerate(values.items()):
        bottom = 0.0
        for part, label, colour in PARTS:
            height = row[f"stored_{part}"]
            bars.bar(place, height, bottom=bottom, width=0.55, color=colour, label=label if not place else "")
            if height > 0.1:
                bars.text(
                    place, bottom + height / 2, f"{height:.2f}", ha="center", va="center", color="white"
                )
            bottom += height
        bars.text(place, bottom + 0.03, f"{row['stored_total']:.2f}", ha="center", va="bottom", weight="bold")
        bars.plot(place + 0.38, published[code], label="published" if not place else "", **PUBLISHED)
        bars.text(place + 0.38, published[code] - 0.14, f"{published[code]:.2f}", ha="center", va="top")
    bars.set_xticks(range(len(values)), ["RS(12,9)", "RS(15,12)"])
    bars.set_xlim(-0.5, len(values) - 0.3)
    bars.set_ylim(0, 3.2)
    bars.set_ylabel("bytes stored per byte written")
    bars.set_title("(a) 64 MiB objects, 4 MiB unit")
    padding = _of(rows, "padding")
    for index, code in enumerate(padding["scheme"].unique(maintain_order=True)):
        here = padding.filter(pl.col("scheme") == code)
        curve.plot(
            *(here["stripe_unit_bytes"], here["stored_padded"]),
            color=COLOURS[index],
            linestyle=LINES[index],
            marker=MARKERS[index],
            markersize=5,
            linewidth=2,
            label=scheme_label(code),
        )
    units = [1 << shift for shift in range(12, 27, 2)]
    _plain_log(curve, "x", units, [format_size(unit) for unit in units])
    _plain_log(curve, "y", [1.25, 1.5, 2, 3, 5, 8, 12, 15], ["1.25", "1.5", "2", "3", "5", "8", "12", "15"])
    curve.tick_params(axis="x", labelrotation=35)
    curve.set_xlabel("stripe unit")
    curve.set_ylabel("bytes stored per byte written")
    curve.set_title("(b) Lower bound: division and padding")
    curve.legend(loc="upper left")
    bars.legend(loc="upper left", fontsize=11)
    nine, twelve = values["rs:9,3"], values["rs:12,3"]
    return CaptionedFigure(
        figure,
        "Bytes stored per byte written. (a) By what asks for them; diamonds: published. Division "
        "and padding give "
        f"{nine['stored_padded']:.3g} and {twelve['stored_padded']:.4g}; the space that an OSD's "
        "log files take, "
        f"measured at 582 MiB on Ceph 16.2, times the assumed 90 OSDs adds {nine['stored_log']:.2f} for the "
        "volume that the source's scripts write. (b) The lower bound n u ⌈S / k u⌉ / S for objects "
        "of 64 MiB, "
        "RS(12,9) being RS(9,3) here.",
    )


def draw_effects(rows: pl.DataFrame) -> CaptionedFigure:
    """Whole time and recovery alone, for the three swept dimensions."""
    look = Lookup(rows)
    figure = new_figure((13.5, 7.6))
    grid = figure.subplots(2, len(SWEPT), sharey="row")
    for column, dimension in enumerate(SWEPT):
        labels = list(look.of_dimension(dimension, CODES[0]))
        for line, axes in enumerate(grid[:, column]):
            for place, code in enumerate(CODES):
                found = look.of_dimension(dimension, code)
                at = [index + (place - 0.5) * 0.38 for index in range(len(labels))]
                recovery = [found[label]["recovery_s"] for label in labels]
                checking = [found[label]["checking_s"] for label in labels]
                if line == 0:
                    axes.bar(at, checking, width=0.34, color=GREY)
                    axes.bar(at, recovery, width=0.34, bottom=checking, color=COLOUR[code])
                else:
                    axes.bar(at, recovery, width=0.34, color=COLOUR[code])
                    for x, value in zip(at, recovery, strict=True):
                        axes.text(x, value + 2, three_digits(value), ha="center", va="bottom", fontsize=10)
            axes.set_xticks(range(len(labels)), [label.replace("-", "-\n") for label in labels])
            axes.margins(y=0.1)
            axes.set_xlabel(_NAMES[dimension] if line else "")
        grid[0, column].set_title(
            f"({'abc'[column]}) {_NAMES[dimension]}: +{three_digits(look.effect(dimension))} %", fontsize=13
        )
    grid[0, 0].set_ylabel("failure to clean [s]")
    grid[1, 0].set_ylabel("recovery alone [s]")
    figure.legend(
        handles=[Patch(color=GREY, label="checking period"), *_code_handles()],
        loc="outside upper left",
        ncols=3,
    )
    apart = ", ".join(
        f"{_NAMES[dimension]} +{three_digits(look.effect(dimension, 'recovery_s'))} %" for dimension in SWEPT
    )
    return CaptionedFigure(
        figure,
        "Time from the loss of one OSD until all placement groups are clean (above), and the part "
        "of it in which "
        "data are rebuilt (below). Titles: the largest effect on the whole time; on the recovery "
        f"alone it is {apart}. Published: stripe unit up to 426 %, placement groups 35 %, cache 11 %; the "
        "values of the first two sweeps are assumed.",
    )


def draw_failures(rows: pl.DataFrame) -> CaptionedFigure:
    """RS against Clay by number and place of concurrent failures, for two failure domains."""
    figure = new_figure((13.0, 5.2))
    panels = figure.subplots(1, 2, sharey=True)
    parts = (
        ("failure domain host", _of(rows, "profiles", dimension="failures")),
        ("failure domain OSD", _of(rows, "failures, domain osd")),
    )
    for letter, axes, (title, here) in zip("ab", panels, parts, strict=True):
        labels = here["label"].unique(maintain_order=True).to_list()
        for place, code in enumerate(CODES):
            mine = here.filter(pl.col("scheme") == code)
            at = [index + (place - 0.5) * 0.4 for index in range(len(labels))]
            axes.bar(at, mine["recovery_s"], width=0.37, color=COLOUR[code])
            for x, row in zip(at, mine.iter_rows(named=True), strict=True):
                text = f"{three_digits(row['recovery_s'])} s\n{row['sent_bytes_per_lost_byte']:.1f} B/B"
                axes.text(x, row["recovery_s"], text, ha="center", va="bottom", fontsize=9)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel("OSDs that fail at once")
        axes.set_title(f"({letter}) {title}")
        axes.margins(y=0.14)
    panels[0].set_ylabel("recovery alone [s]")
    figure.legend(handles=_code_handles(), loc="outside upper left", ncols=2)
    look = Lookup(rows)
    return CaptionedFigure(
        figure,
        "Recovery after one, two and three concurrent failures, on one host or on as many; above each bar "
        "its time and the bytes sent for each byte rebuilt. With three on different hosts "
        f"{look.hurt_twice():.0%} of the placement groups that lost a shard lost more than one: "
        "there Clay reads "
        "whole chunks, as RS does. What Clay saves of RS's time goes from "
        f"{look.advantage('1'):.0%} with one failure to {look.advantage('3-different'):.0%} (minus: Clay is "
        "slower).",
    )


def draw_checking(rows: pl.DataFrame) -> CaptionedFigure:
    """Break one failure down, and show the checking period's share against volume and pace."""
    look = Lookup(rows)
    figure = new_figure((13.0, 5.0))
    bars, curve = figure.subplots(1, 2, width_ratios=(1, 1.2))
    for place, code in enumerate(reversed(CODES)):
        row = look.base(code)
        left = 0.0
        for part, colour in (("detection_s", COLOURS[5]), ("down_out_s", GREY)):
            bars.barh(place, row[part], left=left, color=colour, height=0.5)
            left += row[part]
        bars.barh(place, row["total_s"] - left, left=left, color=COLOUR[code], height=0.5)
        text = (
            f"{PERCENT * row['checking_share']:.1f} % checking, {three_digits(row['recovery_s'])} s recovery"
        )
        bars.text(5, place + 0.32, text, ha="left", va="bottom", fontsize=11)
    bars.set_yticks(range(len(CODES)), [scheme_label(code) for code in reversed(CODES)])
    bars.set_ylim(-0.5, len(CODES) - 0.25)
    bars.set_xlabel("time since the failure [s]")
    bars.set_title("(a) Base configuration")
    pace = _of(rows, "pace")
    parts = (
        ("more data", pace.filter(pl.col("recovery_sleep_s") == 0)),
        ("pauses", pace.filter(pl.col("recovery_sleep_s") > 0)),
    )
    for index, (label, here) in enumerate(parts):
        curve.plot(
            *(here["recovery_s"], here["checking_share"] * PERCENT),
            color=COLOURS[index],
            marker=MARKERS[index],
            linestyle="none",
            markersize=9,
            label=label,
        )
        for row in here.iter_rows(named=True):
            words = f"{row['volume_factor']} ×" if index == 0 else f"{row['recovery_sleep_s']:g} s"
            point = (row["recovery_s"], row["checking_share"] * PERCENT)
            curve.annotate(words, point, xytext=(7, 5), textcoords="offset points", fontsize=10)
    curve.axhspan(41, 58, color=GREY, alpha=0.5, zorder=0)
    curve.text(1.2, 49.5, "published: 41 to 58 %", va="center", fontsize=11)
    _plain_log(curve, "x", [1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"])
    curve.set_ylim(0, 105)
    curve.set_xlabel("recovery alone [s]")
    curve.set_ylabel("share of the checking period [%]")
    curve.set_title("(b) More data, slower recovery")
    curve.legend(loc="lower left")
    wanted = look.base(CODES[0])["checking_s"] * (PERCENT / _published(176) - 1)
    return CaptionedFigure(
        figure,
        "(a) From the failure until all is clean: detection (too short to see: the daemon's death "
        "is noticed at "
        "once), down to out (600 s), recovery. (b) Share of the checking period against the length of the "
        "recovery, RS(9,3): with 1, 4 and 16 times the data, and with pauses of 1 to 10 s between "
        "two objects of "
        f"an OSD. The published 53.7 % wants a recovery of {wanted:.0f} s; with Ceph's defaults and "
        "the volume of "
        f"the source's script it takes {three_digits(look.base(CODES[0])['recovery_s'])} s here.",
    )


def draw_configurations(rows: pl.DataFrame) -> CaptionedFigure:
    """Recovery alone under all other rows of the source's table."""
    here = _of(rows, "profiles").filter(~pl.col("dimension").is_in([*SWEPT, "failures", "base"]))
    figure = new_figure((11.5, 9.6))
    axes = figure.subplots()
    place, ticks, labels = 0.0, [], []
    for dimension in here["dimension"].unique(maintain_order=True):
        part = here.filter(pl.col("dimension") == dimension)
        for label in part["label"].unique(maintain_order=True):
            mine = part.filter(pl.col("label") == label)
            for row in mine.iter_rows(named=True):
                colour = COLOUR.get(row["scheme"], COLOURS[2])
                axes.barh(place, row["recovery_s"], color=colour, height=0.8)
                text = three_digits(row["recovery_s"])
                axes.text(row["recovery_s"] + 1, place, text, va="center", fontsize=10)
                place -= 0.85
            ticks.append(place + 0.85 * (1 + (mine.height - 1) / 2))
            labels.append(f"{dimension}: {label}")
            place -= 0.25
        place -= 0.4
    axes.set_yticks(ticks, labels)
    axes.margins(x=0.08, y=0.02)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("recovery alone [s]")
    handles = [*_code_handles(), Patch(color=COLOURS[2], label="other codes")]
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    return CaptionedFigure(
        figure,
        "Recovery after the loss of one OSD under the other rows of the source's table, everything "
        "else as in "
        "the base configuration. Interfaces differ by the objects they make: an object of 4 MiB fills a "
        "ninth of a stripe of 9 × 4 MiB and is padded to it.",
    )


def draw_cache(rows: pl.DataFrame) -> CaptionedFigure:
    """Recovery with ever less cache, under each way of sharing it."""
    here = _of(rows, "scarce cache")
    figure = new_figure((12.5, 4.8))
    missed, times = figure.subplots(1, 2)
    clay = here.filter(pl.col("scheme") == CODES[1])
    for index, label in enumerate(clay["label"].unique(maintain_order=True)):
        line = clay.filter(pl.col("label") == label).sort("cache_bytes")
        look: dict[str, Any] = {"color": COLOURS[index], "linestyle": LINES[index], "marker": MARKERS[index]}
        missed.plot(
            line["cache_bytes"], line["lookup_miss_fraction"] * PERCENT, linewidth=2, label=label, **look
        )
        times.plot(line["cache_bytes"], line["recovery_s"], linewidth=2, label=label, **look)
    sizes = clay["cache_bytes"].unique().sort().to_list()
    for axes in (missed, times):
        _plain_log(axes, "x", sizes, [format_size(size) for size in sizes])
        axes.tick_params(axis="x", labelrotation=40)
        axes.set_xlabel("cache of an OSD")
        axes.set_ylim(bottom=0)
    missed.set_ylabel("look-ups that read [%]")
    missed.set_title("(a) Metadata not in memory")
    missed.legend(loc="upper right")
    times.set_ylim(0, 1.3 * float(here["recovery_s"].max() or 1.0))  # type: ignore[arg-type]
    times.set_ylabel("recovery alone [s]")
    times.set_title(f"(b) Recovery, {scheme_label(CODES[1])}")
    return CaptionedFigure(
        figure,
        "Recovery of one OSD with ever less cache, shared as the three schemes say. With the 3 GiB "
        "of a default "
        "OSD all metadata of its shards fit whatever the shares; only below some ten MiB are they "
        "read from the "
        "device, and then a look-up is small beside the megabytes of the shard: recovery changes "
        "by no more than "
        "the 1 s at which maps are published. A share for data helps no recovery, so the "
        "data-optimised scheme "
        "is the first to miss, not the kv-optimised one.",
    )
