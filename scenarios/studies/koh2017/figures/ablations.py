"""What each mechanism does to the two codes: throughput with one thing changed, over the baseline's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from stripesim.scenarios.figures.captions import OP_WORDS, PATTERN_WORDS, scheme_label, three_digits
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled
from stripesim.scenarios.studies.koh2017.ablations import ABLATIONS, KINDS, PRISTINE_DURATION_S, SCHEMES

KEYS: Final = ("scheme", "op", "pattern", "image")
_LOOKS: Final = {"rs:6,3": ("#0072B2", "o", -0.14), "rs:10,4": ("#D55E00", "s", 0.14)}


def compare(ablations: pl.DataFrame) -> pl.DataFrame:
    """Means over the block sizes of each ablation, and as factors of the baseline.

    Returns
    -------
    polars.DataFrame
        One row per ablation, scheme and kind of run: ``throughput_bytes_per_s``, ``latency_mean_ns``,
        ``private_net_bytes_per_client_byte``, ``cpu_utilisation``, each also with ``_over_baseline``.
    """
    columns = (
        "throughput_bytes_per_s",
        "latency_mean_ns",
        "private_net_bytes_per_client_byte",
        "cpu_utilisation",
    )
    means = ablations.group_by("ablation", *KEYS, maintain_order=True).agg(pl.col(columns).mean())
    baseline = means.filter(pl.col("ablation") == "baseline").drop("ablation")
    joined = means.join(baseline, on=KEYS, suffix="_baseline", maintain_order="left")
    return joined.with_columns(
        (pl.col(name) / pl.col(f"{name}_baseline")).alias(f"{name}_over_baseline") for name in columns
    ).drop(f"{name}_baseline" for name in columns)


def draw_ablations(ablations: pl.DataFrame) -> dict[str, CaptionedFigure | None]:
    """Draw the figure of mechanisms and the one of stripe widths, each if it was asked for."""
    if not ablations.width:
        return {}
    table = compare(ablations)
    names = [name for name in table["ablation"].unique(maintain_order=True) if name != "baseline"]
    widths = [name for name in names if ABLATIONS[name].stripe_bytes is not None]
    mechanisms = [name for name in names if name not in widths]
    return {
        "ablations": _draw(table, mechanisms, "Ablations: what each mechanism does"),
        "stripe-width": _draw(table, widths, "Ablations: the stripe's width (baseline: 24 and 40 KiB)"),
    }


def _draw(table: pl.DataFrame, names: list[str], title: str) -> CaptionedFigure | None:
    if not names:
        return None
    with styled():
        figure = new_figure((13.5, 1.9 + 0.55 * len(names)))
        axes = figure.subplots(1, len(KINDS), sharey=True, sharex=True)
        for place, (op, pattern, image) in zip(axes, KINDS, strict=True):
            place.axvline(1.0, color="#444444", linewidth=1)
            for scheme in SCHEMES:
                colour, marker, step = _LOOKS[scheme]
                for line, name in enumerate(names):
                    value = _factor(table, name, (scheme, op, pattern, image))
                    if value is None:
                        continue
                    place.plot([1, value], [line + step] * 2, color=colour, linewidth=2)
                    place.plot(
                        [value], [line + step], marker=marker, color=colour, markersize=8, linestyle="none",
                        label=scheme_label(scheme) if line == 0 else None,
                    )  # fmt: skip
                    place.annotate(
                        f"{three_digits(value)}×", (value, line + step), xytext=(7 if value >= 1 else -7, 0),
                        textcoords="offset points", va="center", ha="left" if value >= 1 else "right",
                        fontsize=9,
                    )  # fmt: skip
            place.set_title(f"{PATTERN_WORDS[pattern]} {OP_WORDS[op]}, {image}", fontsize=12)
            place.set_xscale("log")
            place.grid(visible=False)
            place.tick_params(axis="x", labelsize=10)
        shown = [v for v in table["throughput_bytes_per_s_over_baseline"].to_list() if v]
        axes[0].set_xlim(min(0.5, *shown) / 1.8, max(2.0, *shown) * 2.2)
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if min(shown) / 1.8 < t < max(shown) * 2.2]
        axes[0].set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
        axes[0].minorticks_off()
        axes[0].set_yticks(range(len(names)), [ABLATIONS[name].says for name in names])
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        figure.supxlabel("throughput over that of the calibrated model", fontsize=12)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2)
        figure.suptitle(title, x=0.005, ha="left", weight="bold", fontsize=14)
    return CaptionedFigure(figure, _caption(table, names, title))


def _factor(table: pl.DataFrame, name: str, key: tuple[str, str, str, str]) -> float | None:
    mine = table.filter(
        (pl.col("ablation") == name)
        & pl.all_horizontal(pl.col(column) == value for column, value in zip(KEYS, key, strict=True))
    )["throughput_bytes_per_s_over_baseline"]
    return None if mine.is_empty() else float(mine[0])


def _caption(table: pl.DataFrame, names: list[str], title: str) -> str:
    sentences = []
    for name in names:
        parts = []
        for op, pattern, image in KINDS:
            factors = [_factor(table, name, (scheme, op, pattern, image)) for scheme in SCHEMES]
            text = " and ".join("–" if f is None else f"{three_digits(f)}×" for f in factors)
            parts.append(f"{PATTERN_WORDS[pattern].lower()} {OP_WORDS[op]} {text}")
        sentences.append(f"{ABLATIONS[name].says}: {', '.join(parts)}.")
    return (
        f"{title}. Mean throughput over 4, 16 and 64 KiB as a factor of the calibrated model's, RS(6,3) and "
        f"RS(10,4); random writes on a pristine image for {PRISTINE_DURATION_S:g} s. {' '.join(sentences)}"
    )


def ablation_table(ablations: pl.DataFrame) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Column names and rows: means over the block sizes, and throughput over the baseline's."""
    columns = (
        *("ablation", "scheme", "requests", "throughput [MB/s]", "over baseline"),
        *("latency [ms]", "private net [B/B]", "CPU [%]"),
    )
    rows = [
        (
            ABLATIONS[row["ablation"]].says,
            scheme_label(row["scheme"]),
            f"{PATTERN_WORDS[row['pattern']].lower()} {OP_WORDS[row['op']]}, {row['image']}",
            three_digits(row["throughput_bytes_per_s"] / 1e6),
            f"{three_digits(row['throughput_bytes_per_s_over_baseline'])}×",
            three_digits(row["latency_mean_ns"] / 1e6),
            three_digits(row["private_net_bytes_per_client_byte"]),
            three_digits(100 * row["cpu_utilisation"]),
        )
        for row in compare(ablations).iter_rows(named=True)
    ]
    return columns, rows
