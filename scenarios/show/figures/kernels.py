"""Draw kernels: the simulated time of a call next to measured ones, and speed by size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import polars as pl

from stripesim.calibration.kernels.buffers import ceph_buffers
from stripesim.calibration.kernels.store import default_table
from stripesim.models.coding.parse import parse_scheme
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.problems import KernelError
from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    key,
    series_style,
)
from stripesim.sim.ceph.cluster import BUFFERED_KERNELS

#: Kernel of the simulator's table, the plugin of Ceph that runs the same code, and the name of both.
_PAIRS: Final = (
    ("isa_l_rs_cauchy", "isa:cauchy", "ISA-L"),
    ("jerasure_rs_vand", "jerasure:reed_sol_van", "Jerasure"),
)
_ALONE: Final = "isal_cauchy"
#: Label of the simulator's bar.
_SIMULATOR: Final = "simu-\nlator"
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
    """The time of a call in two parts, the second on top."""

    label: str
    first_s: float
    second_s: float = 0.0
    colour: str = _KERNEL

    @property
    def total_s(self) -> float:
        """Return the whole time [s]."""
        return self.first_s + self.second_s


def draw_copies(
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    *,
    scheme: str,
    sizes_bytes: Sequence[int],
    buffers: EncodeBufferModel | None = None,
) -> CaptionedFigure:
    """Draw the simulated time of an encode call next to the kernel alone, Ceph's plugin and pyeclib."""
    panels = []
    errors = []
    for size in sizes_bytes:
        groups = [
            list(_bars(pair, rows, ceph, scheme, size, buffers)) for pair in _PAIRS
        ]
        panels.append(_size_panel(f"{size_text(size)} of data", groups))
        for (_, _, name), bars in zip(_PAIRS, groups, strict=True):
            error = _error(bars)
            if error is not None:
                errors.append(f"{name} at {size_text(size)} {100 * error:+.0f} %")
    caption = (
        f"One encode call of {scheme_label(scheme)}. The simulator charges the kernel without pyeclib's "
        "copies and, for ISA-L, a model of the buffers of Ceph's plugin, fitted to isa:cauchy. "
    )
    if errors:
        caption += f"Charged over measured on Ceph: {'; '.join(errors)}. "
    caption += "For pyeclib, the upper part is the same call of the null code, which computes nothing."
    keys = [
        key("kernel (pyeclib: call less the null code)", _KERNEL),
        key("buffers, copies", _BUFFERS),
        key("whole call", _PLUGIN),
    ]
    panels[0] = replace(panels[0], layers=[*panels[0].layers, *keys])
    size_inch = (max(11.5, 6.2 * len(sizes_bytes)), 5.2)
    return drawn(
        FigureSpec(size=size_inch, panels=panels, lettered=True, caption=caption)
    )


def _bars(
    pair: tuple[str, str, str],
    rows: pl.DataFrame,
    ceph: pl.DataFrame,
    scheme: str,
    size_bytes: int,
    buffers: EncodeBufferModel | None,
) -> Iterator[_Bar]:
    """Yield the known times of a call: alone, simulated, of Ceph's plugin, of pyeclib."""
    backend, plugin, name = pair
    if name == "ISA-L":
        alone = _row(rows, scheme, size_bytes, backend=_ALONE, **_WARM)
        if alone:
            yield _Bar(f"{name}\nalone", alone["seconds_median"])
    charge = charge_of(backend, scheme, size_bytes, buffers)
    if charge:
        yield _Bar(_SIMULATOR, *charge)
    of_plugin = _row(ceph, scheme, size_bytes, backend=plugin)
    if of_plugin:
        label = f"Ceph,\n{plugin.partition(':')[0]}"
        yield _Bar(label, of_plugin["seconds_median"], colour=_PLUGIN)
    call = _row(rows, scheme, size_bytes, backend=backend, **_WARM)
    if call and call["copy_seconds_median"] is not None:
        seconds = call["seconds_median"]
        copies = min(call["copy_seconds_median"], seconds)
        yield _Bar(f"pyeclib,\n{name}", seconds - copies, copies)


