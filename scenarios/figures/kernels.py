"""Figures of kernels: what the simulator charges for a call beside what was measured, and speed by size."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.kernels.store import default_table
from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.kernel.cost import KernelTableError
from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.figures.panels import COLOURS, LINES, MARKERS, note
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.sim.ceph.cluster import BUFFERED_KERNELS

#: Kernel of the simulator's table, the plugin of Ceph that runs the same code, and the words for both.
_PAIRS: Final = (
    ("isa_l_rs_cauchy", "isa:cauchy", "ISA-L"),
    ("jerasure_rs_vand", "jerasure:reed_sol_van", "Jerasure"),
)
_ALONE: Final = "isal_cauchy"
_KERNEL, _BUFFERS, _PLUGIN = COLOURS[0], COLOURS[5], "#8C8C8C"
#: Data sizes count as the same up to this factor: plugins and chunks round them up.
_NEAR: Final = 1.2
_MEBIBYTE: Final = 1 << 20


def charge_of(
    backend: str, scheme: str, size_bytes: int, buffers: EncodeBufferModel | None = None
) -> tuple[float, float] | None:
    """Return what the simulator charges for an encode call [s], kernel and buffers; None: unknown."""
    try:
        cost = default_table().cost(scheme=scheme, op="encode", backend=backend)
    except KernelTableError:
        return None
    code = parse_scheme(scheme)
    kernel_ns = cost.duration_ns(size_bytes, without_copy=cost.copy is not None)
    buffers_ns = 0.0
    if backend.startswith(BUFFERED_KERNELS):
        buffers_ns = (buffers or ceph_buffers()).duration_ns(
            size_bytes, k=code.k, m=code.m
        )
    return kernel_ns * 1e-9, buffers_ns * 1e-9


class _Bar(NamedTuple):
    words: str
    first_s: float
    second_s: float
    colour: str


def draw_copies(
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    *,
    scheme: str,
    sizes_bytes: Sequence[int],
    buffers: EncodeBufferModel | None = None,
) -> CaptionedFigure:
    """Draw the charge for an encode call, beside the kernel alone, Ceph's plugin and pyeclib."""
    with styled():
        figure = new_figure((max(11.5, 6.2 * len(sizes_bytes)), 5.2))
        panels = figure.subplots(1, len(sizes_bytes), squeeze=False)[0]
        said = []
        for letter, axes, size in zip("abcdef", panels, sizes_bytes, strict=False):
            for words, error in _draw_size(axes, rows, ceph, scheme, size, buffers):
                said.append(f"{words} at {format_size(size)} {error:+.0%}")
            axes.set_title(f"({letter}) {format_size(size)} of data")
            axes.set_ylabel("time of a call [µs]" if letter == "a" else "")
        figure.legend(
            handles=[
                Patch(
                    color=_KERNEL,
                    label="kernel; for pyeclib the call less the null code",
                ),
                Patch(color=_BUFFERS, label="buffers, copies"),
                Patch(color=_PLUGIN, label="whole call"),
            ],
            loc="outside upper left",
            ncols=3,
            fontsize=11.5,
        )
    caption = (
        f"One encode call of {scheme_label(scheme)}. The simulator charges the kernel without pyeclib's "
        "copies and, for ISA-L, a model of the buffers that Ceph's plugin makes, fitted to isa:cauchy. "
        + (f"Charged over measured on Ceph: {'; '.join(said)}. " if said else "")
        + "For pyeclib the upper part is the same call of the code that computes nothing."
    )
    return CaptionedFigure(figure, caption)


def _draw_size(
    axes: Axes,
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    scheme: str,
    size_bytes: int,
    buffers: EncodeBufferModel | None,
) -> list[tuple[str, float]]:
    """Draw one size; return how far the charges are from Ceph's plugins."""
    where = {"scheme": scheme, "op": "encode"}
    place, places, words, errors = 0.0, [], [], []
    for backend, plugin, name in _PAIRS:
        charge = charge_of(backend, scheme, size_bytes, buffers)
        theirs = _row(ceph, size_bytes, **where, backend=plugin)
        bars = []
        alone = _row(rows, size_bytes, **where, backend=_ALONE, **_WARM)
        if alone and name == "ISA-L":
            bars.append(_Bar(f"{name}\nalone", alone["seconds_median"], 0.0, _KERNEL))
        if charge:
            bars.append(_Bar("simu-\nlator", *charge, _KERNEL))
        if theirs:
            bars.append(
                _Bar(
                    f"Ceph,\n{plugin.partition(':')[0]}",
                    theirs["seconds_median"],
                    0.0,
                    _PLUGIN,
                )
            )
            if charge:
                errors.append((name, sum(charge) / theirs["seconds_median"] - 1))
        call = _row(rows, size_bytes, **where, backend=backend, **_WARM)
        if call and call["copy_seconds_median"] is not None:
            copies = min(call["copy_seconds_median"], call["seconds_median"])
            bars.append(
                _Bar(
                    f"pyeclib,\n{name}",
                    call["seconds_median"] - copies,
                    copies,
                    _KERNEL,
                )
            )
        for bar in bars:
            whole_us = (bar.first_s + bar.second_s) * 1e6
            axes.bar(place, bar.first_s * 1e6, width=0.66, color=bar.colour)
            if bar.second_s:
                axes.bar(
                    place,
                    bar.second_s * 1e6,
                    width=0.66,
                    bottom=bar.first_s * 1e6,
                    color=_BUFFERS,
                )
            note(axes, number_text(whole_us), (place, whole_us), (0, 3), fontsize=11)
            places.append(place)
            words.append(bar.words)
            place += 1
        place += 0.6
    axes.set_xticks(places, words, fontsize=10.5)
    axes.margins(y=0.12)
    return errors


