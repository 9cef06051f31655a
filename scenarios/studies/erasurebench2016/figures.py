"""The study's figures: each turns result rows into a picture and a caption, and does nothing else."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS
from stripesim.scenarios.figures.results import (
    CaptionedFigure,
    draw_possible,
    new_figure,
)
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.drawing import (
    DASH,
    POINT,
    grouped_bars,
    legend_above,
    panels,
)
from stripesim.scenarios.studies.erasurebench2016.codes import explanations
from stripesim.scenarios.studies.erasurebench2016.fit import FILE_MB
from stripesim.scenarios.studies.erasurebench2016.replay import KINDS
from stripesim.scenarios.studies.erasurebench2016.runs import BIN_S, CODES
from stripesim.scenarios.studies.erasurebench2016.sequences import ARCHIVES, MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import STUDY, plotted
from stripesim.scenarios.studies.lookup import claims_of, select

COLOUR = dict(zip(CODES, COLOURS, strict=False))
MARK = dict(zip(CODES, MARKERS, strict=False))
LINE = dict(zip(CODES, LINES, strict=False))
WORDS = {"NC": "no code (10,0)", "RS": "RS (10,4)", "LRC": "LRC (10,6,5)"}
_PUBLISHED = "published"
_THIN: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.8}
_POINT: dict[str, Any] = {**POINT, "markersize": 5, "markeredgewidth": 1.2}


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure that the rows allow; the source's number stands in the file's stem."""
    return draw_possible(
        rows,
        {
            "figure-3-latency": ({"latency"}, draw_latency),
            "figure-4-availability": ({"availability"}, draw_availability),
            "figure-4-decoders": ({"availability"}, draw_decoders),
            "figure-5-throughput": ({"throughput"}, draw_throughput),
            "figure-6-traffic": ({"traffic"}, draw_traffic),
            "figure-7-replay": ({"replay"}, draw_replay),
        },
    )


def _legend(figure: Figure, published: dict[str, Any]) -> None:
    looks: list[dict[str, Any]] = [
        {"color": COLOUR[code], "linestyle": LINE[code], "label": WORDS[code]}
        for code in CODES
    ]
    handles = [Line2D([], [], linewidth=2, **look) for look in looks]
    legend_above(
        figure,
        5,
        [*handles, Line2D([], [], color="#555555", label=_PUBLISHED, **published)],
    )


