"""Measured against simulated: one panel per metric, and the errors of the erasure-coded rows."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import matplotlib as mpl

from stripesim.calibration.ledger.verdicts import Entry, Ledger
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure
from stripesim.scenarios.schema.units import format_size
from stripesim.scenarios.studies.ceph16.claims import TOLERANCE
from stripesim.scenarios.studies.drawing import legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: Final = {
    "device_read": "device reads",
    "device_data_write": "device writes of data",
    "private_net": "cluster network",
    "device_write": "device writes with the log",
}
# Okabe and Ito; a marker each, so that no reader depends on colour.
_OPS: Final = {
    "write": ("#D55E00", "o", "write, pristine image"),
    "overwrite": ("#0072B2", "s", "overwrite"),
    "read": ("#009E73", "^", "read"),
    "degraded read": ("#CC79A7", "v", "degraded read"),
    "repair": ("#000000", "D", "repair"),
}
_STYLE: Final = MappingProxyType(
    {
        "font.family": "DejaVu Sans",
        "font.size": 12,
        "axes.titlesize": 13,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "legend.frameon": False,
    }
)
# Below this a ratio says nothing, and a logarithmic axis has no place for it.
_LEAST: Final = 0.05
_SIZE_SHADES: Final = (
    "#440154",
    "#46327E",
    "#365C8D",
    "#277F8E",
    "#1FA187",
    "#4AC16D",
    "#A0DA39",
    "#FDE725",
)


def draw(ledger: Ledger) -> dict[str, CaptionedFigure]:
    """Draw the study's figures."""
    shown = [entry for entry in ledger.entries if _pair(entry) is not None]
    figures = {}
    if shown:
        figures["measured-simulated"] = _draw_pairs(shown)
    coded = [
        entry
        for entry in shown
        if entry.claim.scheme.startswith("rs:") and entry.claim.pattern
    ]
    if coded:
        figures["errors"] = _draw_errors(coded)
    return figures


def _pair(entry: Entry) -> tuple[float, float] | None:
    """Return measured and simulated value, if a ratio of them means something."""
    measured, simulated = entry.claim.published, entry.simulated
    if (
        isinstance(measured, float)
        and isinstance(simulated, float)
        and measured >= _LEAST
    ):
        return measured, simulated
    return None


def _pairs(entries: Sequence[Entry]) -> list[tuple[float, float]]:
    return [pair for pair in map(_pair, entries) if pair is not None]


def _draw_pairs(entries: Sequence[Entry]) -> CaptionedFigure:
    with mpl.rc_context(cast(Any, dict(_STYLE))):
        figure = new_figure((11.5, 10.2))
        for letter, axes, (metric, title) in zip(
            "abcd", figure.subplots(2, 2).flat, METRICS.items(), strict=True
        ):
            here = [entry for entry in entries if entry.claim.metric == metric]
            _draw_pair_panel(axes, here)
            axes.set_title(f"({letter}) {title}")
        # Three of the longest labels side by side are wider than the figure.
        legend_above(figure, 2, handletextpad=0.4)
    errors = sorted(abs(entry.error) for entry in entries if entry.error is not None)
    caption = (
        f"Bytes per client byte (per byte lost, for repair), measured on Ceph 16.2.15 and simulated, "
        f"{len(entries)} values. Filled: erasure coding; open: 3-replication; rings: seen by a fit. "
        f"The line is equality, the band ±{TOLERANCE:.0%}. Median error {errors[len(errors) // 2]:.1%}. "
        f"Values below {_LEAST} are left out."
    )
    return CaptionedFigure(figure, caption)


