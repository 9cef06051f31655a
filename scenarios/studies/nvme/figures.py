"""The study's figures: measured beside simulated, each with its caption."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import polars as pl
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.studies.nvme.measured import MeasuredRow

# Okabe and Ito; a marker each, so that no reader depends on colour.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00")
_MARKERS: Final = ("o", "s", "^", "v", "D", "P")
Found = Mapping[str, Mapping[str, Any]]


def draw(
    rows: Sequence[MeasuredRow], simulated: pl.DataFrame
) -> dict[str, CaptionedFigure]:
    """Draw every figure for which there are rows."""
    found = {row["row_id"]: row for row in simulated.iter_rows(named=True)}
    known = [row for row in rows if row.id in found]
    pinned = [row for row in known if row.threads_per_node and "iops" in row.measured]
    with styled():
        drawn = {
            "threads": _rates(
                pinned,
                found,
                lambda row: (row.threads_per_node or 0) / row.osds_per_node,
                "hardware threads per OSD",
            ),
            "placement-groups": _rates(
                _groups(known),
                found,
                lambda row: row.pg_num or 1,
                "placement groups of the pool",
                loglog=True,
            ),
            "response": _response(known, found),
            "coding": _coding(known, found),
        }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _rates(
    rows: Sequence[MeasuredRow],
    found: Found,
    x: Callable[[MeasuredRow], float],
    over: str,
    loglog: bool = False,
) -> CaptionedFigure | None:
    """Draw requests per second over `x`, reads and writes apart: markers are measured, lines simulated."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        point = (x(row), row.measured["iops"], float(found[row.id]["iops"]))
        curves.setdefault(row.op, []).append(point)
    curves = {op: sorted(points) for op, points in curves.items() if len(points) > 2}
    if not curves:
        return None
    figure = new_figure((8.5, 5.4))
    axes = figure.subplots()
    for (op, points), colour, marker in zip(
        curves.items(), _COLOURS, _MARKERS, strict=False
    ):
        at, measured, simulated = zip(*points, strict=True)
        axes.plot(at, measured, marker, color=colour, label=f"{op}, measured")
        axes.plot(at, simulated, "-", color=colour, label=f"{op}, simulated")
    if loglog:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.tick_params(axis="x", labelrotation=30)
        axes.yaxis.set_major_locator(FixedLocator([1e5, 2e5, 5e5, 1e6, 2e6, 5e6]))
    else:
        axes.set_ylim(bottom=0)
    axes.set(
        xlabel=over,
        ylabel="10⁶ requests per second",
        title="4 KiB at random, 3 replicas",
    )
    axes.set_xticks(
        sorted({point[0] for points in curves.values() for point in points})
    )
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend()
    return CaptionedFigure(
        figure,
        f"Requests of 4 KiB per second against {over}{', both axes logarithmic' if loglog else ''}. "
        "Markers: measured. Lines: simulated; both ends of each curve are among the rows that were fitted.",
    )


