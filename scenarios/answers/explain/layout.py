"""Lay out a timeline: the time axis and its cuts, stacks of overlapping bars, names of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stripesim.scenarios.answers.explain.text import CATEGORIES, bars
from stripesim.scenarios.answers.explain.timeline import Timeline, TimelineStep
from stripesim.sim.ceph.paths.message import split_label

# A pause longer than the first share of the axis is cut and drawn as the second share of the rest.
_CUT_ABOVE = 0.2
_CUT_TO = 0.05
# Share of the rest that stays visible of a pause on each side of its cut.
_MARGIN = 0.035


@dataclass(frozen=True)
class TimeAxis:
    """A piecewise linear time axis that leaves out `cuts`, in ascending order [ns]."""

    end_ns: int
    cuts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def around(cls, busy: Iterable[tuple[int, int]], end_ns: int) -> TimeAxis:
        """Return an axis that cuts the long stretches between busy ones.

        >>> TimeAxis.around([(0, 100), (900, 1000)], 1000).cuts
        ((107, 893),)
        >>> TimeAxis.around([(0, 500), (600, 1000)], 1000).cuts
        ()
        """
        quiet = []
        busy_until_ns = 0
        for low, high in sorted(busy):
            if low - busy_until_ns > _CUT_ABOVE * end_ns:
                quiet.append((busy_until_ns, low))
            busy_until_ns = max(busy_until_ns, high)
        shown_ns = end_ns - sum(high - low for low, high in quiet)
        margin_ns = int(_MARGIN * shown_ns)
        cuts = tuple((low + margin_ns, high - margin_ns) for low, high in quiet)
        return cls(end_ns, cuts)

    @property
    def gap_us(self) -> float:
        """Width of a cut on the axis [µs as drawn]."""
        shown_ns = self.end_ns - sum(high - low for low, high in self.cuts)
        return _CUT_TO * shown_ns / 1e3

    def place(self, time_ns: float) -> float:
        """Return the position of a time on the axis [µs as drawn]."""
        shift_us = 0.0
        for low, high in self.cuts:
            if time_ns >= high:
                shift_us += (high - low) / 1e3 - self.gap_us
            elif time_ns > low:
                within_us = self.gap_us * (time_ns - low) / (high - low)
                return low / 1e3 - shift_us + within_us
        return time_ns / 1e3 - shift_us

    @property
    def width_us(self) -> float:
        """Length of the axis [µs as drawn]."""
        return self.place(self.end_ns)

    def ticks_us(self, wanted: int = 9) -> list[int]:
        """Choose round times that no cut hides [µs]."""
        assert self.end_ns > 0, "a timeline takes time"
        least_us = max(1.0, self.width_us / wanted)
        power = 10 ** math.floor(math.log10(least_us))
        steps_us = (power * factor for factor in (1, 2, 5, 10))
        step_us = int(next(step for step in steps_us if step >= least_us))
        times_us = range(0, self.end_ns // 1000 + 1, step_us)
        return [time_us for time_us in times_us if not self._is_cut(time_us * 1000)]

    def _is_cut(self, time_ns: int) -> bool:
        return any(low < time_ns < high for low, high in self.cuts)


def time_axis(timelines: Sequence[Timeline]) -> TimeAxis:
    """Choose an axis that shows all bars except pauses and waits, and every reply."""
    busy = [
        (low, high)
        for category, low, high in _all_bars(timelines)
        if category not in ("pause", "wait")
    ]
    replies = [(timeline.latency_ns, timeline.latency_ns) for timeline in timelines]
    end_ns = max(timeline.end_ns for timeline in timelines)
    return TimeAxis.around(busy + replies, end_ns)


def categories(timelines: Sequence[Timeline]) -> dict[str, str]:
    """Return the categories of time in timelines, and their labels."""
    spent_on = {category for category, _, _ in _all_bars(timelines)}
    return {name: look.words for name, look in CATEGORIES.items() if name in spent_on}


def _all_bars(timelines: Sequence[Timeline]) -> Iterator[tuple[str, int, int]]:
    for timeline in timelines:
        for entry in timeline.steps:
            yield from bars(entry)


@dataclass
class Bar:
    """A stretch of time in a row."""

    category: str
    label: str
    low_ns: int
    high_ns: int
    count: int = 1
    for_shard: bool = False
    #: Label and role of the step, equal for all pieces of one transfer
    key: tuple[str, str] = ("", "")

    def touches(self, other: Bar) -> bool:
        """Return True if two bars overlap or one begins where the other ends."""
        return self.low_ns <= other.high_ns and other.low_ns <= self.high_ns

    def hides(self, other: Bar) -> bool:
        """Return True if two bars belong to one transfer and overlap."""
        overlap = self.low_ns < other.high_ns and self.high_ns > other.low_ns
        return self.key == other.key and overlap

    def absorb(self, other: Bar) -> None:
        """Stretch the bar over another one of its transfer."""
        self.label, _ = split_label(self.label)
        self.low_ns = min(self.low_ns, other.low_ns)
        self.high_ns = max(self.high_ns, other.high_ns)
        self.count += other.count


#: Roles of the primary's work for one shard.
_FOR_SHARD_ROLES = ("primary.cpu", "primary.worker", "pg.exec")


def bars_of(entry: TimelineStep) -> list[Bar]:
    """Return the bars of a step, waiting first."""
    step = entry.step
    label = step.label.removeprefix("messenger, ")
    # Repairs and degraded reads only decode.
    labels = {"coding": "encode" if "encode" in label else "decode"}
    return [
        Bar(
            category,
            labels.get(category, label),
            low,
            high,
            for_shard=entry.branch is not None and step.role in _FOR_SHARD_ROLES,
            key=(split_label(step.label)[0], step.role),
        )
        for category, low, high in bars(entry)
    ]


def time_words(time_ns: float) -> str:
    """Format a time in µs or ms."""
    if time_ns >= 1e6:
        return f"{time_ns / 1e6:.3g} ms"
    if time_ns >= 1e4:
        return f"{time_ns / 1e3:.0f} µs"
    return f"{time_ns / 1e3:.2g} µs"


def shard_name(timeline: Timeline, shard: int) -> str:
    """Name a shard with its content and OSD, such as ``shard 1 (data, osd.7)``."""
    facts = [_content(timeline, shard)]
    if shard in timeline.missing:
        facts.append("rebuilt" if timeline.op == "repair" else "down")
    osd = timeline.osds[shard]
    if osd >= 0:
        facts.append(f"osd.{osd}")
    name = f"shard {shard} ({', '.join(facts)})"
    if shard == timeline.primary:
        return f"primary’s {name}"
    return name


def _content(timeline: Timeline, shard: int) -> str:
    if timeline.data_shards == 1:
        return "copy"
    return "data" if shard < timeline.data_shards else "parity"


def merged_bars(row: Sequence[Bar]) -> list[Bar]:
    """Merge adjacent bars of the same transfer."""
    work: list[Bar] = []
    waits: list[Bar] = []
    for bar in sorted(row, key=lambda bar: (bar.low_ns, bar.high_ns)):
        merged = waits if bar.category == "wait" else work
        for other in merged:
            alike = (other.category, other.key) == (bar.category, bar.key)
            if alike and other.touches(bar):
                other.absorb(bar)
                break
        else:
            merged.append(bar)
    # Do not show one piece as waiting while another piece of the same transfer is served.
    seen_waits = [wait for wait in waits if not any(bar.hides(wait) for bar in work)]
    return work + seen_waits


def packed(row: Sequence[Bar]) -> list[tuple[int, int, Bar]]:
    """Stack overlapping bars; return the level of each, the number of levels in its cluster, and the bar."""
    placed: list[tuple[int, int, Bar]] = []
    cluster: list[tuple[int, Bar]] = []
    #: End of the last bar on each level
    ends: list[int] = []
    for bar in sorted(row, key=lambda bar: (bar.low_ns, bar.high_ns)):
        if cluster and bar.low_ns >= max(ends):
            placed += [(level, len(ends), other) for level, other in cluster]
            cluster = []
            ends = []
        free = (index for index, end in enumerate(ends) if end <= bar.low_ns)
        level = next(free, len(ends))
        if level == len(ends):
            ends.append(0)
        ends[level] = bar.high_ns
        cluster.append((level, bar))
    return placed + [(level, len(ends), other) for level, other in cluster]
