"""The timeline of a request as a figure: client, primary, locks and shards on one time axis."""

from collections.abc import Sequence
from typing import Any, Final, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stripesim.scenarios.explain import layout
from stripesim.scenarios.explain.text import (
    CATEGORIES,
    LOCKS,
    bars,
    heading,
    lane_words,
    latency_words,
    reply_word,
)
from stripesim.scenarios.explain.timeline import Hold, Timeline, TimelineStep
from stripesim.scenarios.figures.panels import note
from stripesim.scenarios.figures.results import CaptionedFigure, new_figure

# Okabe & Ito, "Color universal design" (2008); dark enough for white letters or light enough for black ones.
_FOR_SHARD: Final = "#C9DC6B"
_WIDTH_INCH: Final = 13.3
_ROW_INCH: Final = 0.37
# Room that a letter of a bar's label takes, at its size of 9 points.
_LETTER_INCH: Final = 0.072
_AFTER_REPLY_ALPHA: Final = 0.4


def draw_timelines(timelines: Sequence[Timeline]) -> CaptionedFigure:
    """Draw timelines above each other on one time axis.

    Parameters
    ----------
    timelines : sequence of Timeline
        As `stripesim.scenarios.explain.request.explain` returns, at least one.

    Returns
    -------
    CaptionedFigure
        A row each for the client, the primary, its locks and each shard. A shard's row holds its
        sub-operation from beginning to end, the primary's work for it included, in a lighter green. What
        comes after the reply is pale. Long stretches in which nothing happens but a pause are cut out.
    """
    axis = layout.time_axis(timelines)
    layouts = [_layout(timeline) for timeline in timelines]
    rows = [len(names) for names, _ in layouts]
    height = max(3.6, _ROW_INCH * sum(rows) + 0.75 * len(timelines) + 1.1)
    with mpl.rc_context(
        cast(
            Any, {"font.family": "DejaVu Sans", "font.size": 11, "hatch.linewidth": 0.5}
        )
    ):
        figure = new_figure((_WIDTH_INCH, height))
        panels = figure.subplots(
            len(timelines), 1, sharex=True, height_ratios=rows, squeeze=False
        )[:, 0]
        for panel, timeline, (names, place) in zip(
            panels, timelines, layouts, strict=True
        ):
            _panel(panel, timeline, axis, names, place)
        _time_axis(panels[-1], axis)
        _legend(figure, timelines)
    return CaptionedFigure(figure, _caption(timelines, axis))


def _layout(timeline: Timeline) -> tuple[list[str], dict[int | str, int]]:
    """Name the rows of a panel and say which row each lane has; shards with nothing to do share one."""
    active = {entry.branch for entry in timeline.steps if bars(entry)}
    lanes: list[tuple[int | str, str]] = []
    if any(entry.lane == "client" for entry in timeline.steps):
        lanes.append(("client", "client"))
    lanes += [("primary", "primary"), ("locks", "locks")]
    lanes += [
        (n, layout.shard_name(timeline, n))
        for n in range(timeline.width)
        if n in active
    ]
    idle = [n for n in range(timeline.width) if n not in active]
    if idle:
        down = [n for n in idle if n in timeline.missing]
        words = (
            "down"
            if down == idle
            else "not asked"
            if not down
            else f"not asked; {down[0]} is down"
        )
        lanes.append(("idle", f"{lane_words(idle, -1)} ({words})"))
    return [name for _, name in lanes], {
        lane: row for row, (lane, _) in enumerate(lanes)
    }


def _panel(
    axes: Axes,
    timeline: Timeline,
    axis: layout.TimeAxis,
    names: Sequence[str],
    place: dict[int | str, int],
) -> None:
    """Draw one timeline."""
    rows: list[list[layout.Bar]] = [[] for _ in names]
    for entry in timeline.steps:
        if found := layout.bars_of(entry):
            rows[place[_lane(entry)]] += found
    for number, row in enumerate(rows):
        if number % 2:
            axes.axhspan(number - 0.5, number + 0.5, color="#F6F6F6", zorder=0)
        for level, levels, bar in layout.packed(layout.merged_bars(row)):
            _draw(
                axes,
                axis,
                timeline,
                bar,
                number - 0.36 + 0.72 * level / levels,
                0.72 / levels,
            )
    _draw_holds(axes, axis, timeline.holds, place["locks"])
    reply = axis.place(timeline.latency_ns)
    axes.axvline(reply, color="black", linewidth=1.3, linestyle=(0, (4, 2)), zorder=5)
    cut_follows = any(
        0 <= low - timeline.latency_ns < 0.2 * axis.end_ns for low, _ in axis.cuts
    )
    late = reply > 0.8 * axis.width_us or cut_follows
    beside, way = (-5, "right") if late else (5, "left")
    words = f"{reply_word(timeline)} {layout.time_words(timeline.latency_ns)}"
    note(
        axes,
        words,
        (reply, -0.66),
        (beside, 0),
        ha=way,
        va="center",
        fontweight="bold",
        zorder=8,
    )
    for low, high in axis.cuts:
        _draw_cut(axes, axis, timeline, low, high, len(names))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.95)
    axes.set_xlim(0, axis.width_us * 1.01)
    axes.set_title(
        heading(timeline), loc="left", fontweight="bold", fontsize=13, pad=20
    )
    axes.text(
        0,
        1.0,
        latency_words(timeline),
        transform=axes.transAxes,
        va="bottom",
        fontsize=10,
        color="#333333",
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=3)