def draw_latency(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 3 of the source: distribution of the time to write 16 MiB, by nodes of the store."""
    mine = select(rows, experiment="latency")
    sizes = sorted(mine["nodes"].unique().to_list())
    figure, places = panels(
        (12.5, 4.4), [f"{nodes} nodes" for nodes in sizes], sharey=True
    )
    for axes, nodes in zip(places, sizes, strict=True):
        for code in CODES:
            times = plotted(3, code=code, x=nodes)["y"].sort()
            shares = np.arange(1, len(times) + 1) / len(times)
            axes.step(times, shares, where="post", color=COLOUR[code], **_THIN)
            simulated = select(mine, code=code, nodes=nodes)["simulated_s"][0]
            axes.axvline(
                simulated, color=COLOUR[code], linestyle=LINE[code], linewidth=2
            )
        axes.set(xlim=(10, 27), xlabel="time of the write [s]")
    places[0].set(ylabel="share of the writes", ylim=(0, 1))
    _legend(figure, _THIN)
    return CaptionedFigure(
        figure,
        "Writing 16 MiB through the file system into stores of 20 to 100 nodes. Steps: the source's 48 runs "
        "each; upright lines: simulated, one time each, for the model has no spread from run to run. NC was "
        "seen by the fit; RS and LRC are predicted.",
    )


def draw_availability(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 4 of the source: files readable against nodes killed, for three archives."""
    figure, places = panels((12.5, 4.6), ARCHIVES, sharey=True)
    for axes, name in zip(places, ARCHIVES, strict=True):
        for code in CODES:
            where = {"experiment": "availability", "code": code, "archive": name}
            here = select(rows, **where).sort("killed_fraction")
            x, low, high = (
                here["killed_fraction"],
                here["available_p05"],
                here["available_p95"],
            )
            axes.plot(
                x,
                here["available"],
                color=COLOUR[code],
                linestyle=LINE[code],
                linewidth=2,
            )
            axes.fill_between(x, low, high, color=COLOUR[code], alpha=0.15, linewidth=0)
            found = plotted(4, code=code, series=name)
            found = found.filter((pl.col("x") * 100).round().cast(pl.Int64) % 2 == 0)
            axes.plot(
                found["x"],
                found["y"],
                color=COLOUR[code],
                **{**_POINT, "marker": MARK[code]},
            )
        axes.set(xlabel="nodes killed, of 100", xlim=(0, 0.7))
    places[0].set_ylabel("files readable")
    _legend(figure, _POINT)
    return CaptionedFigure(
        figure,
        "Share of the files that can be read. Lines: mean of seeded placements and kills, each code with "
        "the best decoder; shade: 5 to 95 % of single runs; marks: the source's one run. NC and RS lie on "
        "the lines. The source's LRC lies far below any decoder of a (10,6,5) code that uses what is left; "
        "see the next figure.",
    )


def draw_decoders(rows: pl.DataFrame) -> CaptionedFigure:
    """The published LRC series of Figure 4 beside decoders that fall short of the best."""
    decoders, archives = ("LRC", *explanations()), ("10B", "httpd")
    figure, places = panels((12.5, 5.0), archives, sharey=True)
    for axes, name in zip(places, archives, strict=True):
        for index, code in enumerate(decoders):
            where = {"experiment": "availability", "code": code, "archive": name}
            here = select(rows, **where).sort("killed_fraction")
            axes.plot(
                here["killed_fraction"],
                here["available"],
                color=COLOURS[index],
                linestyle=LINES[index],
                linewidth=3 if code == decoders[-1] else 1.8,
                label="any decodable pattern" if code == "LRC" else code,
            )
        found = plotted(4, code="LRC", series=name)
        axes.plot(
            found["x"], found["y"], color="#222222", label="published LRC", **_POINT
        )
        axes.set(xlabel="nodes killed, of 100", xlim=(0, 0.6))
    places[0].set_ylabel("files readable")
    legend_above(figure, 4)
    return CaptionedFigure(
        figure,
        "Which decoder would explain the published LRC. Marks: the source's run; lines: simulated decoders. "
        "What fits is six parities of which five are local and one is Reed-Solomon's, as the configuration "
        "published with the programme has it: groups of two, and at most one loss in the rest once two "
        "losses share a group.",
    )


def draw_throughput(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 5 of the source: rate of writing and reading, by file size, through FUSE and directly."""
    published = {
        (claim.metric, claim.op, claim.scheme, claim.block_size): claim.published
        for claim in claims_of(STUDY)
        if isinstance(claim.published, float)
    }
    cells = [(op, way) for op in ("write", "read") for way in ("FUSE", "Direct")]
    figure, places = panels((12.5, 4.6), [f"{op}, {way}" for op, way in cells])
    for axes, (op, way) in zip(places, cells, strict=True):
        rates: dict[str, list[float]] = {}
        for code in CODES:
            here = select(rows, experiment="throughput", code=code, way=way, op=op)
            rates[code] = (
                here.sort("block_size_bytes")["throughput_bytes_per_s"] / MEGABYTE
            ).to_list()
        source = {
            code: [
                published[f"throughput {way}", op, code, f"{size}MB"]
                for size in FILE_MB
            ]
            for code in CODES
        }
        grouped_bars(axes, [str(size) for size in FILE_MB], rates, published=source)
        axes.set_xlabel("file [MB]")
    places[0].set_ylabel("throughput [MB/s]")
    handles: list[Any] = [
        Line2D([], [], color=COLOUR[c], linewidth=8, label=WORDS[c]) for c in CODES
    ]
    legend_above(figure, 4, [*handles, Line2D([], [], label=_PUBLISHED, **DASH)])
    return CaptionedFigure(
        figure,
        "A lone file through the file system (FUSE) and past it (Direct), 100 nodes. Bars: simulated; "
        "dashes: the source. NC was seen by the fit. Writes through FUSE get slower with size because the "
        "list of block keys is copied at each write; that this costs RS and LRC 1.4 and 1.6 times as much "
        "is predicted.",
    )


def draw_traffic(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 6 of the source: traffic while httpd is written, read, and read with dead nodes."""
    cells = [
        (code, op)
        for code in ("RS", "LRC")
        for op in ("write", "read", "degraded read")
    ]
    titles = [f"{WORDS[code]}, {op}" for code, op in cells]
    figure, places = panels((12.5, 6.2), titles, lines=2, sharex=True, sharey=True)
    for axes, (code, op) in zip(places, cells, strict=True):
        here = select(rows, experiment="traffic series", code=code, op=op).sort("at_s")
        axes.step(
            here["at_s"],
            here["bin_bytes"] / MEGABYTE,
            where="mid",
            color=COLOUR[code],
            linewidth=2,
        )
        points = plotted(6, code=code, series=op)
        axes.plot(points["x"], points["y"], color=COLOUR[code], **_POINT)
        axes.set_ylim(0, 30)
    for axes in places[3:]:
        axes.set_xlabel("time [s]")
    for axes in places[::3]:
        axes.set_ylabel(f"traffic [MB in {BIN_S['6']} s]")
    handles = [
        Line2D([], [], color="#444444", linewidth=2, label="simulated"),
        Line2D(
            [], [], color="#444444", label="published, median of five runs", **_POINT
        ),
    ]
    legend_above(figure, 2, handles)
    return CaptionedFigure(
        figure,
        "The httpd archive written, read, and read after 5 of 100 nodes were killed. Traffic is what passes "
        "the proxy's interface in 5 s, the source's own scale although it calls it MB/s. Seen by the fit: "
        "how long RS's write takes. The source's reads take 95 s, so our requests of reads are too slow; "
        "that RS's degraded read takes 125 s and LRC's 90 s, no mechanism here gives.",
    )


_SHOWN_MIN, _SHOWN_MB = 74, 20
_BIN_MIN = BIN_S["7"] / 60
# The source's names of kinds; all others are other.
_KIND_OF = {"exists": "check", "read": "read", "write": "write", "cluster": "cluster"}


def draw_replay(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 7 of the source: nodes that come and go, and stacked traffic under RS and LRC, by kind."""
    figure = new_figure((12.5, 8.2))
    grid = figure.subplots(3, 2, sharex=True, height_ratios=(1, 2.4, 2.4))
    nodes = select(rows, experiment="replay nodes")
    minutes = [*(nodes["at_s"] / 60).to_list(), _SHOWN_MIN]
    counts = [*nodes["nodes"].to_list(), nodes["nodes"][-1]]
    for letter, axes in zip("ab", grid[0], strict=True):
        axes.step(minutes, counts, where="post", color="#222222", linewidth=1.8)
        axes.set_title(f"({letter}) nodes")
        axes.set_yticks([114, 116, 118])
    for letters, line, code in zip(("cd", "ef"), grid[1:], ("RS", "LRC"), strict=True):
        simulated = select(rows, experiment="replay series", code=code)
        simulated = simulated.select(
            "traffic_kind", "at_s", pl.col("bin_bytes") / MEGABYTE
        )
        _stack(line[0], simulated, f"({letters[0]}) {code}, simulated")
        kinds = pl.col("series").replace_strict(_KIND_OF, default="other")
        _stack(
            line[1],
            plotted(7, code=code).select(kinds, "x", "y"),
            f"({letters[1]}) {code}, published",
        )
        line[0].set_ylabel("traffic [MB in 20 s]")
    for axes in grid[2]:
        axes.set(xlabel="time [min]", xlim=(0, _SHOWN_MIN))
    figure.legend(
        *grid[1, 0].get_legend_handles_labels(),
        loc="outside upper left",
        ncols=len(KINDS),
    )
    runs = {
        row["code"]: row
        for row in select(rows, experiment="replay").iter_rows(named=True)
    }
    read = {code: row["read_after_bytes"] for code, row in runs.items()}
    repair_s = {code: number_text(row["repair_mean_s"]) for code, row in runs.items()}
    return CaptionedFigure(
        figure,
        "Traffic at the storage nodes while nodes leave and join, the write of httpd at the left cut off. A "
        f"repair takes {repair_s['RS']} s under RS and {repair_s['LRC']} s under LRC, nearly all of it "
        "looking for keys and writing empty ones. Repairs read "
        f"{number_text(read['RS'] / read['LRC'])} times as much under RS as under LRC, "
        f"{number_text(read['RS'] / read['LRC as run'])} times as much as under LRC with groups of two; "
        "the published runs say 4.5 to 5.6 per finished repair. The source's RS run stops mending after "
        "minute 28.",
    )


def _stack(axes: Axes, traffic: pl.DataFrame, title: str) -> None:
    """Draw traffic, as rows of kind, second and megabytes, in bars on top of each other."""
    bins = np.arange(round(_SHOWN_MIN / _BIN_MIN))
    floor = np.zeros(len(bins))
    for index, kind in enumerate(KINDS):
        sizes = np.zeros(len(bins))
        for name, second, megabytes in traffic.iter_rows():
            if name == kind and (where := round(second / BIN_S["7"])) < len(bins):
                sizes[where] += megabytes
        middles = (bins + 0.5) * _BIN_MIN
        axes.bar(
            middles,
            sizes,
            bottom=floor,
            width=_BIN_MIN,
            color=COLOURS[index],
            label=kind,
            linewidth=0,
        )
        floor += sizes
    axes.set(title=title, ylim=(0, _SHOWN_MB))
