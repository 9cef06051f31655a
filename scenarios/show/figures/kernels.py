"""Draw kernels: the simulated time of a call next to measured ones, and speed by size."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.kernels.store import default_table
from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.problems import KernelError
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.panels import COLOURS, LINES, MARKERS, note
from stripesim.scenarios.show.figures.results import CaptionedFigure, new_figure, styled
from stripesim.sim.ceph.cluster import BUFFERED_KERNELS

#: Kernel of the simulator's table, the plugin of Ceph that runs the same code, and the name of both.
_PAIRS: Final = (
    ("isa_l_rs_cauchy", "isa:cauchy", "ISA-L"),
    ("jerasure_rs_vand", "jerasure:reed_sol_van", "Jerasure"),
)
_ALONE: Final = "isal_cauchy"
_KERNEL = COLOURS[0]
_BUFFERS = COLOURS[5]
_PLUGIN = "#8C8C8C"
#: Factor up to which data sizes count as equal: plugins and chunks round them up.
_NEAR: Final = 1.2
_MEBIBYTE: Final = 1 << 20
_WARM: Final[Mapping[str, Any]] = {"buffers": "warm", "cores": 1}


def charge_of(
    backend: str, scheme: str, size_bytes: int, buffers: EncodeBufferModel | None = None
) -> tuple[float, float] | None:
    """Return the simulated time of an encode call [s] with buffers, or None if unknown."""
    try:
        cost = default_table().cost(scheme=scheme, op="encode", backend=backend)
    except KernelError:
        return None
    kernel_ns = cost.arithmetic_ns(size_bytes)
    buffers_ns = 0.0
    if backend.startswith(BUFFERED_KERNELS):
        code = parse_scheme(scheme)
        model = buffers or ceph_buffers()
        buffers_ns = model.duration_ns(size_bytes, k=code.k, m=code.m)
    return kernel_ns * 1e-9, buffers_ns * 1e-9


class _Bar(NamedTuple):
    label: str
    first_s: float
    second_s: float = 0.0
    colour: str = _KERNEL


def draw_copies(
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    *,
    scheme: str,
    sizes_bytes: Sequence[int],
    buffers: EncodeBufferModel | None = None,
) -> CaptionedFigure:
    """Draw the simulated time of an encode call next to the kernel alone, Ceph's plugin and pyeclib."""
    with styled():
        figure = new_figure((max(11.5, 6.2 * len(sizes_bytes)), 5.2))
        panels = figure.subplots(1, len(sizes_bytes), squeeze=False)[0]
        errors = []
        for letter, axes, size in zip("abcdef", panels, sizes_bytes, strict=False):
            for name, error in _draw_size(axes, rows, ceph, scheme, size, buffers):
                errors.append(f"{name} at {format_size(size)} {error:+.0%}")
            axes.set_title(f"({letter}) {format_size(size)} of data")
        panels[0].set_ylabel("time of a call [µs]")
        figure.legend(
            handles=[
                Patch(
                    color=_KERNEL,
                    label="kernel (pyeclib: call less the null code)",
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
        "copies and, for ISA-L, a model of the buffers of Ceph's plugin, fitted to isa:cauchy. "
    )
    if errors:
        caption += f"Charged over measured on Ceph: {'; '.join(errors)}. "
    caption += "For pyeclib, the upper part is the same call of the null code, which computes nothing."
    return CaptionedFigure(figure, caption)


def _draw_size(
    axes: Axes,
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    scheme: str,
    size_bytes: int,
    buffers: EncodeBufferModel | None,
) -> list[tuple[str, float]]:
    """Draw one size; return the relative errors against Ceph's plugins, by name."""
    position = 0.0
    positions = []
    labels = []
    errors = []
    for backend, plugin, name in _PAIRS:
        charge = charge_of(backend, scheme, size_bytes, buffers)
        of_plugin = _row(ceph, scheme, size_bytes, backend=plugin)
        call = _row(rows, scheme, size_bytes, backend=backend, **_WARM)
        bars = []
        if name == "ISA-L":
            alone = _row(rows, scheme, size_bytes, backend=_ALONE, **_WARM)
            if alone:
                bars.append(_Bar(f"{name}\nalone", alone["seconds_median"]))
        if charge:
            bars.append(_Bar("simu-\nlator", *charge))
        if of_plugin:
            seconds = of_plugin["seconds_median"]
            label = f"Ceph,\n{plugin.partition(':')[0]}"
            bars.append(_Bar(label, seconds, colour=_PLUGIN))
            if charge:
                errors.append((name, sum(charge) / seconds - 1))
        if call and call["copy_seconds_median"] is not None:
            seconds = call["seconds_median"]
            copies = min(call["copy_seconds_median"], seconds)
            bars.append(_Bar(f"pyeclib,\n{name}", seconds - copies, copies))
        for bar in bars:
            _draw_bar(axes, position, bar)
            positions.append(position)
            labels.append(bar.label)
            position += 1
        position += 0.6
    axes.set_xticks(positions, labels, fontsize=10.5)
    axes.margins(y=0.12)
    return errors


def _draw_bar(axes: Axes, x: float, bar: _Bar) -> None:
    first_us = bar.first_s * 1e6
    total_us = (bar.first_s + bar.second_s) * 1e6
    axes.bar(x, first_us, width=0.66, color=bar.colour)
    if bar.second_s:
        second_us = bar.second_s * 1e6
        axes.bar(x, second_us, width=0.66, bottom=first_us, color=_BUFFERS)
    note(axes, number_text(total_us), (x, total_us), (0, 3), fontsize=11)


def _row(
    rows: pl.DataFrame, scheme: str, size_bytes: int, **values: Any
) -> dict[str, Any] | None:
    """Return the first row of an encode call of about a size that has these values."""
    if rows.is_empty():
        return None
    values |= {"scheme": scheme, "op": "encode"}
    matching = rows.filter(
        pl.col("size_bytes").is_between(size_bytes, int(_NEAR * size_bytes)),
        *(pl.col(name) == value for name, value in values.items()),
    )
    return next(matching.iter_rows(named=True), None)


def draw_speeds(rows: pl.DataFrame, *, scheme: str) -> CaptionedFigure:
    """Draw encode speed by data size, warm and cold: every backend, the kernel alone, a copy."""
    kinds = [kind for kind in ("warm", "cold") if kind in rows["buffers"].to_list()]
    encoded = rows.filter((pl.col("scheme") == scheme) & (pl.col("op") == "encode"))
    names = ["memcpy", *encoded["backend"].unique(maintain_order=True)]
    with styled():
        figure = new_figure((max(8.0, 6.3 * len(kinds)), 5.4))
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for letter, axes, kind in zip("ab", panels, kinds, strict=False):
            panel = rows.filter(
                (pl.col("buffers") == kind) & (pl.col("scheme").is_in([scheme, "none"]))
            )
            for index, name in enumerate(names):
                _draw_line(axes, panel, name, index)
            axes.set(xscale="log", yscale="log", xlabel="data of one call")
            ticks: list[int] = []
            for size in panel["size_bytes"].unique().sort():
                # A size too near to the one before has no room for a label.
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
        "the 10th to the 90th percentile. memcpy counts each byte once. Crosses: total of all cores.",
    )


def _draw_line(axes: Axes, rows: pl.DataFrame, name: str, index: int) -> None:
    op = "memcpy" if name == "memcpy" else "encode"
    own = rows.filter((pl.col("backend") == name) & (pl.col("op") == op))
    own = own.sort("size_bytes")
    one_core = own.filter(pl.col("cores") == 1)
    all_cores = own.filter(pl.col("cores") > 1)
    style = index % len(COLOURS)
    colour = COLOURS[style]
    x = one_core["size_bytes"].to_list()
    axes.plot(
        x,
        one_core["bytes_per_s"] * 1e-9,
        color=colour,
        linestyle=LINES[style],
        marker=MARKERS[style],
        linewidth=2,
        label=name,
    )
    low = one_core["size_bytes"] / one_core["seconds_p90"] * 1e-9
    high = one_core["size_bytes"] / one_core["seconds_p10"] * 1e-9
    axes.vlines(x, low, high, color=colour, linewidth=1.6)
    axes.plot(
        all_cores["size_bytes"],
        all_cores["bytes_per_s"] * 1e-9,
        "x",
        color=colour,
        markersize=9,
    )


def draw_kernels(
    rows: Sequence[Mapping[str, Any]], ceph: Sequence[Mapping[str, Any]]
) -> dict[str, CaptionedFigure]:
    """Draw ``kernel-speed-<scheme>`` of each code, ``kernel-and-copies-<scheme>`` of Reed-Solomon codes."""
    own = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    plugins = [
        {**row, "backend": str(row["backend"]).removeprefix("ceph ")} for row in ceph
    ]
    of_ceph = pl.DataFrame(plugins, infer_schema_length=None)
    figures = {}
    for scheme in own["scheme"].unique(maintain_order=True):
        if scheme == "none":
            continue
        stem = scheme.replace(":", "").replace(",", "-")
        figures[f"kernel-speed-{stem}"] = draw_speeds(own, scheme=scheme)
        if not scheme.startswith("rs:"):
            continue
        sizes = own.filter(pl.col("scheme") == scheme)["size_bytes"].unique().sort()
        nearest = min(sizes, key=lambda size: abs(size - _MEBIBYTE))
        figures[f"kernel-and-copies-{stem}"] = draw_copies(
            own, of_ceph, scheme=scheme, sizes_bytes=sorted({sizes[0], nearest})
        )
    return figures
