"""The study's figures: each turns measured rows into a picture and a caption, and does nothing else."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.ticker import FuncFormatter

from stripesim.scenarios.figures.captions import three_digits
from stripesim.scenarios.figures.kernels import draw_copies
from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS, log_axis
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import format_size
from stripesim.scenarios.studies.dachary2013.claims import TIMES, load, simulate_claims
from stripesim.scenarios.studies.dachary2013.runs import buffers as charged_buffers

SMALL_BYTES, LARGE_BYTES = 24 << 10, 1 << 20
SCHEME = "rs:6,2"


def draw(rows: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw every figure; see the functions."""
    with styled():
        return {
            "roofline": draw_roofline(rows),
            "kernel-and-copies": draw_copies(
                rows.filter(pl.col("source") == "measured"),
                rows.filter(pl.col("source") != "measured"),
                scheme=SCHEME,
                sizes_bytes=[SMALL_BYTES, LARGE_BYTES],
                buffers=charged_buffers(),
            ),
            "operations": draw_operations(rows),
            "ratios": draw_ratios(rows),
        }


def _select(rows: pl.DataFrame, **where: Any) -> pl.DataFrame:
    selected = rows
    for name, value in where.items():
        selected = selected.filter(pl.col(name) == value)
    return selected


def _near(rows: pl.DataFrame, size_bytes: int) -> pl.DataFrame:
    """Rows of nearly a size: plugins and chunks round it up."""
    return rows.filter(pl.col("size_bytes").is_between(size_bytes, int(1.2 * size_bytes)))


def _seconds(rows: pl.DataFrame, size_bytes: int, **where: Any) -> float | None:
    found = _near(_select(rows, cores=1, buffers="warm", **where), size_bytes)
    return None if found.is_empty() else float(found["seconds_median"][0])


