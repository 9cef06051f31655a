"""Where the parts of a drawn timeline stand: the axis of time, bars that overlap, names of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stripesim.scenarios.explain.text import CATEGORIES, bars
from stripesim.scenarios.explain.timeline import Timeline, TimelineStep

# A pause that takes more than this share of the axis is cut, down to the other share of what is left.
_CUT_ABOVE = 0.2
_CUT_TO = 0.05
# What stays of the pause before and after its cut, so that one sees where it belongs.
_MARGIN = 0.035


@dataclass(frozen=True)
class TimeAxis:
    """From time to a place on the axis, piecewise linear; the cuts [ns] ascend and are left out."""

    end_ns: int
    cuts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def around(cls, busy: Iterable[tuple[int, int]], end_ns: int) -> TimeAxis:
        """Cut the long stretches that no busy one touches.

        >>> TimeAxis.around([(0, 100), (900, 1000)], 1000).cuts
        ((107, 893),)
        >>> TimeAxis.around([(0, 500), (600, 1000)], 1000).cuts
        ()
        """
        quiet, at = [], 0
        for low, high in sorted(busy):
            if low - at > _CUT_ABOVE * end_ns:
                quiet.append((at, low))
            at = max(at, high)
        margin_ns = int(_MARGIN * (end_ns - sum(high - low for low, high in quiet)))
        return cls(
            end_ns, tuple((low + margin_ns, high - margin_ns) for low, high in quiet)
        )

    @property
    def gap_us(self) -> float:
        """Width of a cut on the axis [µs as drawn]."""
        shown_ns = self.end_ns - sum(high - low for low, high in self.cuts)
        return _CUT_TO * shown_ns / 1e3

    def place(self, time_ns: float) -> float:
        """Return where a time stands [µs as drawn]."""
        shift_us = 0.0
        for low, high in self.cuts:
            if time_ns >= high:
                shift_us += (high - low) / 1e3 - self.gap_us
            elif time_ns > low:
                return (
                    low / 1e3 - shift_us + self.gap_us * (time_ns - low) / (high - low)
                )
        return time_ns / 1e3 - shift_us

    @property
    def width_us(self) -> float:
        """Length of the axis [µs as drawn]."""
        return self.place(self.end_ns)

    def ticks_us(self, wanted: int = 9) -> list[int]:
        """Choose round times that stand in no cut [µs]."""
        assert self.end_ns > 0, "a timeline takes time"
        rough = max(1.0, self.width_us / wanted)
        power = 10 ** math.floor(math.log10(rough))
        step = int(
            next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        )
        times = range(0, self.end_ns // 1000 + 1, step)
        return [
            t
            for t in times
            if not any(low < t * 1000 < high for low, high in self.cuts)
        ]


def time_axis(timelines: Sequence[Timeline]) -> TimeAxis:
    """Choose the axis of some timelines: all bars but pauses and waits must be seen, and each reply."""
    drawn = [
        bar for timeline in timelines for entry in timeline.steps for bar in bars(entry)
    ]
    busy = [
        (low, high)
        for category, low, high in drawn
        if category not in ("pause", "wait")
    ]
    replies = [(timeline.latency_ns, timeline.latency_ns) for timeline in timelines]
    return TimeAxis.around(
        busy + replies, max(timeline.end_ns for timeline in timelines)
    )


def categories(timelines: Sequence[Timeline]) -> dict[str, str]:
    """Return what some timelines spend time on, with its words."""
    found = {
        bar[0]
        for timeline in timelines
        for entry in timeline.steps
        for bar in bars(entry)
    }
    return {name: shown.words for name, shown in CATEGORIES.items() if name in found}


@dataclass
class Bar:
    """A stretch of time on a row."""

    category: str
    label: str
    low_ns: int
    high_ns: int
    count: int = 1
    for_shard: bool = False
    key: tuple[str, str] = (
        "",
        "",
    )  # steps with the same one are pieces of one transfer


def bars_of(entry: TimelineStep) -> list[Bar]:
    """Return the stretches of a step, waiting first."""
    for_shard = entry.branch is not None and entry.step.role in (
        "primary.cpu",
        "primary.worker",
        "pg.exec",
    )
    label, key = (
        entry.step.label.removeprefix("messenger, "),
        (entry.step.label, entry.step.role),
    )
    return [
        Bar(
            category,
            "encode" if category == "coding" else label,
            low,
            high,
            for_shard=for_shard,
            key=key,
        )
        for category, low, high in bars(entry)
    ]


def time_words(time_ns: float) -> str:
    """Write a time in the unit that suits it."""
    if time_ns >= 1e6:
        return f"{time_ns / 1e6:.3g} ms"
    return f"{time_ns / 1e3:.0f} µs" if time_ns >= 1e4 else f"{time_ns / 1e3:.2g} µs"


def shard_name(timeline: Timeline, shard: int) -> str:
    """Name a shard, what it holds and where, such as ``shard 1 (data, osd.7)``."""
    kind = (
        "copy"
        if timeline.data_shards == 1
        else "data"
        if shard < timeline.data_shards
        else "parity"
    )
    if shard in timeline.missing:
        kind += ", rebuilt" if timeline.op == "repair" else ", down"
    osd = timeline.osds[shard]
    here = "" if osd < 0 else f", osd.{osd}"
    return f"{'primary’s ' if shard == timeline.primary else ''}shard {shard} ({kind}{here})"


def merged_bars(row: Sequence[Bar]) -> list[Bar]:
    """Make one bar of overlapping ones that say the same: the pieces of one transfer."""
    merged: list[Bar] = []
    for bar in sorted(
        row, key=lambda bar: (bar.category == "wait", bar.low_ns, bar.high_ns)
    ):
        alike = (
            one for one in merged if (one.category, one.key) == (bar.category, bar.key)
        )
        other = next(
            (
                one
                for one in alike
                if bar.low_ns <= one.high_ns and one.low_ns <= bar.high_ns
            ),
            None,
        )
        if other is None:
            merged.append(bar)
        else:
            other.low_ns, other.high_ns = (
                min(bar.low_ns, other.low_ns),
                max(bar.high_ns, other.high_ns),
            )
            other.count += bar.count
    # Pieces that wait behind others of the same transfer: the work hides the waiting.
    work = [bar for bar in merged if bar.category != "wait"]

    def hidden(bar: Bar) -> bool:
        return any(
            b.key == bar.key and b.low_ns < bar.high_ns and b.high_ns > bar.low_ns
            for b in work
        )

    return [bar for bar in merged if bar.category != "wait" or not hidden(bar)]


def packed(row: Sequence[Bar]) -> list[tuple[int, int, Bar]]:
    """Put bars that overlap beside each other: level, number of levels in their cluster, bar."""
    placed: list[tuple[int, int, Bar]] = []
    cluster: list[tuple[int, Bar]] = []
    ends: list[int] = []
    for bar in sorted(row, key=lambda bar: (bar.low_ns, bar.high_ns)):
        if cluster and bar.low_ns >= max(ends):
            placed += [(level, len(ends), other) for level, other in cluster]
            cluster, ends = [], []
        level = next(
            (index for index, end in enumerate(ends) if end <= bar.low_ns), len(ends)
        )
        if level == len(ends):
            ends.append(0)
        ends[level] = bar.high_ns
        cluster.append((level, bar))
    return placed + [(level, len(ends), other) for level, other in cluster]
