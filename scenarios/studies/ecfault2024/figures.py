"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

import polars as pl
from matplotlib.patches import Patch

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.figures.panels import COLOURS, MARKERS, log_axis
from stripesim.scenarios.figures.results import (
    CaptionedFigure,
    draw_possible,
    new_figure,
)
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.studies.drawing import grouped_bars, legend_above, look, panels
from stripesim.scenarios.studies.ecfault2024.claims import STUDY, SWEPT, Lookup
from stripesim.scenarios.studies.ecfault2024.profiles import CODES
from stripesim.scenarios.studies.lookup import published, select

COLOUR = dict(zip(CODES, COLOURS, strict=False))
GREY = "#BBBBBB"
PERCENT = 100.0
PARTS = (
    ("redundancy", "n / k", COLOURS[0]),
    ("padding", "division and padding", COLOURS[1]),
    ("log", "log files of the OSDs", COLOURS[2]),
)


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure that the rows allow: an experiment that was left out leaves its figure out."""
    return draw_possible(
        rows,
        {
            "write-amplification": ({"amplification", "padding"}, draw_storage),
            "effects": ({"profiles"}, draw_effects),
            "failures": ({"profiles", "failures, domain osd"}, draw_failures),
            "checking-period": ({"profiles", "pace"}, draw_checking),
            "configurations": ({"profiles"}, draw_configurations),
        },
    )


def _published(number: int) -> float:
    return published(STUDY)[f"ecfault2024-{number}"]


def _code_handles() -> list[Patch]:
    return [Patch(color=COLOUR[code], label=scheme_label(code)) for code in CODES]


def draw_storage(rows: pl.DataFrame) -> CaptionedFigure:
    """Bytes stored per byte written: what asks for them, and padding against the stripe unit."""
    titles = ("64 MiB objects, 4 MiB unit", "Lower bound: division and padding")
    figure, (bars, curve) = panels((12.5, 5.2), titles, width_ratios=(1, 1.25))
    values = {
        row["scheme"]: row
        for row in select(rows, experiment="amplification").iter_rows(named=True)
    }
    stated = {"rs:9,3": _published(179), "rs:12,3": _published(182)}
    for place, (code, row) in enumerate(values.items()):
        bottom = 0.0
        for part, label, colour in PARTS:
            height = row[f"stored_{part}"]
            bars.bar(
                place,
                height,
                bottom=bottom,
                width=0.55,
                color=colour,
                label="" if place else label,
            )
            if height > 0.1:
                middle = bottom + height / 2
                bars.text(
                    place,
                    middle,
                    f"{height:.2f}",
                    ha="center",
                    va="center",
                    color="white",
                )
            bottom += height
        bars.text(
            place,
            bottom + 0.03,
            f"{row['stored_total']:.2f}",
            ha="center",
            va="bottom",
            weight="bold",
        )
        words = "" if place else "published"
        bars.plot(
            place + 0.38,
            stated[code],
            "kD",
            fillstyle="none",
            markersize=9,
            label=words,
        )
        bars.text(
            place + 0.38,
            stated[code] - 0.14,
            f"{stated[code]:.2f}",
            ha="center",
            va="top",
        )
    bars.set_xticks(range(len(values)), ["RS(12,9)", "RS(15,12)"])
    bars.set(xlim=(-0.5, len(values) - 0.3), ylim=(0, 3.2))
    padding = select(rows, experiment="padding")
    for index, code in enumerate(padding["scheme"].unique(maintain_order=True)):
        here = select(padding, scheme=code)
        (line,) = curve.plot(
            here["stripe_unit_bytes"], here["stored_padded"], **look(index)
        )
        line.set(markersize=5, label=scheme_label(code))
    sizes = [1 << shift for shift in range(12, 27, 2)]
    log_axis(curve, "x", sizes, [format_size(size) for size in sizes])
    curve.tick_params(axis="x", labelrotation=35)
    ticks = [1.25, 1.5, 2, 3, 5, 8, 12, 15]
    log_axis(curve, "y", ticks, [f"{tick:g}" for tick in ticks])
    curve.set_xlabel("stripe unit")
    for axes in (bars, curve):
        axes.set_ylabel("bytes stored per byte written")
    curve.legend(loc="upper left")
    bars.legend(loc="upper left", fontsize=11)
    nine, twelve = values["rs:9,3"], values["rs:12,3"]
    return CaptionedFigure(
        figure,
        "Bytes stored per byte written. (a) By what asks for them; diamonds: published. Division and padding "
        f"give {nine['stored_padded']:.3g} and {twelve['stored_padded']:.4g}; the space that an OSD's log "
        "files take, measured at 582 MiB on Ceph 16.2, times the assumed 90 OSDs adds "
        f"{nine['stored_log']:.2f} for the volume that the source's scripts write. (b) The lower bound "
        "n u ⌈S / k u⌉ / S for objects of 64 MiB, RS(12,9) being RS(9,3) here.",
    )


def draw_effects(rows: pl.DataFrame) -> CaptionedFigure:
    """Whole time and recovery alone, for the three swept dimensions."""
    found = Lookup(rows)
    figure = new_figure((13.5, 7.6))
    grid = figure.subplots(2, len(SWEPT), sharey="row")
    for column, dimension in enumerate(SWEPT):
        whole, alone = grid[:, column]
        cases = {code: found.of_dimension(dimension, code) for code in CODES}
        groups = [label.replace("-", "-\n") for label in cases[CODES[0]]]
        times = {
            key: {code: [row[key] for row in cases[code].values()] for code in CODES}
            for key in ("recovery_s", "checking_s")
        }
        places = grouped_bars(whole, groups, times["checking_s"], (GREY, GREY))
        grouped_bars(alone, groups, times["recovery_s"])
        for code, at in zip(CODES, places, strict=True):
            recovery, checking = times["recovery_s"][code], times["checking_s"][code]
            whole.bar(at, recovery, width=0.36, bottom=checking, color=COLOUR[code])
            for x, value in zip(at, recovery, strict=True):
                alone.text(
                    x,
                    value + 2,
                    number_text(value),
                    ha="center",
                    va="bottom",
                    fontsize=10,
                )
        effect = number_text(found.effect(dimension))
        whole.set_title(f"({'abc'[column]}) {dimension}: +{effect} %", fontsize=13)
        alone.set_xlabel(dimension)
        for axes in (whole, alone):
            axes.margins(y=0.1)
    grid[0, 0].set_ylabel("failure to clean [s]")
    grid[1, 0].set_ylabel("recovery alone [s]")
    legend_above(
        figure, 3, [Patch(color=GREY, label="checking period"), *_code_handles()]
    )
    apart = ", ".join(
        f"{dimension} +{number_text(found.effect(dimension, 'recovery_s'))} %"
        for dimension in SWEPT
    )
    return CaptionedFigure(
        figure,
        "Time from the loss of one OSD until all placement groups are clean (above), and the part of it in "
        "which data are rebuilt (below). Titles: the largest effect on the whole time; on the recovery alone "
        f"it is {apart}. Published: stripe unit up to 426 %, placement groups 35 %, cache 11 %; the values "
        "of the first two sweeps are assumed.",
    )


def draw_failures(rows: pl.DataFrame) -> CaptionedFigure:
    """RS against Clay by number and place of concurrent failures, for two failure domains."""
    parts = {
        "failure domain host": select(
            rows, experiment="profiles", dimension="failures"
        ),
        "failure domain OSD": select(rows, experiment="failures, domain osd"),
    }
    figure, places = panels((13.0, 5.2), list(parts), sharey=True)
    for axes, here in zip(places, parts.values(), strict=True):
        mine = {code: select(here, scheme=code) for code in CODES}
        times = {
            code: rows_of["recovery_s"].to_list() for code, rows_of in mine.items()
        }
        at = grouped_bars(
            axes, here["label"].unique(maintain_order=True).to_list(), times
        )
        for xs, rows_of in zip(at, mine.values(), strict=True):
            for x, row in zip(xs, rows_of.iter_rows(named=True), strict=True):
                text = f"{number_text(row['recovery_s'])} s\n{row['sent_bytes_per_lost_byte']:.1f} B/B"
                axes.text(
                    x, row["recovery_s"], text, ha="center", va="bottom", fontsize=9
                )
        axes.set_xlabel("OSDs that fail at once")
        axes.margins(y=0.14)
    places[0].set_ylabel("recovery alone [s]")
    legend_above(figure, 2, _code_handles())
    found = Lookup(rows)
    return CaptionedFigure(
        figure,
        "Recovery after one, two and three concurrent failures, on one host or on as many; above each bar "
        "its time and the bytes sent for each byte that the failed OSDs held. With three on different hosts "
        f"{found.hurt_twice():.0%} of the placement groups that lost a shard lost more than one: there Clay "
        "reads whole chunks, as RS does. What Clay saves of RS's time goes from "
        f"{found.advantage('1'):.0%} with one failure to {found.advantage('3-different'):.0%} (minus: Clay "
        "is slower).",
    )


def draw_checking(rows: pl.DataFrame) -> CaptionedFigure:
    """Break one failure down, and show the checking period's share against volume and pace."""
    found = Lookup(rows)
    titles = ("Base configuration", "More data, slower recovery")
    figure, (bars, curve) = panels((13.0, 5.0), titles, width_ratios=(1, 1.2))
    for place, code in enumerate(reversed(CODES)):
        row = found.base(code)
        left = 0.0
        for part, colour in (("detection_s", COLOURS[5]), ("down_out_s", GREY)):
            bars.barh(place, row[part], left=left, color=colour, height=0.5)
            left += row[part]
        bars.barh(
            place, row["total_s"] - left, left=left, color=COLOUR[code], height=0.5
        )
        share = PERCENT * row["checking_share"]
        text = f"{share:.1f} % checking, {number_text(row['recovery_s'])} s recovery"
        bars.text(5, place + 0.32, text, ha="left", va="bottom", fontsize=11)
    bars.set_yticks(range(len(CODES)), [scheme_label(code) for code in reversed(CODES)])
    bars.set(ylim=(-0.5, len(CODES) - 0.25), xlabel="time since the failure [s]")
    pace = select(rows, experiment="pace")
    parts = {
        "more data": pace.filter(pl.col("recovery_sleep_s") == 0),
        "pauses": pace.filter(pl.col("recovery_sleep_s") > 0),
    }
    for index, (label, here) in enumerate(parts.items()):
        shares = here["checking_share"] * PERCENT
        (line,) = curve.plot(
            here["recovery_s"], shares, MARKERS[index], color=COLOURS[index]
        )
        line.set(markersize=9, label=label)
        for row in here.iter_rows(named=True):
            words = (
                f"{row['recovery_sleep_s']:g} s"
                if index
                else f"{row['volume_factor']} ×"
            )
            point = (row["recovery_s"], row["checking_share"] * PERCENT)
            curve.annotate(
                words, point, xytext=(7, 5), textcoords="offset points", fontsize=10
            )
    curve.axhspan(41, 58, color=GREY, alpha=0.5, zorder=0)
    curve.text(1.2, 49.5, "published: 41 to 58 %", va="center", fontsize=11)
    log_axis(
        curve, "x", [1, 10, 100, 1000, 10000], ["1", "10", "100", "1,000", "10,000"]
    )
    curve.set(
        ylim=(0, 105),
        xlabel="recovery alone [s]",
        ylabel="share of the checking period [%]",
    )
    curve.legend(loc="lower left")
    base = found.base(CODES[0])
    wanted = base["checking_s"] * (PERCENT / _published(176) - 1)
    return CaptionedFigure(
        figure,
        "(a) From the failure until all is clean: detection (too short to see: the daemon's death is noticed "
        "at once), down to out (600 s), recovery. (b) Share of the checking period against the length of the "
        "recovery, RS(9,3): with 1, 4 and 16 times the data, and with pauses of 1 to 10 s between two "
        f"objects of an OSD. The published 53.7 % wants a recovery of {wanted:.0f} s; with Ceph's defaults "
        f"and the volume of the source's script it takes {number_text(base['recovery_s'])} s here.",
    )


def draw_configurations(rows: pl.DataFrame) -> CaptionedFigure:
    """Recovery alone under all other rows of the source's table."""
    here = select(rows, experiment="profiles")
    here = here.filter(~pl.col("dimension").is_in([*SWEPT, "failures", "base"]))
    figure = new_figure((11.5, 9.6))
    axes = figure.subplots()
    place, ticks, labels = 0.0, [], []
    for (dimension,), part in here.group_by("dimension", maintain_order=True):
        for (label,), mine in part.group_by("label", maintain_order=True):
            for row in mine.iter_rows(named=True):
                colour = COLOUR.get(row["scheme"], COLOURS[2])
                axes.barh(place, row["recovery_s"], color=colour, height=0.8)
                text = number_text(row["recovery_s"])
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
    legend_above(
        figure, 3, [*_code_handles(), Patch(color=COLOURS[2], label="other codes")]
    )
    return CaptionedFigure(
        figure,
        "Recovery after the loss of one OSD under the other rows of the source's table, everything else as "
        "in the base configuration. Interfaces differ by the objects they make: an object of 4 MiB fills a "
        "ninth of a stripe of 9 × 4 MiB and is padded to it.",
    )