def draw_roofline(rows: pl.DataFrame) -> CaptionedFigure:
    """Encode speed by data size: kernel alone and through pyeclib, under what copying allows."""
    figure = new_figure((12.5, 5.4))
    panels = figure.subplots(1, 2, sharey=True)
    lines = (
        ("the machine's copy, memcpy", "memcpy", "memcpy"),
        ("ISA-L alone", "isal_cauchy", "encode"),
        ("ISA-L through pyeclib", "isa_l_rs_cauchy", "encode"),
        ("liberasurecode through pyeclib", "liberasurecode_rs_vand", "encode"),
    )
    sizes: list[int] = []
    for letter, axes, buffers in zip("ab", panels, ("warm", "cold"), strict=True):
        for index, (label, backend, op) in enumerate(lines):
            mine = _select(rows, source="measured", backend=backend, op=op, buffers=buffers, cores=1)
            mine = mine.filter(pl.col("scheme").is_in([SCHEME, "none"])).sort("size_bytes")
            y, x = mine["bytes_per_s"] * 1e-9, mine["size_bytes"].to_list()
            look = {"color": COLOURS[index], "linestyle": LINES[index], "marker": MARKERS[index]}
            axes.plot(x, y, label=label, linewidth=2, **look)
            low, high = (mine["size_bytes"] / mine[name] * 1e-9 for name in ("seconds_p90", "seconds_p10"))
            axes.vlines(x, low, high, color=COLOURS[index], linewidth=1.6)
            sizes = sorted({*sizes, *x}) if index == 0 else sizes
        axes.set_title(f"({letter}) {buffers} buffers")
        axes.set_xlabel("data of one call")
    theirs = _select(rows, op="encode", scheme=SCHEME).filter(pl.col("source") != "measured")
    for backend, marker in (("isa:cauchy", "P"), ("jerasure:reed_sol_van", "X")):
        mine = _select(theirs, backend=backend)
        panels[0].plot(mine["size_bytes"], mine["bytes_per_s"] * 1e-9, marker=marker, linestyle="none",
                       color="#222222", markersize=9, label=f"Ceph's plugin, {backend}")  # fmt: skip
    shown = [size for size in sizes if size not in (LARGE_BYTES, 24 << 20)]
    for axes in panels:
        log_axis(axes, "x", shown, [format_size(size) for size in shown])
        axes.tick_params(axis="x", labelrotation=30)
    log_axis(panels[0], "y", [0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"])
    panels[0].set_ylabel("data encoded, copied [GB/s]")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    alone = _select(rows, source="measured", backend="isal_cauchy", op="encode", cores=1)
    shares = sorted(alone["roofline"].drop_nulls().to_list())
    caption = (
        "Encoding with 6 + 2 on one core. Counting every byte read and written, ISA-L alone runs at "
        f"{three_digits(shares[0])} to {three_digits(shares[-1])} times the speed of copying: "
        "memory is what it waits for. Through pyeclib the copies and headers cost several times "
        "the kernel. Whiskers: 10th to 90th percentile."
    )
    return CaptionedFigure(figure, caption)


def draw_operations(rows: pl.DataFrame) -> CaptionedFigure:
    """Encode, decode and reconstruct of 1 MiB by every backend."""
    figure = new_figure((12.5, 5.2))
    axes = figure.subplots()
    here = _near(_select(rows, scheme=SCHEME, buffers="warm", cores=1), LARGE_BYTES)
    here = here.filter(~pl.col("backend").str.contains("isal_cauchy_"))
    order = [("encode", 0), ("decode", 1), ("decode", 2), ("reconstruct", 1)]
    backends = here["backend"].unique(maintain_order=True).to_list()
    for index, (op, erasures) in enumerate(order):
        mine = {
            row["backend"]: row["bytes_per_s"] * 1e-9
            for row in _select(here, op=op, erasures=erasures).iter_rows(named=True)
        }
        places = [place + (index - 1.5) * 0.2 for place, name in enumerate(backends) if name in mine]
        words = op if not erasures or op == "reconstruct" else f"{op}, {erasures} lost"
        axes.bar(places, [mine[name] for name in backends if name in mine], width=0.19,
                 color=COLOURS[index], label=words)  # fmt: skip
    names = [name.replace(":", ":\n").replace("_rs_", "\nrs_") for name in backends]
    axes.set_xticks(range(len(backends)), names, fontsize=11)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("data [GB/s]")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=4)
    caption = (
        "One core, 1 MiB in 6 + 2, warm buffers. Names with a colon: Ceph 16.2.15's plugins, but "
        "cauchy_good, where this machine has Jerasure, its own function with losses drawn from all "
        "chunks; isal_cauchy: the kernel alone; the others through pyeclib, copies and headers included. "
        "Results were compared with what they must be, except in the plugins' rows."
    )
    return CaptionedFigure(figure, caption)


def draw_ratios(rows: pl.DataFrame) -> CaptionedFigure:
    """Time of each of the source's cases over encoding with 6 + 2: published and measured."""
    figure = new_figure((11.5, 4.6))
    axes = figure.subplots()
    claims = {claim.id: claim for claim in load()}
    values, _ = simulate_claims(rows)
    labels, right = [], 0
    for index, (key, (case, reference)) in enumerate(TIMES.items()):
        unit = claims[reference].published
        published, simulated = claims[key].published, values[key]
        assert isinstance(unit, float) and isinstance(published, float)
        labels.append(
            f"{'2014' if '2014' in key else '2013'}\n{claims[key].scheme}\n{case.op} {case.erasures or ''}"
        )
        axes.bar(index - 0.19, published / unit, width=0.36, color=COLOURS[4],
                 label="source" if not index else None)  # fmt: skip
        if simulated is not None:
            axes.bar(index + 0.19, simulated / unit, width=0.36, color=COLOURS[0],
                     label="measured here" if not index else None)  # fmt: skip
            right += abs(simulated / published - 1) <= (claims[key].tolerance or 0.0)
    axes.axhline(1, color="#444444", linewidth=1)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_ylabel("time over encoding 6 + 2")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=2)
    caption = (
        "Each of the source's cases as a multiple of its encoding with 6 + 2 (cauchy_good, packet size "
        "3072), on its machine of "
        f"2012 and as measured now. {right} of {len(TIMES)} ratios agree within the tolerance."
    )
    return CaptionedFigure(figure, caption)
