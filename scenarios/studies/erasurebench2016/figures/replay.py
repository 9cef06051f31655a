"""Figure 7: nodes that come and go, and the traffic that follows, by kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from stripesim.scenarios.figures.captions import three_digits
from stripesim.scenarios.figures.panels import COLOURS
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure
from stripesim.scenarios.studies.erasurebench2016.replay import KINDS
from stripesim.scenarios.studies.erasurebench2016.sequences import MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import series

BIN_MIN = 20 / 60
_SHOWN_MIN, _SHOWN_MB = 74, 20
# The source's kinds under the names that are used here.
_PLOTTED = {"check": "exists", "read": "read", "write": "write", "cluster": "cluster"}


def draw_replay(rows: pl.DataFrame) -> CaptionedFigure:
    """Figure 7 of the source: nodes, and stacked traffic under RS and LRC.

    Parameters
    ----------
    rows
        Rows of the study with the replay's.
    """
    figure = new_figure((12.5, 8.2))
    panels = figure.subplots(3, 2, sharex=True, height_ratios=(1, 2.4, 2.4))
    nodes = rows.filter(pl.col("experiment") == "replay nodes")
    minutes = [*(nodes["at_s"] / 60).to_list(), _SHOWN_MIN]
    counts = [*nodes["nodes"].to_list(), nodes["nodes"][-1]]
    for letter, axes in zip("ab", panels[0], strict=True):
        axes.step(minutes, counts, where="post", color="#222222", linewidth=1.8)
        axes.set_title(f"({letter}) nodes")
        axes.set_yticks([114, 116, 118])
    for letters, line, code in zip(("cd", "ef"), panels[1:], ("RS", "LRC"), strict=True):
        simulated = _simulated(rows, code)
        _stack(line[0], simulated, f"({letters[0]}) {code}, simulated")
        _stack(line[1], _plotted(code), f"({letters[1]}) {code}, published")
        line[0].set_ylabel("traffic [MB in 20 s]")
    for axes in panels[2]:
        axes.set_xlabel("time [min]")
        axes.set_xlim(0, _SHOWN_MIN)
    handles, labels = panels[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(KINDS))
    read = {row["code"]: row["read_after_bytes"] for row in _summaries(rows)}
    repairs = {row["code"]: row["repair_mean_s"] for row in _summaries(rows)}
    caption = (
        "Traffic at the storage nodes while nodes leave and join, the write of httpd at the left cut off. A "
        "repair takes "
        f"{three_digits(repairs['RS'])} s under RS and {three_digits(repairs['LRC'])} s under LRC, nearly "
        f"all of it "
        "looking for keys and writing empty ones. Repairs read "
        f"{three_digits(read['RS'] / read['LRC'])} times as much under RS as under LRC, "
        f"{three_digits(read['RS'] / read['LRC as run'])} times as much as under LRC with groups of two; "
        "the published runs say 4.5 to 5.6 per finished repair. The source's RS run stops mending after "
        "minute 28."
    )
    return CaptionedFigure(figure, caption)


def _summaries(rows: pl.DataFrame) -> list[dict[str, Any]]:
    return rows.filter(pl.col("experiment") == "replay").to_dicts()


def _simulated(rows: pl.DataFrame, code: str) -> dict[str, dict[float, float]]:
    mine = rows.filter((pl.col("experiment") == "replay series") & (pl.col("code") == code))
    return {
        kind: {
            round(at / 60 / BIN_MIN): size / MEGABYTE
            for at, size in mine.filter(pl.col("traffic_kind") == kind)
            .select("at_s", "bin_bytes")
            .iter_rows()
        }
        for kind in KINDS
    }


def _plotted(code: str) -> dict[str, dict[float, float]]:
    mine = series().filter((pl.col("figure") == 7) & (pl.col("code") == code))
    values: dict[str, dict[float, float]] = {kind: {} for kind in KINDS}
    kinds = {name: kind for kind, name in _PLOTTED.items()}
    for x, name, y in mine.select("x", "series", "y").iter_rows():
        kind, where = kinds.get(name, "other"), round(x / 60 / BIN_MIN)
        values[kind][where] = values[kind].get(where, 0.0) + y
    return values


def _stack(axes: Axes, row: dict[str, dict[float, float]], title: str) -> None:
    bins = np.arange(round(_SHOWN_MIN / BIN_MIN))
    floor = np.zeros(len(bins))
    for index, kind in enumerate(KINDS):
        sizes = np.array([row[kind].get(where, 0.0) for where in bins.tolist()])
        axes.bar(
            (bins + 0.5) * BIN_MIN,
            sizes,
            bottom=floor,
            width=BIN_MIN,
            color=COLOURS[index],
            label=kind,
            linewidth=0,
        )
        floor += sizes
    axes.set_title(title)
    axes.set_ylim(0, _SHOWN_MB)
