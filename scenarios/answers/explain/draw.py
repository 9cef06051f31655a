"""Draw the timeline of a request: client, primary, locks and shards on one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.answers.explain import layout
from stripesim.scenarios.answers.explain.text import (
    CATEGORIES,
    LOCKS,
    bars,
    heading,
    lane_words,
    latency_words,
    reply_word,
)
from stripesim.scenarios.answers.explain.timeline import Timeline
from stripesim.scenarios.show.figures.marks import note
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, new_figure

# From the palette of Okabe & Ito, "Color universal design" (2008).
_FOR_SHARD: Final = "#C9DC6B"
# Width of a letter over its height.
_LETTER_SHAPE: Final = 0.58
_AFTER_REPLY_ALPHA: Final = 0.4


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a drawing, for a screen or the column of a paper."""

    width_inch: float
    row_inch: float  #: Height of a lane
    panel_inch: float  #: Height of a panel without its lanes
    panel_share: float  #: Share of the figure's width that the panels cover
    letter_point: float  #: Names of lanes, ticks and legend
    bar_point: float  #: Labels in bars
    words_point: float  #: The split of the latency
    title_point: float
    legend_columns: int
    ticks: int
    is_paper: bool = False

    @property
    def fonts(self) -> dict[str, Any]:
        """Parameters of Matplotlib."""
        return {
            "font.family": "DejaVu Sans",
            "font.size": self.letter_point,
            "axes.labelsize": self.letter_point,
            "axes.grid": False,
            "legend.fontsize": self.letter_point,
            "hatch.linewidth": 0.5,
        }

    def letters(self, width_inch: float, point: float) -> int:
        """Return how many letters fit into a width."""
        return int(width_inch / (point / 72 * _LETTER_SHAPE))


_SCREEN: Final = _Sizes(
    width_inch=13.3,
    row_inch=0.37,
    panel_inch=0.75,
    panel_share=0.8,
    letter_point=11,
    bar_point=9,
    words_point=10,
    title_point=13,
    legend_columns=5,
    ticks=9,
)


def _on_paper(width_inch: float) -> _Sizes:
    # A legend's entry takes about 1.7 inch, a tick half an inch.
    return _Sizes(
        width_inch,
        row_inch=0.19,
        panel_inch=0.62,
        panel_share=0.65,
        letter_point=7,
        bar_point=6.5,
        words_point=6.5,
        title_point=8,
        legend_columns=max(1, int(width_inch / 1.7)),
        ticks=max(3, int(width_inch * 1.4)),
        is_paper=True,
    )


class TimelineFigure(CaptionedFigure):
    """Timelines as a figure. The column of a paper needs a drawing of its own."""

    timelines: Sequence[Timeline]

    def at_width(self, width_inch: float) -> Figure:
        """Draw the timelines for a width [inch]."""
        axis = layout.time_axis(self.timelines)
        return _drawn(self.timelines, axis, _on_paper(width_inch))


def draw_timelines(timelines: Sequence[Timeline]) -> CaptionedFigure:
    """Draw timelines above each other on one time axis.

    Parameters
    ----------
    timelines : sequence of Timeline
        As `stripesim.scenarios.answers.explain.request.explain` returns, at least one.

    Returns
    -------
    CaptionedFigure
        One row for the client, the primary, its locks and each shard. A shard's row shows its whole
        sub-operation, including the primary's work for it, which is light green. Work after the reply is
        pale. The axis cuts out long pauses of the request.
    """
    if not timelines:
        wanted = "at least one timeline"
        raise AnswerError(Problem(key="timelines", got="none", wanted=wanted))
    axis = layout.time_axis(timelines)
    drawn = TimelineFigure(_drawn(timelines, axis, _SCREEN), _caption(timelines, axis))
    drawn.timelines = timelines
    return drawn


def _drawn(
    timelines: Sequence[Timeline], axis: layout.TimeAxis, sizes: _Sizes
) -> Figure:
    lanes = [_lanes(timeline) for timeline in timelines]
    if sizes.is_paper:
        # What a shard holds, and on which OSD, has no room.
        lanes = [
            {lane: name.partition(" (")[0] for lane, name in names.items()}
            for names in lanes
        ]
    rows = [len(names) for names in lanes]
    height = sizes.row_inch * sum(rows) + sizes.panel_inch * len(timelines) + 1.1
    if not sizes.is_paper:
        height = max(3.6, height)
    with mpl.rc_context(cast(Any, sizes.fonts)):
        figure = new_figure((sizes.width_inch, height))
        grid = figure.subplots(
            len(timelines), 1, sharex=True, height_ratios=rows, squeeze=False
        )
        for axes, timeline, names in zip(grid[:, 0], timelines, lanes, strict=True):
            _Panel(axes, axis, timeline, names, sizes).draw()
        _draw_time_axis(grid[-1, 0], axis, sizes)
        _draw_legend(figure, timelines, sizes)
    return figure


