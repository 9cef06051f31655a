"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS
from stripesim.scenarios.figures.results import CaptionedFigure, draw_possible, new_figure
from stripesim.scenarios.studies.erasurebench2016.codes import explanations
from stripesim.scenarios.studies.erasurebench2016.figures.replay import draw_replay
from stripesim.scenarios.studies.erasurebench2016.runs import BIN_S, CODES
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import series

COLOUR = dict(zip(CODES, COLOURS, strict=False))
MARK = dict(zip(CODES, MARKERS, strict=False))
LINE = dict(zip(CODES, LINES, strict=False))
WORDS = {"NC": "no code (10,0)", "RS": "RS (10,4)", "LRC": "LRC (10,6,5)"}
_PUBLISHED = "published"


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure that the rows allow.

    Returns
    -------
    dict
        File stem → figure; the source's number stands in the stem.
    """
    drawings = {
        "figure-3-latency": ({"latency"}, draw_latency),
        "figure-4-availability": ({"availability"}, draw_availability),
        "figure-4-decoders": ({"availability"}, draw_decoders),
        "figure-5-throughput": ({"throughput"}, draw_throughput),
        "figure-6-traffic": ({"traffic"}, draw_traffic),
        "figure-7-replay": ({"replay"}, draw_replay),
    }
    return draw_possible(rows, drawings)


def _select(rows: pl.DataFrame, **where: Any) -> pl.DataFrame:
    return rows.filter(*(pl.col(name) == value for name, value in where.items()))


def _plotted(figure: str, code: str, name: str | None = None) -> pl.DataFrame:
    found = series().filter((pl.col("figure") == int(figure)) & (pl.col("code") == code))
    return found if name is None else found.filter(pl.col("series") == name)


def _legend(figure: Figure, published: dict[str, Any], *, columns: int = 5) -> None:
    looks: list[dict[str, Any]] = [
        {"color": COLOUR[code], "linestyle": LINE[code], "label": WORDS[code]} for code in CODES
    ]
    handles = [Line2D([], [], linewidth=2, **look) for look in looks]
    handles.append(Line2D([], [], color="#555555", label=_PUBLISHED, **published))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns)


_THIN: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.8}
_POINT: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "fillstyle": "none",
    "markersize": 5,
    "markeredgewidth": 1.2,
}
_DASH: dict[str, Any] = {
    "color": "#222222",
    "linestyle": "none",
    "marker": "_",
    "markersize": 12,
    "mew": 2.4,
}


def draw_latency(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 3 of the source: distribution of the time to write 16 MiB, by nodes of the store."""
    mine = _select(rows, experiment="latency")
    sizes = sorted(mine["nodes"].unique().to_list())
    figure = new_figure((12.5, 4.4))
    panels = figure.subplots(1, len(sizes), sharey=True)
    for letter, axes, nodes in zip("abcde", panels, sizes, strict=True):
        for code in CODES:
            times = _plotted("3", code).filter(pl.col("x") == nodes)["y"].sort().to_list()
            axes.step(
                times,
                [(i + 1) / len(times) for i in range(len(times))],
                where="post",
                color=COLOUR[code],
                **_THIN,
            )
            simulated = _select(mine, code=code, nodes=nodes)["simulated_s"][0]
            axes.axvline(simulated, color=COLOUR[code], linestyle=LINE[code], linewidth=2)
        axes.set_title(f"({letter}) {nodes} nodes")
        axes.set_xlim(10, 27)
        axes.set_xlabel("time of the write [s]")
    panels[0].set_ylabel("share of the writes")
    panels[0].set_ylim(0, 1)
    _legend(figure, _THIN)
    caption = (
        "Writing 16 MiB through the file system into stores of 20 to 100 nodes. Steps: the source's 48 runs "
        "each; upright lines: simulated, one time each, for the model has no spread from run to run. NC was "
        "seen by the fit; RS and LRC are predicted."
    )
    return CaptionedFigure(figure, caption)


