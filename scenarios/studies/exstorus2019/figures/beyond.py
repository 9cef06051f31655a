"""Figures of what lies beyond the source's measurements: geometries, places of encoding, scale, disks."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from stripesim.scenarios.figures.captions import three_digits
from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS, log_axis
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure
from stripesim.scenarios.studies.exstorus2019.runs import GBIT_PER_S, GEOMETRIES, SCALES


def draw_beyond(rows: pl.DataFrame) -> CaptionedFigure:
    """Other geometries, both places of encoding, and thousands of servers."""
    figure = new_figure((15.5, 5.0))
    speeds, places, scale = figure.subplots(1, 3)
    here = rows.filter(pl.col("experiment") == "geometry")
    for index, (k, m) in enumerate(GEOMETRIES):
        mine = here.filter(pl.col("scheme") == f"rs:{k},{m}").sort("network_gbit_per_s")
        look: dict[str, Any] = {"color": COLOURS[index], "linestyle": LINES[index], "linewidth": 2}
        at = {
            place: mine.filter(pl.col("encode_at") == place)["throughput_bytes_per_s"]
            for place in ("master", "client")
        }
        speeds.plot(GBIT_PER_S, at["master"] * 1e-6, label=f"{k}+{m}", marker=MARKERS[index], **look)
        places.plot(GBIT_PER_S, at["client"] / at["master"], marker=MARKERS[index], **look)
    for axes in (speeds, places):
        log_axis(axes, "x", GBIT_PER_S, [f"{rate:g}" for rate in GBIT_PER_S])
        axes.set_xlabel("network [Gb/s]")
    speeds.set_ylim(bottom=0)
    speeds.set_ylabel("[MB/s]")
    speeds.set_title("(a) One writer")
    places.axhline(1, color="#444444", linewidth=1)
    places.set_title("(b) Client encodes / master encodes")
    speeds.legend(ncols=2)
    _draw_scale(scale, rows)
    caption = (
        "(a) Throughput of one writer of 128 KiB records; beyond 100 Gb/s no step that a faster network "
        "shortens is "
        "left. (b) Throughput where the client encodes and sends K+M blocks, over that where it sends "
        "the record "
        "once to a master. (c) Throughput per server with as many clients as servers and two files "
        "each; letters "
        "name the busiest resource: r, t a server's receiving or sending interface, m the one metadata "
        "server, "
        "– none busy half of the time. " + _said_scale(rows)
    )
    return CaptionedFigure(figure, caption)


def draw_layout(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 3's files, records that are filled up with zeros, and slaves on disks."""
    figure = new_figure((15.5, 5.0))
    files, zeros, disks = figure.subplots(1, 3)
    here = rows.filter(pl.col("experiment") == "layout")
    together = here.filter(pl.col("code").str.ends_with("together"))
    rate = (together["throughput_bytes_per_s"] * 1e-6).to_list()
    alone = here.filter(pl.col("code").str.ends_with("alone"))["throughput_bytes_per_s"][0] * 1e-6
    words = [
        f"file {index}\nmaster {master + 1}" for index, master in enumerate(together["master"].to_list(), 1)
    ]
    files.bar(words, rate, width=0.6, color=COLOURS[0], label="all four")
    files.axhline(alone, color=COLOURS[1], linestyle="--", linewidth=2, label="file 1 alone")
    files.set_ylim(0, 1.3 * alone)
    files.set_title("(a) Two clients, four files")
    files.set_ylabel("throughput of a file [MB/s]")
    files.legend(loc="upper right", ncols=2)
    short = rows.filter(pl.col("experiment") == "short records").sort("block_size_bytes")
    sizes = short["block_size_bytes"].to_list()
    zeros.plot(sizes, short["stored_bytes_per_client_byte"], color=COLOURS[0], marker="o", linewidth=2)
    zeros.axhline(1.5, color="#444444", linewidth=1, linestyle=":")
    log_axis(zeros, "x", sizes[:5] + sizes[-1:], [f"{size / 1024:g}" for size in sizes[:5] + sizes[-1:]])
    zeros.set_ylim(bottom=0)
    zeros.set_title("(b) Records filled up with zeros")
    zeros.set_xlabel("record [KiB]")
    zeros.set_ylabel("bytes stored per byte written")
    _draw_disks(disks, rows)
    largest = short.row(0, named=True)
    caption = (
        f"(a) The source's Figure 3 on 10 Gb/s: {three_digits(min(rate))} to {three_digits(max(rate))} MB/s "
        f"a file, {three_digits(alone)} MB/s alone: files 1 and 3 share a master, which has time to spare. "
        "(b) A record that does not fill its last encoding unit of 4 KiB is stored with zeros: "
        f"{largest['stored_bytes_per_client_byte']:g} bytes a byte at {largest['block_size_bytes']} bytes, "
        "1.5 where it fills (dotted). (c) One writer, slaves on ten disks each (assumed 150 MB/s, 12.7 ms): "
        "with memory to gather writes in, full memory shows on a fast network only."
    )
    return CaptionedFigure(figure, caption)