def _groups(rows: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """Return rows of 4 KiB on clusters whose number of placement groups was varied."""
    widest = {
        row.cluster: len(
            {
                other.pg_num
                for other in rows
                if other.cluster == row.cluster and other.pg_num
            }
        )
        for row in rows
    }
    small = [row for row in rows if row.block_bytes == 4096 and "iops" in row.measured]
    return [
        row
        for row in small
        if row.pg_num and widest[row.cluster] > 2 and not row.threads_per_node
    ]


def _label(row: MeasuredRow) -> str:
    """Name a row's scheme, with what a release does for erasure codes."""
    kind = (
        "partial "
        if row.generation == "reef-partial-read"
        else "fast "
        if row.fast_ec
        else ""
    )
    return row.scheme if row.scheme == "rep:3" else kind + row.scheme


def _response(rows: Sequence[MeasuredRow], found: Found) -> CaptionedFigure | None:
    """Latency against requests per second: measured dashed with markers, simulated solid."""
    panels: dict[str, dict[str, list[MeasuredRow]]] = {}
    for row in rows:
        if (
            {"iops", "latency_mean_ms"} <= row.measured.keys()
            and not row.threads_per_node
            and not row.part
        ):
            title = f"{row.op}, {row.block_bytes // 1024} KiB"
            panels.setdefault(title, {}).setdefault(_label(row), []).append(row)
    panels = {
        title: {label: points for label, points in curves.items() if len(points) > 2}
        for title, curves in panels.items()
    }
    panels = {title: curves for title, curves in panels.items() if curves}
    if not panels:
        return None
    figure = new_figure((8.5, 5.0 * len(panels)))
    for axes, (title, curves) in zip(
        figure.subplots(len(panels), 1, squeeze=False)[:, 0],
        panels.items(),
        strict=True,
    ):
        for index, (label, points) in enumerate(curves.items()):
            colour = _COLOURS[index % len(_COLOURS)]
            axes.plot(
                [row.measured["iops"] / 1e3 for row in points],
                [row.measured["latency_mean_ms"] for row in points],
                "--" + _MARKERS[index % len(_MARKERS)],
                color=colour,
                label=label,
            )
            axes.plot(
                [found[row.id]["iops"] / 1e3 for row in points],
                [found[row.id]["latency_mean_ms"] for row in points],
                "-",
                color=colour,
            )
        axes.set(yscale="log", xlim=(0, None))
        axes.yaxis.set_major_locator(FixedLocator([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set(xlabel="10³ requests per second", ylabel="mean latency, ms")
        axes.set_title(f"{title}: measured dashed, simulated solid")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return CaptionedFigure(
        figure,
        "Mean latency against requests per second as the number in flight grows. Dashed with markers: "
        "measured. Solid: simulated. Erasure coding is predicted.",
    )


def _coding(rows: Sequence[MeasuredRow], found: Found) -> CaptionedFigure | None:
    """Best rate of each code over that of replication on the same cluster."""
    best: dict[tuple[str, str, int], dict[str, tuple[float, float]]] = {}
    for row in rows:
        if "iops" not in row.measured or row.part:
            continue
        label = _label(row)
        cell = best.setdefault((row.cluster, row.op, row.block_bytes), {})
        measured, simulated = cell.get(label, (0.0, 0.0))
        cell[label] = (
            max(measured, row.measured["iops"]),
            max(simulated, float(found[row.id]["iops"])),
        )
    bars: list[tuple[str, float, float]] = []
    for (cluster, op, size), cell in best.items():
        bases = [
            name for name in cell if parse_scheme(name.split()[-1]).kind == "replicated"
        ]
        if bases and len(cell) > 1:
            base = cell[bases[0]]
            bars += [
                (
                    f"{name}, {op} {size // 1024}K, {cluster}",
                    one[0] / base[0],
                    one[1] / base[1],
                )
                for name, one in cell.items()
                if name != bases[0]
            ]
    if not bars:
        return None
    figure = new_figure((8.5, 1.2 + 0.46 * len(bars)))
    axes = figure.subplots()
    y = range(len(bars))
    axes.barh(
        [at - 0.2 for at in y],
        [bar[1] for bar in bars],
        0.38,
        color=_COLOURS[0],
        label="measured",
    )
    axes.barh(
        [at + 0.2 for at in y],
        [bar[2] for bar in bars],
        0.38,
        color=_COLOURS[1],
        label="simulated",
    )
    axes.set_yticks(list(y), [bar[0] for bar in bars], fontsize=10)
    axes.invert_yaxis()
    axes.set_xlabel("requests per second over those of replication")
    axes.axvline(1, color="0.5", linewidth=0.8)
    axes.legend(loc="lower right")
    axes.set_title("Erasure coding over replication")
    return CaptionedFigure(
        figure,
        "Highest rate of each code over that of 3-replication on the same cluster. No code was fitted.",
    )