def _draw_pair_panel(axes: Axes, entries: Sequence[Entry]) -> None:
    if not entries:
        axes.set_axis_off()
        return
    values = [value for pair in _pairs(entries) for value in pair if value > 0]
    low, high = min(values) / 1.6, max(values) * 1.6
    ends = [low, high]
    least, most = ([end * (1 + side * TOLERANCE) for end in ends] for side in (-1, 1))
    axes.fill_between(ends, least, most, color="#EEEEEE", zorder=0)
    axes.plot(ends, ends, color="#888888", linewidth=1, zorder=1)
    for op, (colour, marker, label) in _OPS.items():
        for coded in (True, False):
            of_op = [entry for entry in entries if entry.claim.op == op]
            group = [
                entry
                for entry in of_op
                if entry.claim.scheme.startswith("rs:") is coded
            ]
            if not group:
                continue
            x, y = zip(*_pairs(group), strict=True)
            look: dict[str, Any] = {
                "s": 34,
                "marker": marker,
                "linewidths": 1.1,
                "alpha": 0.85,
                "zorder": 3,
            }
            look |= {"facecolors": colour if coded else "none", "edgecolors": colour}
            words = f"{label}, {'erasure coding' if coded else '3-replication'}"
            axes.scatter(x, [max(value, low) for value in y], label=words, **look)
    seen = [entry for entry in entries if entry.claim.role == "calibration"]
    if seen:
        x, y = zip(*_pairs(seen), strict=True)
        axes.scatter(
            x, y, s=120, facecolors="none", edgecolors="#999999", linewidths=1, zorder=2
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set(xlabel="measured [bytes per client byte]", ylabel="simulated")


def _draw_errors(entries: Sequence[Entry]) -> CaptionedFigure:
    groups = list(
        dict.fromkeys((e.claim.scheme, e.claim.op, e.claim.pattern) for e in entries)
    )
    schemes = len({scheme for scheme, _, _ in groups})
    sizes = sorted({int(entry.claim.block_size) for entry in entries})
    shade = {
        size: _SIZE_SHADES[index * 7 // max(1, len(sizes) - 1)]
        for index, size in enumerate(sizes)
    }
    with mpl.rc_context(cast(Any, dict(_STYLE))):
        figure = new_figure((13.5, 1.9 + 0.42 * len(groups)))
        panels = figure.subplots(1, len(METRICS), sharey=True)
        for axes, (metric, title) in zip(panels, METRICS.items(), strict=True):
            axes.axvspan(-100 * TOLERANCE, 100 * TOLERANCE, color="#EEEEEE", zorder=0)
            axes.axvline(0, color="#888888", linewidth=1, zorder=1)
            for entry in entries:
                if entry.claim.metric != metric or entry.error is None:
                    continue
                claim = entry.claim
                row = groups.index((claim.scheme, claim.op, claim.pattern))
                shift = (
                    sizes.index(int(claim.block_size)) / max(1, len(sizes) - 1) - 0.5
                ) * 0.6
                axes.scatter(
                    max(-60.0, min(60.0, 100 * entry.error)),
                    row + shift,
                    s=26,
                    color=shade[int(claim.block_size)],
                    edgecolors="#333333",
                    linewidths=0.4,
                    marker="o"
                    if abs(entry.error) <= 0.6
                    else ">"
                    if entry.error > 0
                    else "<",
                    zorder=3,
                )
            axes.set(xlim=(-63, 63), title=title, xlabel="error [%]")
            axes.grid(visible=False)
        words = [
            " ".join(part for part in ((s if schemes > 1 else ""), op, p) if part)
            for s, op, p in groups
        ]
        panels[0].set_yticks(range(len(groups)), words)
        panels[0].invert_yaxis()
        from matplotlib.lines import Line2D

        marks = [
            Line2D(
                [],
                [],
                marker="o",
                linestyle="",
                color=shade[size],
                markeredgecolor="#333333",
            )
            for size in sizes
        ]
        figure.legend(
            marks,
            [format_size(size) for size in sizes],
            loc="outside upper left",
            ncols=len(sizes),
        )
    caption = (
        "Error of the simulation over all rows of erasure coding, by operation and block size (small blocks "
        f"above). The band is the tolerance of ±{TOLERANCE:.0%}; arrows lie beyond ±60 %. Values below "
        f"{_LEAST} are left out."
    )
    return CaptionedFigure(figure, caption)