def _lanes(timeline: Timeline) -> dict[int | str, str]:
    """Name the rows of a panel, one for all idle shards."""
    active = {entry.branch for entry in timeline.steps if bars(entry)}
    lanes: dict[int | str, str] = {name: name for name in timeline.lanes()}
    lanes["locks"] = "locks"
    idle = []
    for shard in range(timeline.width):
        if shard in active:
            lanes[shard] = layout.shard_name(timeline, shard)
        else:
            idle.append(shard)
    if idle:
        reason = _why_idle(idle, timeline.missing)
        lanes["idle"] = f"{lane_words(idle, -1)} ({reason})"
    return lanes


def _why_idle(idle: Sequence[int], missing: Sequence[int]) -> str:
    down = [shard for shard in idle if shard in missing]
    if not down:
        return "not asked"
    if down == idle:
        return "down"
    return f"not asked; {down[0]} is down"


@dataclass(frozen=True)
class _Panel:
    """Draws one timeline, whose rows `lanes` names from top to bottom."""

    axes: Axes
    axis: layout.TimeAxis
    timeline: Timeline
    lanes: dict[int | str, str]
    sizes: _Sizes

    def draw(self) -> None:
        row_of = {lane: row for row, lane in enumerate(self.lanes)}
        rows: list[list[layout.Bar]] = [[] for _ in self.lanes]
        for entry in self.timeline.steps:
            bars_of_step = layout.bars_of(entry)
            if bars_of_step:
                rows[row_of[entry.host]] += bars_of_step
        for number, row in enumerate(rows):
            self._draw_row(number, row)
        self._draw_holds(row_of["locks"])
        self._mark_reply()
        for low_ns, high_ns in self.axis.cuts:
            self._draw_cut(low_ns, high_ns)
        self._frame()

    def _draw_row(self, number: int, row: Sequence[layout.Bar]) -> None:
        if number % 2:
            self.axes.axhspan(number - 0.5, number + 0.5, color="#F6F6F6", zorder=0)
        for level, levels, bar in layout.packed(layout.merged_bars(row)):
            low = number - 0.36 + 0.72 * level / levels
            self._draw_bar(bar, low, 0.72 / levels)

    def _draw_bar(self, bar: layout.Bar, low: float, height: float) -> None:
        left = self.axis.place(bar.low_ns)
        width = self.axis.place(bar.high_ns) - left
        is_late = bar.low_ns >= self.timeline.latency_ns
        alpha = _AFTER_REPLY_ALPHA if is_late else 1.0
        colour = CATEGORIES[bar.category].colour
        if bar.for_shard and bar.category == "cpu":
            colour = _FOR_SHARD
        look: dict[str, Any] = {
            "facecolor": colour,
            "edgecolor": "white",
            "linewidth": 0.5,
        }
        if bar.category == "wait":
            look = {
                "facecolor": "none",
                "edgecolor": "#777777",
                "linewidth": 0.6,
                "hatch": "....",
            }
            low += 0.3 * height
            height *= 0.4
        self.axes.barh(
            low,
            width,
            left=left,
            height=height,
            align="edge",
            alpha=alpha,
            zorder=3,
            **look,
        )
        label = bar.label
        if bar.count > 1:
            label += f" ×{bar.count}"
        if height <= 0.5 or not self._has_room(bar, label, width):
            return
        is_dark = bar.category in ("cpu", "ssd") and not bar.for_shard and not is_late
        self.axes.text(
            left + width / 2,
            low + height / 2,
            label,
            ha="center",
            va="center",
            fontsize=self.sizes.bar_point,
            color="white" if is_dark else "black",
            clip_on=True,
            zorder=4,
        )

    def _has_room(self, bar: layout.Bar, label: str, width: float) -> bool:
        if bar.category == "wait":
            return False
        cuts = self.axis.cuts
        if any(bar.low_ns < high and bar.high_ns > low for low, high in cuts):
            return False
        room_inch = (
            width / self.axis.width_us * self.sizes.panel_share * self.sizes.width_inch
        )
        return len(label) < self.sizes.letters(room_inch, self.sizes.bar_point)

    def _draw_holds(self, row: int) -> None:
        """Draw locks and slots as strips, the lock above and the mutex of a stage below."""
        for hold in self.timeline.holds:
            if hold.role not in LOCKS or hold.end_ns <= hold.start_ns:
                continue
            left = self.axis.place(hold.start_ns)
            low, height = (0.06, 0.22) if hold.role == "pg.exec" else (-0.3, 0.3)
            self.axes.barh(
                row + low,
                self.axis.place(hold.end_ns) - left,
                height,
                left,
                align="edge",
                color=LOCKS[hold.role][1],
                zorder=3,
            )

    def _mark_reply(self) -> None:
        timeline = self.timeline
        axis = self.axis
        reply = axis.place(timeline.latency_ns)
        dashes = (0, (4, 2))
        self.axes.axvline(
            reply, color="black", linewidth=1.3, linestyle=dashes, zorder=5
        )
        before_cut = any(
            0 <= low - timeline.latency_ns < 0.2 * axis.end_ns for low, _ in axis.cuts
        )
        offset = 5
        side = "left"
        if before_cut or reply > 0.8 * axis.width_us:
            offset = -5
            side = "right"
        note(
            self.axes,
            f"{reply_word(timeline)} {layout.time_words(timeline.latency_ns)}",
            (reply, -0.66),
            (offset, 0),
            ha=side,
            va="center",
            fontweight="bold",
            zorder=8,
        )

    def _draw_cut(self, low_ns: int, high_ns: int) -> None:
        """Hatch a cut in the axis and label it with the pause that it shortens."""
        left = self.axis.place(low_ns)
        right = self.axis.place(high_ns)
        self.axes.axvspan(
            left,
            right,
            facecolor="white",
            edgecolor="#888888",
            hatch="////",
            linewidth=0,
            zorder=6,
        )
        self.axes.text(
            (left + right) / 2,
            len(self.lanes) / 2 - 0.5,
            self._cut_words(low_ns, high_ns),
            zorder=7,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 2.0},
            ha="center",
            va="center",
            multialignment="center",
            rotation=90,
        )

    def _cut_words(self, low_ns: int, high_ns: int) -> str:
        for entry in self.timeline.steps:
            step = entry.step
            is_cut = step.start_ns < high_ns and step.end_ns > low_ns
            if entry.category == "pause" and is_cut:
                return f"“{step.label}”\ntakes {layout.time_words(step.duration_ns)}"
        return f"axis cut:\n{layout.time_words(high_ns - low_ns)}"

    def _frame(self) -> None:
        axes = self.axes
        axes.set_yticks(range(len(self.lanes)), list(self.lanes.values()))
        axes.set_ylim(len(self.lanes) - 0.5, -0.95)
        axes.set_xlim(0, self.axis.width_us * 1.01)
        sizes = self.sizes
        room_inch = sizes.panel_share * sizes.width_inch
        lines = [latency_words(self.timeline)]
        title = [heading(self.timeline)]
        if sizes.is_paper:
            lines = wrap(lines[0], sizes.letters(room_inch, sizes.words_point))
            title = wrap(title[0], sizes.letters(room_inch, 1.1 * sizes.title_point))
        axes.set_title(
            "\n".join(title),
            loc="left",
            fontweight="bold",
            fontsize=sizes.title_point,
            pad=6 + 1.4 * sizes.words_point * len(lines),
        )
        axes.text(
            0,
            1.0,
            "\n".join(lines),
            transform=axes.transAxes,
            va="bottom",
            fontsize=sizes.words_point,
            color="#333333",
        )
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", length=3)


