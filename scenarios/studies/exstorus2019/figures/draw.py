"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.lines import Line2D

from stripesim.scenarios.figures.panels import COLOURS, MARKERS, log_axis
from stripesim.scenarios.figures.results import CaptionedFigure, draw_possible, new_figure
from stripesim.scenarios.studies.exstorus2019.claims import simulate_claims
from stripesim.scenarios.studies.exstorus2019.figures.beyond import draw_beyond, draw_layout
from stripesim.scenarios.studies.exstorus2019.runs import CODES, GBIT_PER_S
from stripesim.scenarios.studies.exstorus2019.source import (
    NS_PER_S,
    RECORD_SIZES_BYTES,
    WRITES,
    cells,
    claims,
)
from stripesim.sim.systems.striped_fs.write import STEP_NAMES, STEPS

COLOUR = dict(zip(STEPS, COLOURS, strict=False))
MARK = dict(zip(STEPS, MARKERS, strict=False))
LARGE_BYTES = RECORD_SIZES_BYTES[-1]
_SOURCE_100G = {"distribution": 286, "client": 287, "parity": 288}
_POINT: Mapping[str, Any] = {"linestyle": "none", "markeredgewidth": 1.6, "markersize": 7}


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
        "steps-by-size": ({"steps"}, draw_sizes),
        "steps-shares": ({"steps"}, draw_shares),
        "steps-by-network": ({"steps"}, draw_networks),
        "codes": ({"codes", "steps"}, draw_codes),
        "beyond": ({"geometry", "scale"}, draw_beyond),
        "layout-zeros-disks": ({"layout", "short records", "disks"}, draw_layout),
    }
    return draw_possible(rows, drawings)


def _steps(rows: pl.DataFrame, **where: Any) -> pl.DataFrame:
    selected = rows.filter(pl.col("experiment") == "steps")
    for name, value in where.items():
        selected = selected.filter(pl.col(name) == value)
    return selected


def _published(**where: Any) -> dict[tuple[str, float, int], float]:
    return {
        (cell.step, cell.gbit_per_s, cell.record_bytes): cell.time_ns
        for cell in cells()
        if all(getattr(cell, name) == value for name, value in where.items())
    }