def _error(bars: Sequence[_Bar]) -> float | None:
    """Return the relative error of the simulated time against Ceph's plugin, if both are known."""
    simulated = [bar.total_s for bar in bars if bar.label == _SIMULATOR]
    measured = [bar.total_s for bar in bars if bar.colour == _PLUGIN]
    if not simulated or not measured:
        return None
    return simulated[0] / measured[0] - 1


def _size_panel(title: str, groups: Sequence[Sequence[_Bar]]) -> PanelSpec:
    """Specify the bars of one size, with room between groups."""
    positions = []
    position = 0.0
    for group in groups:
        positions += [position + index for index in range(len(group))]
        position += len(group) + 0.6
    bars = [bar for group in groups for bar in group]
    first_us = [bar.first_s * 1e6 for bar in bars]
    total_us = [bar.total_s * 1e6 for bar in bars]
    second_us = [bar.second_s * 1e6 for bar in bars]
    layers = [
        LayerSpec(
            mark="bars",
            x=positions,
            y=first_us,
            style={"color": [bar.colour for bar in bars], "thick": 0.66},
        ),
        LayerSpec(
            mark="bars",
            x=positions,
            y=second_us,
            low=first_us,
            style={"color": _BUFFERS, "thick": 0.66},
        ),
        LayerSpec(
            mark="text",
            x=positions,
            y=total_us,
            texts=[number_text(time_us) for time_us in total_us],
            style={"fontsize": 11},
        ),
    ]
    return PanelSpec(
        title=title,
        layers=layers,
        x=AxisSpec(ticks=positions, names=[bar.label for bar in bars], size=10.5),
        y=AxisSpec(label="time of a call [µs]", low=0, margin=0.12),
    )


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
    panels = []
    for kind in kinds:
        own = rows.filter(
            (pl.col("buffers") == kind) & (pl.col("scheme").is_in([scheme, "none"]))
        )
        panels.append(_speed_panel(own, names, f"{kind} buffers"))
    caption = (
        f"Encoding with {scheme_label(scheme)}: bytes of data per second of the median call, whiskers from "
        "the 10th to the 90th percentile. memcpy counts each byte once. Crosses: total of all cores."
    )
    return drawn(
        FigureSpec(
            size=(max(8.0, 6.3 * len(kinds)), 5.4),
            panels=panels,
            share="y",
            lettered=True,
            caption=caption,
        )
    )


def _speed_panel(rows: pl.DataFrame, names: Sequence[str], title: str) -> PanelSpec:
    ticks: list[int] = []
    for size in rows["size_bytes"].unique().sort():
        # A size too near to the one before has no room for a label.
        if not ticks or size >= 1.8 * ticks[-1]:
            ticks.append(size)
    return PanelSpec(
        title=title,
        layers=[
            layer
            for index, name in enumerate(names)
            for layer in _speed_line(rows, name, series_style(index))
        ],
        x=AxisSpec(
            label="data of one call",
            scale="log",
            ticks=ticks,
            format="size",
            rotation=30,
        ),
        y=AxisSpec(label="data encoded, copied [GB/s]", scale="log"),
    )


def _speed_line(
    rows: pl.DataFrame, name: str, style: Mapping[str, str]
) -> Iterator[LayerSpec]:
    """Yield the speed of one core with its whiskers, and that of all cores."""
    op = "memcpy" if name == "memcpy" else "encode"
    own = rows.filter((pl.col("backend") == name) & (pl.col("op") == op))
    own = own.sort("size_bytes")
    one_core = own.filter(pl.col("cores") == 1)
    all_cores = own.filter(pl.col("cores") > 1)
    x = one_core["size_bytes"].to_list()
    yield LayerSpec(
        mark="marked line",
        x=x,
        y=(one_core["bytes_per_s"] * 1e-9).to_list(),
        label=name,
        style=style,
    )
    low = one_core["size_bytes"] / one_core["seconds_p90"] * 1e-9
    high = one_core["size_bytes"] / one_core["seconds_p10"] * 1e-9
    colour = {"color": style["color"]}
    yield LayerSpec(
        mark="whiskers", x=x, low=low.to_list(), high=high.to_list(), style=colour
    )
    yield LayerSpec(
        mark="points",
        x=all_cores["size_bytes"].to_list(),
        y=(all_cores["bytes_per_s"] * 1e-9).to_list(),
        style={**colour, "marker": "x", "markersize": 9},
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