def _draw_cut(
    axes: Axes,
    axis: layout.TimeAxis,
    timeline: Timeline,
    low: int,
    high: int,
    rows: int,
) -> None:
    """Hatch a cut and name the pause that it shortens."""
    left, right = axis.place(low), axis.place(high)
    axes.axvspan(
        left,
        right,
        facecolor="white",
        edgecolor="#888888",
        hatch="////",
        linewidth=0,
        zorder=6,
    )
    pauses = [
        f"“{entry.step.label}”\ntakes {layout.time_words(entry.step.duration_ns)}"
        for entry in timeline.steps
        if entry.category == "pause"
        and entry.step.start_ns < high
        and entry.step.end_ns > low
    ]
    words = pauses[0] if pauses else f"axis cut:\n{layout.time_words(high - low)}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 2.0}
    place: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "multialignment": "center",
        "rotation": 90,
    }
    axes.text((left + right) / 2, rows / 2 - 0.5, words, zorder=7, bbox=box, **place)


def _lane(entry: TimelineStep) -> int | str:
    if entry.branch is not None:
        return entry.branch
    return "client" if entry.lane == "client" else "primary"


def _draw(
    axes: Axes,
    axis: layout.TimeAxis,
    timeline: Timeline,
    bar: layout.Bar,
    low: float,
    height: float,
) -> None:
    left, right = axis.place(bar.low_ns), axis.place(bar.high_ns)
    alpha = _AFTER_REPLY_ALPHA if bar.low_ns >= timeline.latency_ns else 1.0
    colour = (
        _FOR_SHARD
        if bar.for_shard and bar.category == "cpu"
        else CATEGORIES[bar.category].colour
    )
    look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.5}
    if bar.category == "wait":
        look = {
            "facecolor": "none",
            "edgecolor": "#777777",
            "linewidth": 0.6,
            "hatch": "....",
        }
        low, height = low + 0.3 * height, 0.4 * height
    axes.barh(
        low,
        right - left,
        left=left,
        height=height,
        align="edge",
        alpha=alpha,
        zorder=3,
        **look,
    )
    label = bar.label + (f" ×{bar.count}" if bar.count > 1 else "")
    room = (right - left) / axis.width_us * 0.8 * _WIDTH_INCH
    cut = any(bar.low_ns < stop and bar.high_ns > start for start, stop in axis.cuts)
    if (
        bar.category != "wait"
        and not cut
        and height > 0.5
        and len(label) * _LETTER_INCH < room
    ):
        dark = bar.category in ("cpu", "ssd") and not bar.for_shard and alpha == 1.0
        letters: dict[str, Any] = {
            "fontsize": 9,
            "color": "white" if dark else "black",
            "clip_on": True,
            "zorder": 4,
        }
        axes.text(
            (left + right) / 2,
            low + height / 2,
            label,
            ha="center",
            va="center",
            **letters,
        )


def _draw_holds(
    axes: Axes, axis: layout.TimeAxis, holds: Sequence[Hold], row: int
) -> None:
    """Draw what the request held as strips: the lock above, the mutex of a stage below."""
    for hold in holds:
        if hold.role in LOCKS and hold.end_ns > hold.start_ns:
            left, right = axis.place(hold.start_ns), axis.place(hold.end_ns)
            low, height = (0.06, 0.22) if hold.role == "pg.exec" else (-0.3, 0.3)
            colour = LOCKS[hold.role][1]
            axes.barh(
                row + low,
                right - left,
                height,
                left,
                align="edge",
                color=colour,
                zorder=3,
            )


def _time_axis(axes: Axes, axis: layout.TimeAxis) -> None:
    ticks = axis.ticks_us()
    slow = axis.end_ns > 20e6
    labels = [f"{tick / 1000:g}" if slow else f"{tick:,}" for tick in ticks]
    axes.set_xticks([axis.place(tick * 1000) for tick in ticks], labels)
    axes.set_xlabel(f"time since the request was issued [{'ms' if slow else 'µs'}]")


def _legend(figure: Figure, timelines: Sequence[Timeline]) -> None:
    handles = []
    for name, words in layout.categories(timelines).items():
        hatch = "...." if name == "wait" else None
        handles.append(
            Patch(
                facecolor=CATEGORIES[name].colour,
                edgecolor="#777777",
                hatch=hatch,
                label=words,
            )
        )
    handles.append(Patch(facecolor=_FOR_SHARD, label="primary’s CPU, for that shard"))
    held = {
        hold.role
        for timeline in timelines
        for hold in timeline.holds
        if hold.end_ns > hold.start_ns
    }
    handles += [
        Patch(facecolor=colour, label=words)
        for role, (words, colour) in LOCKS.items()
        if role in held
    ]
    columns = min(len(handles), 5)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=1.4,
    )


def _caption(timelines: Sequence[Timeline], axis: layout.TimeAxis) -> str:
    said = "; ".join(
        f"{heading(timeline)}: {latency_words(timeline)}" for timeline in timelines
    )
    cut = (
        " Stretches in which nothing happens but a pause are cut out."
        if axis.cuts
        else ""
    )
    return (
        f"{said}. One request alone on the cluster, mean service times; pale: after the reply.{cut} "
        "The split of the latency is along the critical path."
    )