def draw_sizes(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 9 and 11 of the source: time of each step of one record, by record size."""
    figure = new_figure((11.5, 5.2))
    panels = figure.subplots(1, 2, sharey=True)
    sizes = [size >> 10 for size in RECORD_SIZES_BYTES]
    for letter, axes, rate in zip("ab", panels, (1.0, 10.0), strict=True):
        here = _steps(rows, network_gbit_per_s=rate).sort("block_size_bytes")
        found = _published(gbit_per_s=rate)
        for step in STEPS:
            axes.plot(sizes, here[f"{step}_ns"] * 1e-3, color=COLOUR[step], linewidth=2)
            axes.plot(
                sizes,
                [found[step, rate, size] * 1e-3 for size in RECORD_SIZES_BYTES],
                color=COLOUR[step],
                marker=MARK[step],
                fillstyle="none",
                **_POINT,
            )
        log_axis(axes, "x", sizes, [str(size) for size in sizes])
        log_axis(axes, "y", [1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.set_title(f"({letter}) {rate:g} Gb/s")
        axes.set_xlabel("record [KiB]")
    panels[0].set_ylabel("time of one record [µs]")
    _step_legend(figure, [("measured by the source", {"marker": "o", "fillstyle": "none", **_POINT})])
    errors = _calibration_errors(rows)
    caption = (
        "Time of the five steps of one record, 4+2, one writer. Lines: simulated; open marks: Tables 1 "
        "and 2 of "
        "Kim et al. 2019, all of them seen by the fit. Mean absolute error of each step: "
        + ", ".join(f"{STEP_NAMES[step]} {error:.0%}" for step, error in errors.items())
        + "."
    )
    return CaptionedFigure(figure, caption)


def _calibration_errors(rows: pl.DataFrame) -> dict[str, float]:
    simulated = simulate_claims(rows)
    values: dict[str, list[float]] = {step: [] for step in STEPS}
    for cell in cells():
        value = simulated[cell.claim]
        if cell.table in ("Table 1", "Table 2") and isinstance(value, float):
            values[cell.step].append(abs(value * NS_PER_S / WRITES / cell.time_ns - 1))
    return {step: sum(errors) / len(errors) for step, errors in values.items()}


def _step_legend(figure: Any, further: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    handles = [Line2D([], [], color=COLOUR[step], linewidth=3) for step in STEPS]
    labels = [STEP_NAMES[step] for step in STEPS]
    for label, look in further:
        handles.append(Line2D([], [], **{"color": "#555555", **look}))
        labels.append(label)
    figure.legend(handles, labels, loc="outside upper left", ncols=4, handlelength=1.8)


def draw_shares(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 10, 12, 14 and 16: share of each step."""
    figure = new_figure((11.5, 6.2))
    axes = figure.subplots()
    bars: list[tuple[str, dict[str, float]]] = []
    for rate, size in ((1.0, 4), (1.0, 128), (10.0, 4), (10.0, 128), (40.0, 128)):
        found = _published(gbit_per_s=rate, record_bytes=size << 10)
        name = f"{rate:g} Gb/s, {size} KiB"
        bars.append((f"{name}  measured", {step: found[step, rate, size << 10] for step in STEPS}))
        bars.append(("simulated", _step_row(rows, rate, size << 10)))
    bars.append(("100 Gb/s, 128 KiB  source's extrapolation", _source_shares()))
    bars.append(("simulated", _step_row(rows, 100.0, LARGE_BYTES)))
    place = 0.0
    ticks = []
    for index, (_, times) in enumerate(bars):
        total, left = sum(times.values()), 0.0
        for step in times:
            share = 100 * times[step] / total
            look: dict[str, Any] = {"color": COLOUR.get(step, "#BBBBBB"), "alpha": 1.0 if index % 2 else 0.62}
            axes.barh(-place, share, left=left, height=0.8, edgecolor="white", **look)
            if share >= 5:
                axes.text(left + share / 2, -place, f"{share:.0f}", ha="center", va="center", fontsize=11,
                          color="white" if index % 2 else "black")  # fmt: skip
            left += share
        ticks.append(-place)
        place += 0.85 if index % 2 == 0 else 1.35
    axes.set_yticks(ticks, [name for name, _ in bars])
    axes.set_xlim(0, 100)
    axes.grid(visible=False)
    axes.set_xlabel("share of the time of a record [%]")
    _step_legend(figure, [("master and slave (source, 100 Gb/s)", {"color": "#BBBBBB", "linewidth": 3})])
    ours = _step_row(rows, 100.0, LARGE_BYTES)
    caption = (
        "Share of each step in the time of a record; pale: Kim et al. 2019, full: simulated. At 40 Gb/s "
        "nothing was "
        f"fitted. For 100 Gb/s the source extrapolates {_source_shares()['distribution']:.0f} % for the "
        "distribution; "
        f"here it is {100 * ours['distribution'] / sum(ours.values()):.0f} %, because part of it does "
        "not depend on "
        "the rate."
    )
    return CaptionedFigure(figure, caption)


def _step_row(rows: pl.DataFrame, rate: float, size: int) -> dict[str, float]:
    (row,) = _steps(rows, network_gbit_per_s=rate, block_size_bytes=size).iter_rows(named=True)
    return {step: row[f"{step}_ns"] for step in STEPS}


def _source_shares() -> dict[str, float]:
    """Shares of the source's Figure 16 [%]; what it gives together is called rest."""
    published = {claim.id: claim.published for claim in claims()}
    shares: dict[str, float] = {}
    for step in ("client", "parity", "distribution"):
        value = published[f"exstorus-{_SOURCE_100G[step]}"]
        assert isinstance(value, float)
        shares[step] = value
    return shares | {"rest": 100 - sum(shares.values())}


def draw_networks(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 13 and 15 and beyond: steps of a 128 KiB record by network rate, with intervals."""
    figure = new_figure((11.5, 5.6))
    axes = figure.subplots()
    here = _steps(rows, block_size_bytes=LARGE_BYTES).sort("network_gbit_per_s")
    rates = here["network_gbit_per_s"].to_list()
    factor = WRITES / NS_PER_S
    for step in ("total", *STEPS):
        colour = COLOUR.get(step, "#222222")
        axes.plot(rates, here[f"{step}_ns"] * factor, color=colour, linewidth=2.2)
        if step in ("total", "distribution", "client"):
            low, high = (here[f"{step}_{end}_ns"] * factor for end in ("low", "high"))
            axes.fill_between(rates, low, high, color=colour, alpha=0.13, linewidth=0)
    for cell in cells():
        if cell.record_bytes == LARGE_BYTES and cell.table == "Table 3":
            held = cell.role == "held-out"
            look: dict[str, Any] = (
                {"marker": "s", "fillstyle": "full"} if held else {"marker": "o", "fillstyle": "none"}
            )
            y = cell.time_ns * factor
            axes.plot([cell.gbit_per_s], [y], color=COLOUR[cell.step], **look, **_POINT)
    ratio, source = _source_total_s(), _source_shares()
    for step in ("distribution", "client", "parity"):
        axes.plot([100], [ratio * source[step] / 100], color=COLOUR[step], marker="X", **_POINT)
    log_axis(axes, "x", GBIT_PER_S, [f"{rate:g}" for rate in GBIT_PER_S])
    log_axis(axes, "y", [1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"])
    axes.set_xlabel("network [Gb/s]")
    axes.set_ylabel("time of 50,000 records of 128 KiB [s]")
    _step_legend(
        figure,
        [
            ("sum of all", {"color": "#222222", "linewidth": 3}),
            ("measured, fitted to", {"marker": "o", "fillstyle": "none", **_POINT}),
            ("measured, held out", {"marker": "s", **_POINT}),
            ("source's extrapolation", {"marker": "X", **_POINT}),
        ],
    )
    floor = here["distribution_ns"].to_list()[-1] * factor
    hundred = {row["network_gbit_per_s"]: row for row in here.iter_rows(named=True)}[100.0]
    caption = (
        "Steps of a 128 KiB record by network rate; bands: 90 % intervals. The source's 100 Gb/s value "
        "for the "
        f"distribution, {ratio * source['distribution'] / 100:.1f} s, lies below "
        f"{_held_out_distribution_s() * 40 / 100:.1f} s, what its own 40 Gb/s measurement would become "
        "if all of it "
        f"were transfer; simulated: {hundred['distribution_ns'] * factor:.1f} s "
        f"({hundred['distribution_low_ns'] * factor:.1f} to "
        f"{hundred['distribution_high_ns'] * factor:.1f}), "
        f"and {floor:.1f} s at {rates[-1]:g} Gb/s."
    )
    return CaptionedFigure(figure, caption)


def _held_out_distribution_s() -> float:
    (cell,) = [c for c in cells() if c.step == "distribution" and c.role == "held-out"]
    return cell.time_ns * WRITES / NS_PER_S


def _source_total_s() -> float:
    """Time of 50,000 records that the source's 100 Gb/s shares imply [s], parity keeping its own."""
    (parity,) = [c for c in cells() if c.step == "parity" and c.role == "held-out"]
    return parity.time_ns * WRITES / NS_PER_S / (_source_shares()["parity"] / 100)


def draw_codes(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 4 to 7: throughput lost to encoding, and processor time, by code."""
    figure = new_figure((11.5, 4.8))
    left, right = figure.subplots(1, 2)
    here = rows.filter(pl.col("experiment") == "codes")
    shown = [code for code in CODES if code != "NONE"]
    published = {(1, "AVX2:CRS"): 4.0, (1, "LIB"): 15.0, (1, "CRS"): 15.0, (1, "RS"): 29.0}
    published |= {(10, "AVX2:CRS"): 4.0, (10, "RS"): 26.0}
    for offset, threads, colour in ((-0.2, 1, COLOURS[0]), (0.2, 10, COLOURS[5])):
        mine = {row["code"]: row for row in here.filter(pl.col("files") == threads).iter_rows(named=True)}
        bare = mine["NONE"]
        rate = "throughput_bytes_per_s"
        drops = [100 * (1 - mine[code][rate] / bare[rate]) for code in shown]
        cpu = [200 * mine[code]["cpu_utilisation"] for code in ("NONE", *shown)]
        label = "one thread" if threads == 1 else f"{threads} threads"
        places = [index + offset for index in range(len(shown))]
        left.bar(places, drops, width=0.36, color=colour, label=label)
        right.bar([index + offset for index in range(len(cpu))], cpu, width=0.36, color=colour, label=label)
        listed = [(place, published.get((threads, code))) for place, code in zip(places, shown, strict=True)]
        left.plot([p for p, v in listed if v is not None], [v for _, v in listed if v is not None],
                  color="#222222", marker="_", markersize=20, markeredgewidth=2.6, linestyle="none",
                  label="source" if threads == 1 else None)  # fmt: skip
    left.set_xticks(range(len(shown)), shown)
    right.set_xticks(range(len(shown) + 1), ["NONE", *shown])
    left.set_title("(a) Throughput lost against NONE")
    right.set_title("(b) Master's processor time")
    left.set_ylabel("[%]")
    right.set_ylabel("share of four cores [%]")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    caption = (
        "Five codes at 10 Gb/s, records of 128 KiB, a fixed master. Only AVX2:CRS was fitted, with one "
        "thread; the "
        "others are its parity time multiplied by kernel ratios measured on one machine. With ten "
        "threads the "
        "master's interface is full in the simulation, so that encoding costs next to nothing there; the "
        "source "
        "measured up to 26 %."
    )
    return CaptionedFigure(figure, caption)