def _draw_disks(axes: Axes, rows: pl.DataFrame) -> None:
    here = rows.filter(pl.col("experiment") == "disks")
    rates = sorted(here["network_gbit_per_s"].unique().to_list())
    for index, name in enumerate(here["code"].unique(maintain_order=True).to_list()):
        mine = here.filter(pl.col("code") == name).sort("network_gbit_per_s")
        places = [place + (index - 1) * 0.27 for place in range(len(rates))]
        y = (mine["throughput_bytes_per_s"] * 1e-6).to_list()
        axes.bar(places, y, width=0.25, color=COLOURS[index], label=name)
        for place, value in zip(places, y, strict=True):
            axes.annotate(three_digits(value), (place, value), xytext=(0, 3), textcoords="offset points",
                          ha="center", fontsize=10)  # fmt: skip
    axes.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    axes.margins(y=0.1)
    axes.set_title("(c) Slaves on disks")
    axes.set_xlabel("network [Gb/s]")
    axes.set_ylabel("[MB/s]")
    axes.legend(loc="upper left", fontsize=11)


_LETTER = {"server.rx": "r", "server.tx": "t", "client.tx": "c", "mds": "m"}


def _draw_scale(axes: Axes, rows: pl.DataFrame) -> None:
    here = rows.filter((pl.col("experiment") == "scale") & (pl.col("encode_at") == "master"))
    highest = 0.0
    for index, rate in enumerate((10.0, 100.0, 400.0)):
        mine = here.filter(pl.col("network_gbit_per_s") == rate).sort("servers")
        y = mine["throughput_bytes_per_s"] / mine["servers"] * 1e-6
        highest = max(highest, *y.to_list())
        axes.plot(SCALES, y, color=COLOURS[index], linestyle=LINES[index], marker=MARKERS[index],
                  linewidth=2, label=f"{rate:g} Gb/s")  # fmt: skip
        for x, value, kind in zip(SCALES, y.to_list(), mine["bottleneck"].to_list(), strict=True):
            axes.annotate(_LETTER.get(kind, "–"), (x, value), xytext=(0, 7 if index == 2 else -16),
                          textcoords="offset points", ha="center", fontsize=12)  # fmt: skip
    # The last but one scale stands too near to the last for a label of its own.
    ticks = [servers for servers in SCALES if servers != SCALES[-2]]
    log_axis(axes, "x", ticks, [f"{servers:,}" for servers in ticks])
    # Room for the letters above the highest line and beside the last point.
    axes.set_ylim(0, 1.12 * highest)
    axes.set_xlim(right=1.3 * SCALES[-1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_title("(c) Many writers, per server")
    axes.set_ylabel("[MB/s]")
    axes.set_xlabel("data servers")
    axes.legend()


def _said_scale(rows: pl.DataFrame) -> str:
    here = rows.filter(
        (pl.col("experiment") == "scale")
        & (pl.col("encode_at") == "master")
        & (pl.col("network_gbit_per_s") == 100.0)
    ).sort("servers")
    first, last = here.row(0, named=True), here.row(-1, named=True)
    per = [row["throughput_bytes_per_s"] / row["servers"] * 1e-6 for row in (first, last)]
    return (
        f"At 100 Gb/s {three_digits(per[0])} MB/s per server with {first['servers']} servers and "
        f"{three_digits(per[1])} MB/s with {last['servers']:,}."
    )