def _draw_time_axis(axes: Axes, axis: layout.TimeAxis, sizes: _Sizes) -> None:
    ticks_us = axis.ticks_us(sizes.ticks)
    labels = [f"{tick:,}" for tick in ticks_us]
    unit = "µs"
    if axis.end_ns > 20e6:
        labels = [f"{tick / 1000:g}" for tick in ticks_us]
        unit = "ms"
    axes.set_xticks([axis.place(tick * 1000) for tick in ticks_us], labels)
    axes.set_xlabel(f"time since the request was issued [{unit}]")


def _draw_legend(figure: Figure, timelines: Sequence[Timeline], sizes: _Sizes) -> None:
    handles = [
        Patch(
            facecolor=CATEGORIES[name].colour,
            edgecolor="#777777",
            hatch="...." if name == "wait" else None,
            label=words,
        )
        for name, words in layout.categories(timelines).items()
    ]
    handles.append(Patch(facecolor=_FOR_SHARD, label="primary’s CPU, for that shard"))
    held = {
        hold.role
        for timeline in timelines
        for hold in timeline.holds
        if hold.end_ns > hold.start_ns
    }
    for role, (words, colour) in LOCKS.items():
        if role in held:
            handles.append(Patch(facecolor=colour, label=words))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(len(handles), sizes.legend_columns),
        frameon=False,
        handlelength=1.4,
    )


def _caption(timelines: Sequence[Timeline], axis: layout.TimeAxis) -> str:
    latencies = [
        f"{heading(timeline)} takes {latency_words(timeline)}."
        for timeline in timelines
    ]
    sentences = [
        " ".join(latencies),
        "One request alone on the cluster, with mean service times. Work after the reply is pale.",
        "The latency is split along the critical path.",
    ]
    if axis.cuts:
        cut = "The axis cuts out long pauses of the request."
        sentences.insert(2, cut)
    return " ".join(sentences)
