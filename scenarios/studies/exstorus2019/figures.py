"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

from collections.abc import Mapping
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from stripesim.scenarios.figures.panels import COLOURS, MARKERS, log_axis, note
from stripesim.scenarios.figures.results import (
    CaptionedFigure,
    draw_possible,
    new_figure,
)
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.drawing import (
    POINT,
    grouped_bars,
    legend_above,
    look,
    panels,
)
from stripesim.scenarios.studies.exstorus2019 import source as tables
from stripesim.scenarios.studies.exstorus2019.claims import simulate_claims
from stripesim.scenarios.studies.exstorus2019.parameters import CODES
from stripesim.scenarios.studies.exstorus2019.runs import GBIT_PER_S, GEOMETRIES, SCALES
from stripesim.scenarios.studies.lookup import published, select
from stripesim.sim.systems.striped_fs.write import STEP_NAMES, STEPS

COLOUR = dict(zip(STEPS, COLOURS, strict=False))
MARK = dict(zip(STEPS, MARKERS, strict=False))
GREY, DARK, PALE = "#444444", "#222222", "#BBBBBB"
_FILLED = {**POINT, "fillstyle": "full"}
_SECONDS = tables.WRITES / tables.NS_PER_S


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure that the rows allow: an experiment that was left out leaves its figure out."""
    return draw_possible(
        rows,
        {
            "steps-by-size": ({"steps"}, draw_sizes),
            "steps-shares": ({"steps"}, draw_shares),
            "steps-by-network": ({"steps"}, draw_networks),
            "codes": ({"codes", "steps"}, draw_codes),
            "beyond": ({"geometry", "scale"}, draw_beyond),
            "layout-zeros-disks": ({"layout", "short records", "disks"}, draw_layout),
        },
    )


def _published_ns(rate: float, size_bytes: int) -> dict[str, float]:
    return {
        c.step: c.time_ns
        for c in tables.cells()
        if (c.gbit_per_s, c.record_bytes) == (rate, size_bytes)
    }


def _simulated_ns(rows: pl.DataFrame, rate: float, size_bytes: int) -> dict[str, float]:
    where = {
        "experiment": "steps",
        "network_gbit_per_s": rate,
        "block_size_bytes": size_bytes,
    }
    (row,) = select(rows, **where).iter_rows(named=True)
    return {step: row[f"{step}_ns"] for step in STEPS}


def _step_legend(figure: Figure, further: Mapping[str, Mapping[str, Any]]) -> None:
    handles = [
        Line2D([], [], color=COLOUR[step], linewidth=3, label=STEP_NAMES[step])
        for step in STEPS
    ]
    handles += [
        Line2D([], [], label=label, **{"color": "#555555", **how})
        for label, how in further.items()
    ]
    legend_above(figure, 4, handles, handlelength=1.8)


def _rate_axis(axes: Axes) -> None:
    log_axis(axes, "x", GBIT_PER_S, [f"{rate:g}" for rate in GBIT_PER_S])
    axes.set_xlabel("network [Gb/s]")


def draw_sizes(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 9 and 11 of the source: time of each step of one record, by record size."""
    rates = (1.0, 10.0)
    figure, places = panels(
        (11.5, 5.2), [f"{rate:g} Gb/s" for rate in rates], sharey=True
    )
    sizes = [size >> 10 for size in tables.RECORD_SIZES_BYTES]
    for axes, rate in zip(places, rates, strict=True):
        here = select(rows, experiment="steps", network_gbit_per_s=rate).sort(
            "block_size_bytes"
        )
        for step in STEPS:
            axes.plot(sizes, here[f"{step}_ns"] * 1e-3, color=COLOUR[step], linewidth=2)
            measured = [
                _published_ns(rate, size)[step] * 1e-3
                for size in tables.RECORD_SIZES_BYTES
            ]
            axes.plot(
                sizes, measured, color=COLOUR[step], **{**POINT, "marker": MARK[step]}
            )
        log_axis(axes, "x", sizes, [str(size) for size in sizes])
        log_axis(axes, "y", [1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.set_xlabel("record [KiB]")
    places[0].set_ylabel("time of one record [µs]")
    _step_legend(figure, {"measured by the source": POINT})
    errors = ", ".join(
        f"{STEP_NAMES[step]} {_calibration_error(rows, step):.0%}" for step in STEPS
    )
    return CaptionedFigure(
        figure,
        "Time of the five steps of one record, 4+2, one writer. Lines: simulated; open marks: Tables 1 and 2 "
        "of Kim et al. 2019, all of them seen by the fit. Mean absolute error of each step: "
        f"{errors}.",
    )


def _calibration_error(rows: pl.DataFrame, step: str) -> float:
    simulated, _ = simulate_claims(rows)
    errors = []
    for cell in tables.calibration_cells():
        value = simulated[cell.claim]
        if cell.step == step and isinstance(value, float):
            errors.append(abs(value / _SECONDS / cell.time_ns - 1))
    return sum(errors) / len(errors)


def draw_shares(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 10, 12, 14 and 16: share of each step."""
    figure = new_figure((11.5, 6.2))
    axes = figure.subplots()
    bars: list[tuple[str, dict[str, float]]] = []
    for rate, size in ((1.0, 4), (1.0, 128), (10.0, 4), (10.0, 128), (40.0, 128)):
        bars.append(
            (f"{rate:g} Gb/s, {size} KiB  measured", _published_ns(rate, size << 10))
        )
        bars.append(("simulated", _simulated_ns(rows, rate, size << 10)))
    ours = _simulated_ns(rows, 100.0, tables.LARGE_BYTES)
    bars += [
        ("100 Gb/s, 128 KiB  source's extrapolation", _source_shares()),
        ("simulated", ours),
    ]
    place, ticks = 0.0, []
    for index, (_, times) in enumerate(bars):
        total, left = sum(times.values()), 0.0
        for step in times:
            share = 100 * times[step] / total
            alpha = 1.0 if index % 2 else 0.62
            colour = COLOUR.get(step, PALE)
            axes.barh(
                -place,
                share,
                left=left,
                height=0.8,
                edgecolor="white",
                color=colour,
                alpha=alpha,
            )
            if share >= 5:
                letters: dict[str, Any] = {
                    "fontsize": 11,
                    "color": "white" if index % 2 else "black",
                }
                axes.text(
                    left + share / 2,
                    -place,
                    f"{share:.0f}",
                    ha="center",
                    va="center",
                    **letters,
                )
            left += share
        ticks.append(-place)
        place += 0.85 if index % 2 == 0 else 1.35
    axes.set_yticks(ticks, [name for name, _ in bars])
    axes.set_xlim(0, 100)
    axes.grid(visible=False)
    axes.set_xlabel("share of the time of a record [%]")
    _step_legend(
        figure, {"master and slave (source, 100 Gb/s)": {"color": PALE, "linewidth": 3}}
    )
    return CaptionedFigure(
        figure,
        "Share of each step in the time of a record; pale: Kim et al. 2019, full: simulated. At 40 Gb/s "
        f"nothing was fitted. For 100 Gb/s the source extrapolates {_source_shares()['distribution']:.0f} % "
        f"for the distribution; here it is {100 * ours['distribution'] / sum(ours.values()):.0f} %, because "
        "part of it does not depend on the rate.",
    )


def _source_shares() -> dict[str, float]:
    """Shares of the source's Figure 16 [%]; what it gives together is called rest."""
    claims = {"client": 287, "parity": 288, "distribution": 286}
    shares = {
        step: published(tables.STUDY)[f"exstorus-{claim}"]
        for step, claim in claims.items()
    }
    return shares | {"rest": 100 - sum(shares.values())}


def _held_out_s(step: str) -> float:
    """What the source measured at 40 Gb/s: time of 50,000 records [s]."""
    (cell,) = [c for c in tables.cells() if c.step == step and c.role == "held-out"]
    return cell.time_ns * _SECONDS


def draw_networks(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 13 and 15 and beyond: steps of a 128 KiB record by network rate, with intervals."""
    figure = new_figure((11.5, 5.6))
    axes = figure.subplots()
    here = select(rows, experiment="steps", block_size_bytes=tables.LARGE_BYTES).sort(
        "network_gbit_per_s"
    )
    rates = here["network_gbit_per_s"].to_list()
    for step in ("total", *STEPS):
        colour = COLOUR.get(step, DARK)
        axes.plot(rates, here[f"{step}_ns"] * _SECONDS, color=colour, linewidth=2.2)
        if step in ("total", "distribution", "client"):
            low, high = (here[f"{step}_{end}_ns"] * _SECONDS for end in ("low", "high"))
            axes.fill_between(rates, low, high, color=colour, alpha=0.13, linewidth=0)
    held, fitted = {**_FILLED, "marker": "s"}, POINT
    table_3 = (cell for cell in tables.cells() if cell.table == "Table 3")
    for cell in (cell for cell in table_3 if cell.record_bytes == tables.LARGE_BYTES):
        how = held if cell.role == "held-out" else fitted
        axes.plot(
            [cell.gbit_per_s], [cell.time_ns * _SECONDS], color=COLOUR[cell.step], **how
        )
    shares = _source_shares()
    # What the shares at 100 Gb/s imply, the parity calculation keeping its time.
    total_s = _held_out_s("parity") / (shares["parity"] / 100)
    extrapolated = {**_FILLED, "marker": "X"}
    for step in ("distribution", "client", "parity"):
        axes.plot(
            [100], [total_s * shares[step] / 100], color=COLOUR[step], **extrapolated
        )
    _rate_axis(axes)
    log_axis(
        axes,
        "y",
        [1, 2, 5, 10, 20, 50, 100, 200],
        ["1", "2", "5", "10", "20", "50", "100", "200"],
    )
    axes.set_ylabel("time of 50,000 records of 128 KiB [s]")
    _step_legend(
        figure,
        {
            "sum of all": {"color": DARK, "linewidth": 3},
            "measured, fitted to": fitted,
            "measured, held out": held,
            "source's extrapolation": extrapolated,
        },
    )
    hundred = here.row(rates.index(100.0), named=True)
    value, low_s, high_s = (
        hundred[f"distribution{end}_ns"] * _SECONDS for end in ("", "_low", "_high")
    )
    floor_s = here["distribution_ns"][-1] * _SECONDS
    return CaptionedFigure(
        figure,
        "Steps of a 128 KiB record by network rate; bands: 90 % intervals. The source's 100 Gb/s value for "
        f"the distribution, {total_s * shares['distribution'] / 100:.1f} s, lies below "
        f"{_held_out_s('distribution') * 40 / 100:.1f} s, what its own 40 Gb/s measurement would become if "
        f"all of it were transfer; simulated: {value:.1f} s ({low_s:.1f} to {high_s:.1f}), and "
        f"{floor_s:.1f} s at {rates[-1]:g} Gb/s.",
    )


def draw_codes(rows: pl.DataFrame) -> CaptionedFigure:
    """Figures 4 to 7: throughput lost to encoding, and processor time, by code."""
    titles = ("Throughput lost against NONE", "Master's processor time")
    figure, (left, right) = panels((11.5, 4.8), titles)
    coded = CODES[1:]
    drops: dict[str, list[float]] = {}
    used: dict[str, list[float]] = {}
    for threads, words in ((1, "one thread"), (10, "10 threads")):
        mine = {
            row["code"]: row
            for row in select(rows, experiment="codes", files=threads).to_dicts()
        }
        rate = {code: row["throughput_bytes_per_s"] for code, row in mine.items()}
        drops[words] = [100 * (1 - rate[code] / rate["NONE"]) for code in coded]
        used[words] = [200 * mine[code]["cpu_utilisation"] for code in CODES]
    source = {
        "one thread": (4.0, 15.0, 15.0, 29.0),
        "10 threads": (4.0, None, None, 26.0),
    }
    colours = (COLOURS[0], COLOURS[5])
    grouped_bars(left, coded, drops, colours, published=source, label="source")
    grouped_bars(right, CODES, used, colours)
    left.set_ylabel("[%]")
    right.set_ylabel("share of four cores [%]")
    legend_above(figure, 3)
    return CaptionedFigure(
        figure,
        "Five codes at 10 Gb/s, records of 128 KiB, a fixed master. Only AVX2:CRS was fitted, with one "
        "thread; the others are its parity time multiplied by kernel ratios measured on one machine. With "
        "ten threads the master's interface is full in the simulation, so that encoding costs next to "
        "nothing there; the source measured up to 26 %.",
    )


def draw_beyond(rows: pl.DataFrame) -> CaptionedFigure:
    """Other geometries, both places of encoding, and thousands of servers."""
    titles = (
        "One writer",
        "Client encodes / master encodes",
        "Many writers, per server",
    )
    figure, (speeds, places, scale) = panels((15.5, 5.0), titles)
    for index, (k, m) in enumerate(GEOMETRIES):
        mine = select(rows, experiment="geometry", scheme=f"rs:{k},{m}").sort(
            "network_gbit_per_s"
        )
        at = {
            place: select(mine, encode_at=place)["throughput_bytes_per_s"]
            for place in ("master", "client")
        }
        speeds.plot(GBIT_PER_S, at["master"] * 1e-6, label=f"{k}+{m}", **look(index))
        places.plot(GBIT_PER_S, at["client"] / at["master"], **look(index))
    for axes in (speeds, places):
        _rate_axis(axes)
    speeds.set(ylim=(0, None), ylabel="[MB/s]")
    places.axhline(1, color=GREY, linewidth=1)
    speeds.legend(ncols=2)
    _draw_scale(scale, rows)
    here = select(
        rows, experiment="scale", encode_at="master", network_gbit_per_s=100.0
    ).sort("servers")
    first, last = here.row(0, named=True), here.row(-1, named=True)
    per = [
        number_text(row["throughput_bytes_per_s"] / row["servers"] * 1e-6)
        for row in (first, last)
    ]
    return CaptionedFigure(
        figure,
        "(a) Throughput of one writer of 128 KiB records; beyond 100 Gb/s no step that a faster network "
        "shortens is left. (b) Throughput where the client encodes and sends K+M blocks, over that where it "
        "sends the record once to a master. (c) Throughput per server with as many clients as servers and "
        "two files each; letters name the busiest resource: r, t a server's receiving or sending interface, "
        "m the one metadata server, – none busy half of the time. "
        f"At 100 Gb/s {per[0]} MB/s per server with {first['servers']} servers and "
        f"{per[1]} MB/s with {last['servers']:,}.",
    )


_LETTER = {"server.rx": "r", "server.tx": "t", "client.tx": "c", "mds": "m"}


def _draw_scale(axes: Axes, rows: pl.DataFrame) -> None:
    here = select(rows, experiment="scale", encode_at="master")
    highest = 0.0
    for index, rate in enumerate((10.0, 100.0, 400.0)):
        mine = select(here, network_gbit_per_s=rate).sort("servers")
        y = (mine["throughput_bytes_per_s"] / mine["servers"] * 1e-6).to_list()
        highest = max(highest, *y)
        axes.plot(SCALES, y, **look(index), label=f"{rate:g} Gb/s")
        for x, value, kind in zip(SCALES, y, mine["bottleneck"], strict=True):
            note(
                axes,
                _LETTER.get(kind, "–"),
                (x, value),
                (0, 7 if index == 2 else -16),
                fontsize=12,
            )
    # The last but one scale stands too near to the last for a label of its own.
    ticks = [servers for servers in SCALES if servers != SCALES[-2]]
    log_axis(axes, "x", ticks, [f"{servers:,}" for servers in ticks])
    # Room for the letters above the highest line and beside the last point.
    axes.set(ylim=(0, 1.12 * highest), xlim=(None, 1.3 * SCALES[-1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set(ylabel="[MB/s]", xlabel="data servers")
    axes.legend()


def draw_layout(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 3's files, records that are filled up with zeros, and slaves on disks."""
    titles = (
        "Two clients, four files",
        "Records filled up with zeros",
        "Slaves on disks",
    )
    figure, (files, zeros, disks) = panels((15.5, 5.0), titles)
    here = select(rows, experiment="layout")
    together = here.filter(pl.col("code").str.ends_with("together"))
    rate = (together["throughput_bytes_per_s"] * 1e-6).to_list()
    alone = (
        here.filter(pl.col("code").str.ends_with("alone"))["throughput_bytes_per_s"][0]
        * 1e-6
    )
    words = [
        f"file {index}\nmaster {master + 1}"
        for index, master in enumerate(together["master"], 1)
    ]
    files.bar(words, rate, width=0.6, color=COLOURS[0], label="all four")
    files.axhline(
        alone, color=COLOURS[1], linestyle="--", linewidth=2, label="file 1 alone"
    )
    files.set(ylim=(0, 1.3 * alone), ylabel="throughput of a file [MB/s]")
    files.legend(loc="upper right", ncols=2)
    short = select(rows, experiment="short records").sort("block_size_bytes")
    sizes, stored = (
        short[name].to_list()
        for name in ("block_size_bytes", "stored_bytes_per_client_byte")
    )
    zeros.plot(sizes, stored, color=COLOURS[0], marker="o", linewidth=2)
    zeros.axhline(1.5, color=GREY, linewidth=1, linestyle=":")
    log_axis(
        zeros,
        "x",
        sizes[:5] + sizes[-1:],
        [f"{size / 1024:g}" for size in sizes[:5] + sizes[-1:]],
    )
    zeros.set(
        ylim=(0, None), xlabel="record [KiB]", ylabel="bytes stored per byte written"
    )
    _draw_disks(disks, select(rows, experiment="disks"))
    return CaptionedFigure(
        figure,
        f"(a) The source's Figure 3 on 10 Gb/s: {number_text(min(rate))} to {number_text(max(rate))} MB/s "
        f"a file, {number_text(alone)} MB/s alone: files 1 and 3 share a master, which has time to spare. "
        "(b) A record that does not fill its last encoding unit of 4 KiB is stored with zeros: "
        f"{stored[0]:g} bytes a byte at {sizes[0]} bytes, "
        "1.5 where it fills (dotted). (c) One writer, slaves on ten disks each (assumed 150 MB/s, 12.7 ms): "
        "with memory to gather writes in, full memory shows on a fast network only.",
    )


def _draw_disks(axes: Axes, rows: pl.DataFrame) -> None:
    rates = sorted(rows["network_gbit_per_s"].unique().to_list())
    by_disk = {
        name: (
            select(rows, code=name).sort("network_gbit_per_s")["throughput_bytes_per_s"]
            * 1e-6
        ).to_list()
        for name in rows["code"].unique(maintain_order=True)
    }
    places = grouped_bars(axes, [f"{rate:g}" for rate in rates], by_disk)
    for at, values in zip(places, by_disk.values(), strict=True):
        for place, value in zip(at, values, strict=True):
            note(axes, number_text(value), (place, value), (0, 3), fontsize=10)
    axes.margins(y=0.1)
    axes.set(xlabel="network [Gb/s]", ylabel="[MB/s]")
    axes.legend(loc="upper left", fontsize=11)
