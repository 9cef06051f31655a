"""What each mechanism does to the two codes: throughput with one thing changed, over the baseline's."""

from typing import Final

import polars as pl
from matplotlib.axes import Axes

from stripesim.scenarios.figures.captions import OP_WORDS, PATTERN_WORDS, scheme_label
from stripesim.scenarios.figures.panels import note
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.studies.base import Table
from stripesim.scenarios.studies.koh2017.ablations import (
    ABLATIONS,
    KINDS,
    PRISTINE_DURATION_S,
    SCHEMES,
)

KEYS: Final = ("scheme", "op", "pattern", "image")
MEANS: Final = (
    "throughput_bytes_per_s",
    "latency_mean_ns",
    "private_net_bytes_per_client_byte",
    "cpu_utilisation",
)
_LOOKS: Final = {"rs:6,3": ("#0072B2", "o", -0.14), "rs:10,4": ("#D55E00", "s", 0.14)}

#: (ablation, scheme, op, pattern, image) → throughput over the baseline's.
Factors = dict[tuple[str, ...], float]


def compare(ablations: pl.DataFrame) -> pl.DataFrame:
    """Means over the block sizes of each ablation, scheme and kind of run, each also ``_over_baseline``."""
    means = ablations.group_by("ablation", *KEYS, maintain_order=True).agg(
        pl.col(MEANS).mean()
    )
    baseline = means.filter(pl.col("ablation") == "baseline").drop("ablation")
    joined = means.join(baseline, on=KEYS, suffix="_baseline", maintain_order="left")
    return joined.with_columns(
        (pl.col(name) / pl.col(f"{name}_baseline")).alias(f"{name}_over_baseline")
        for name in MEANS
    ).drop(f"{name}_baseline" for name in MEANS)


def draw_ablations(ablations: pl.DataFrame) -> dict[str, CaptionedFigure]:
    """Draw the figure of mechanisms and the one of stripe widths, each if it was asked for."""
    if not ablations.width:
        return {}
    table = compare(ablations)
    factors: Factors = {
        row[:-1]: row[-1]
        for row in table.select(
            "ablation", *KEYS, "throughput_bytes_per_s_over_baseline"
        ).iter_rows()
    }
    names = [
        name
        for name in table["ablation"].unique(maintain_order=True)
        if name != "baseline"
    ]
    widths = [name for name in names if ABLATIONS[name].stripe_bytes is not None]
    figures = {
        "ablations": (
            [n for n in names if n not in widths],
            "Ablations: what each mechanism does",
        ),
        "stripe-width": (
            widths,
            "Ablations: the stripe's width (baseline: 24 and 40 KiB)",
        ),
    }
    return {
        stem: _draw(factors, mine, title)
        for stem, (mine, title) in figures.items()
        if mine
    }


def _draw(factors: Factors, names: list[str], title: str) -> CaptionedFigure:
    with styled():
        figure = new_figure((13.5, 1.9 + 0.55 * len(names)))
        axes = figure.subplots(1, len(KINDS), sharey=True, sharex=True)
        for place, (op, pattern, image) in zip(axes, KINDS, strict=True):
            place.axvline(1.0, color="#444444", linewidth=1)
            for scheme in SCHEMES:
                for line, name in enumerate(names):
                    _draw_factor(
                        place,
                        factors.get((name, scheme, op, pattern, image)),
                        scheme,
                        line,
                    )
            place.set_title(
                f"{PATTERN_WORDS[pattern]} {OP_WORDS[op]}, {image}", fontsize=12
            )
            place.set_xscale("log")
            place.grid(visible=False)
            place.tick_params(axis="x", labelsize=10)
        shown = [factor for factor in factors.values() if factor]
        axes[0].set_xlim(min(0.5, *shown) / 1.8, max(2.0, *shown) * 2.2)
        ticks = [
            t
            for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
            if min(shown) / 1.8 < t < max(shown) * 2.2
        ]
        axes[0].set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
        axes[0].minorticks_off()
        axes[0].set_yticks(range(len(names)), [ABLATIONS[name].says for name in names])
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        figure.supxlabel("throughput over that of the calibrated model", fontsize=12)
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2
        )
        figure.suptitle(title, x=0.005, ha="left", weight="bold", fontsize=14)
    return CaptionedFigure(figure, _caption(factors, names, title))


def _draw_factor(axes: Axes, value: float | None, scheme: str, line: int) -> None:
    if value is None:
        return
    colour, marker, step = _LOOKS[scheme]
    axes.plot([1, value], [line + step] * 2, color=colour, linewidth=2)
    axes.plot(
        [value],
        [line + step],
        marker=marker,
        color=colour,
        markersize=8,
        linestyle="none",
        label="" if line else scheme_label(scheme),
    )
    side, way = (7, "left") if value >= 1 else (-7, "right")
    note(
        axes,
        f"{number_text(value)}×",
        (value, line + step),
        (side, 0),
        va="center",
        ha=way,
        fontsize=9,
    )


def _caption(factors: Factors, names: list[str], title: str) -> str:
    sentences = []
    for name in names:
        parts = []
        for op, pattern, image in KINDS:
            found = [
                factors.get((name, scheme, op, pattern, image)) for scheme in SCHEMES
            ]
            text = " and ".join(
                "–" if f is None else f"{number_text(f)}×" for f in found
            )
            parts.append(f"{PATTERN_WORDS[pattern].lower()} {OP_WORDS[op]} {text}")
        sentences.append(f"{ABLATIONS[name].says}: {', '.join(parts)}.")
    return (
        f"{title}. Mean throughput over 4, 16 and 64 KiB as a factor of the calibrated model's, RS(6,3) and "
        f"RS(10,4); random writes on a pristine image for {PRISTINE_DURATION_S:g} s. {' '.join(sentences)}"
    )


def ablation_table(ablations: pl.DataFrame) -> Table:
    """Column names and rows: means over the block sizes, and throughput over the baseline's."""
    columns = (
        "ablation",
        "scheme",
        "requests",
        "throughput [MB/s]",
        "over baseline",
        "latency [ms]",
        "private net [B/B]",
        "CPU [%]",
    )
    rows = [
        (
            ABLATIONS[row["ablation"]].says,
            scheme_label(row["scheme"]),
            f"{PATTERN_WORDS[row['pattern']].lower()} {OP_WORDS[row['op']]}, {row['image']}",
            number_text(row["throughput_bytes_per_s"] / 1e6),
            f"{number_text(row['throughput_bytes_per_s_over_baseline'])}×",
            number_text(row["latency_mean_ns"] / 1e6),
            number_text(row["private_net_bytes_per_client_byte"]),
            number_text(100 * row["cpu_utilisation"]),
        )
        for row in compare(ablations).iter_rows(named=True)
    ]
    return columns, rows