def draw_availability(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 4 of the source: files readable against nodes killed, for three archives."""
    mine = _select(rows, experiment="availability")
    figure = new_figure((12.5, 4.6))
    panels = figure.subplots(1, len(ARCHIVES), sharey=True)
    for letter, axes, name in zip("abc", panels, ARCHIVES, strict=True):
        for code in CODES:
            here = _select(mine, code=code, archive=name).sort("killed_fraction")
            x = here["killed_fraction"]
            axes.plot(x, here["available"], color=COLOUR[code], linestyle=LINE[code], linewidth=2)
            axes.fill_between(
                x, here["available_p05"], here["available_p95"], color=COLOUR[code], alpha=0.15, linewidth=0
            )
            found = _plotted("4", code, name)
            found = found.filter((pl.col("x") * 100).round().cast(pl.Int64) % 2 == 0)
            axes.plot(found["x"], found["y"], color=COLOUR[code], **{**_POINT, "marker": MARK[code]})
        axes.set_title(f"({letter}) {name}")
        axes.set_xlabel("nodes killed, of 100")
        axes.set_xlim(0, 0.7)
    panels[0].set_ylabel("files readable")
    _legend(figure, _POINT)
    caption = (
        "Share of the files that can be read. Lines: mean of seeded placements and kills, each code with "
        "the best decoder; shade: 5 to 95 % of single runs; marks: the source's one run. NC and RS lie on "
        "the lines. The source's LRC lies far below any decoder of a (10,6,5) code that uses what is left; "
        "see the next figure."
    )
    return CaptionedFigure(figure, caption)


def draw_decoders(rows: pl.DataFrame) -> CaptionedFigure:
    """The published LRC series of Figure 4 beside decoders that fall short of the best."""
    mine = _select(rows, experiment="availability")
    names = ("LRC", *explanations())
    figure = new_figure((12.5, 5.0))
    panels = figure.subplots(1, 2, sharey=True)
    for letter, axes, name in zip("ab", panels, ("10B", "httpd"), strict=True):
        for index, code in enumerate(names):
            here = _select(mine, code=code, archive=name).sort("killed_fraction")
            label = "any decodable pattern" if code == "LRC" else code
            axes.plot(
                here["killed_fraction"],
                here["available"],
                color=COLOURS[index],
                linestyle=LINES[index],
                linewidth=3 if code == names[-1] else 1.8,
                label=label,
            )
        found = _plotted("4", "LRC", name)
        axes.plot(found["x"], found["y"], color="#222222", label="published LRC", **_POINT)
        axes.set_title(f"({letter}) {name}")
        axes.set_xlabel("nodes killed, of 100")
        axes.set_xlim(0, 0.6)
    panels[0].set_ylabel("files readable")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    caption = (
        "Which decoder would explain the published LRC. Marks: the source's run; lines: simulated decoders. "
        "What fits is six parities of which five are local and one is Reed-Solomon's, as the configuration "
        "published with the programme has it: groups of two, and at most one loss in the rest once two "
        "losses share a group."
    )
    return CaptionedFigure(figure, caption)


def draw_throughput(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 5 of the source: rate of writing and reading, by file size, through FUSE and directly."""
    from stripesim.scenarios.studies.erasurebench2016.source import claims

    mine = _select(rows, experiment="throughput")
    published = {
        (c.metric.removeprefix("throughput "), c.op, c.scheme, c.block_size): c.published
        for c in claims()
        if c.metric.startswith("throughput ")
    }
    figure = new_figure((12.5, 4.6))
    panels = figure.subplots(1, 4)
    cells = [(way, op) for op in ("write", "read") for way in ("FUSE", "Direct")]
    for letter, axes, (way, op) in zip("abcd", panels, cells, strict=True):
        for shift, code in enumerate(CODES):
            here = _select(mine, code=code, way=way, op=op).sort("block_size_bytes")
            at = [index + (shift - 1) * 0.27 for index in range(here.height)]
            axes.bar(
                at, here["throughput_bytes_per_s"] / MEGABYTE, width=0.25, color=COLOUR[code], alpha=0.85
            )
            points = [published[way, op, code, f"{size // MEGABYTE}MB"] for size in here["block_size_bytes"]]
            axes.plot(at, points, **_DASH)
        axes.set_xticks(range(3), labels=["4", "16", "64"])
        axes.set_title(f"({letter}) {op}, {way}")
        axes.set_xlabel("file [MB]")
    panels[0].set_ylabel("throughput [MB/s]")
    handles: list[Any] = [Line2D([], [], color=COLOUR[c], linewidth=8, label=WORDS[c]) for c in CODES]
    handles.append(Line2D([], [], label=_PUBLISHED, **_DASH))
    figure.legend(handles=handles, loc="outside upper left", ncols=4)
    caption = (
        "A lone file through the file system (FUSE) and past it (Direct), 100 nodes. Bars: simulated; "
        "dashes: the source. NC was seen by the fit. Writes through FUSE get slower with size because the "
        "list of block keys is copied at each write; that this costs RS and LRC 1.4 and 1.6 times as much "
        "is predicted."
    )
    return CaptionedFigure(figure, caption)


def draw_traffic(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 6 of the source: traffic while httpd is written, read, and read with dead nodes."""
    mine = _select(rows, experiment="traffic series")
    figure = new_figure((12.5, 6.2))
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    letters = iter("abcdef")
    for line, code in zip(panels, ("RS", "LRC"), strict=True):
        for axes, op in zip(line, ("write", "read", "degraded read"), strict=True):
            _draw_bins(axes, _select(mine, code=code, op=op), _plotted("6", code, op), COLOUR[code])
            axes.set_title(f"({next(letters)}) {WORDS[code]}, {op}")
    for axes in panels[1]:
        axes.set_xlabel("time [s]")
    for line in panels:
        line[0].set_ylabel(f"traffic [MB in {BIN_S['6']} s]")
    handles = [
        Line2D([], [], color="#444444", linewidth=2, label="simulated"),
        Line2D([], [], color="#444444", label="published, median of five runs", **_POINT),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    caption = (
        "The httpd archive written, read, and read after 5 of 100 nodes were killed. Traffic is what passes "
        "the proxy's interface in 5 s, the source's own scale although it calls it MB/s. Seen by the fit: "
        "how long RS's write takes. The source's reads take 95 s, so our requests of reads are too slow; "
        "that RS's degraded read takes 125 s and LRC's 90 s, no mechanism here gives."
    )
    return CaptionedFigure(figure, caption)


def _draw_bins(axes: Axes, simulated: pl.DataFrame, published: pl.DataFrame, colour: str) -> None:
    here = simulated.sort("at_s")
    axes.step(here["at_s"], here["bin_bytes"] / MEGABYTE, where="mid", color=colour, linewidth=2)
    axes.plot(published["x"], published["y"], color=colour, **_POINT)
    axes.set_ylim(0, 30)