_WARM: Final[Mapping[str, Any]] = {"buffers": "warm", "cores": 1}


def _row(rows: pl.DataFrame, size_bytes: int, **where: Any) -> dict[str, Any] | None:
    """Return the first row of nearly a size that has these values."""
    if rows.is_empty():
        return None
    found = rows.filter(
        pl.col("size_bytes").is_between(size_bytes, int(_NEAR * size_bytes)),
        *(pl.col(name) == value for name, value in where.items()),
    )
    return None if found.is_empty() else found.row(0, named=True)


def draw_speeds(rows: pl.DataFrame, *, scheme: str) -> CaptionedFigure:
    """Draw encode speed by data size, warm and cold: every backend, the kernel alone, a copy."""
    kinds = [kind for kind in ("warm", "cold") if kind in rows["buffers"].to_list()]
    mine = rows.filter((pl.col("scheme") == scheme) & (pl.col("op") == "encode"))
    names = ["memcpy", *mine["backend"].unique(maintain_order=True)]
    with styled():
        figure = new_figure((max(8.0, 6.3 * len(kinds)), 5.4))
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for letter, axes, kind in zip("ab", panels, kinds, strict=False):
            here = rows.filter(
                (pl.col("buffers") == kind) & (pl.col("scheme").is_in([scheme, "none"]))
            )
            for index, name in enumerate(names):
                _draw_line(axes, here, name, index)
            axes.set(xscale="log", yscale="log", xlabel="data of one call")
            ticks: list[int] = []
            for size in here["size_bytes"].unique().sort():
                # Sizes that stand too near to the one before have no room for a label of their own.
                if not ticks or size >= 1.8 * ticks[-1]:
                    ticks.append(size)
            axes.set_xticks(ticks, [format_size(size) for size in ticks], rotation=30)
            axes.minorticks_off()
            axes.set_title(f"({letter}) {kind} buffers")
        panels[0].set_ylabel("data encoded, copied [GB/s]")
        panels[0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=11)
    return CaptionedFigure(
        figure,
        f"Encoding with {scheme_label(scheme)}: bytes of data per second of the median call, whiskers from "
        "the 10th to the 90th percentile; memcpy counts each byte once. Crosses: all cores at once, in sum.",
    )


def _draw_line(axes: Axes, rows: pl.DataFrame, name: str, index: int) -> None:
    op = "memcpy" if name == "memcpy" else "encode"
    mine = rows.filter((pl.col("backend") == name) & (pl.col("op") == op)).sort(
        "size_bytes"
    )
    one = mine.filter(pl.col("cores") == 1)
    style = index % len(COLOURS)
    x, y = one["size_bytes"].to_list(), one["bytes_per_s"] * 1e-9
    look: dict[str, Any] = {
        "color": COLOURS[style],
        "linestyle": LINES[style],
        "marker": MARKERS[style],
    }
    axes.plot(x, y, **look, linewidth=2, label=name)
    low, high = (
        one["size_bytes"] / one[column] * 1e-9
        for column in ("seconds_p90", "seconds_p10")
    )
    axes.vlines(x, low, high, color=COLOURS[style], linewidth=1.6)
    every = mine.filter(pl.col("cores") > 1)
    axes.plot(
        every["size_bytes"],
        every["bytes_per_s"] * 1e-9,
        "x",
        color=COLOURS[style],
        markersize=9,
    )


def draw_kernels(
    rows: Sequence[Mapping[str, Any]], ceph: Sequence[Mapping[str, Any]]
) -> dict[str, CaptionedFigure]:
    """Draw ``kernel-speed-<scheme>`` of each code, ``kernel-and-copies-<scheme>`` of Reed-Solomon codes."""
    mine = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    listed = [
        {**row, "backend": str(row["backend"]).removeprefix("ceph ")} for row in ceph
    ]
    theirs = pl.DataFrame(listed, infer_schema_length=None)
    figures = {}
    for scheme in [
        name for name in mine["scheme"].unique(maintain_order=True) if name != "none"
    ]:
        stem = scheme.replace(":", "").replace(",", "-")
        sizes = sorted(
            mine.filter(pl.col("scheme") == scheme)["size_bytes"].unique().to_list()
        )
        figures[f"kernel-speed-{stem}"] = draw_speeds(mine, scheme=scheme)
        if scheme.startswith("rs:"):
            shown = sorted(
                {sizes[0], min(sizes, key=lambda size: abs(size - _MEBIBYTE))}
            )
            figures[f"kernel-and-copies-{stem}"] = draw_copies(
                mine, theirs, scheme=scheme, sizes_bytes=shown
            )
    return figures
