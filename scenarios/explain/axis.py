"""A time axis for timelines: stretches in which nothing happens but a pause are cut out, and say so."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
        return cls(end_ns, tuple((low + margin_ns, high - margin_ns) for low, high in quiet))

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
                return low / 1e3 - shift_us + self.gap_us * (time_ns - low) / (high - low)
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
        step = int(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough))
        times = range(0, self.end_ns // 1000 + 1, step)
        return [t for t in times if not any(low < t * 1000 < high for low, high in self.cuts)]


def busy_stretches(bars: Iterable[tuple[str, int, int]], marks_ns: Sequence[int]) -> list[tuple[int, int]]:
    """List the stretches that must be seen: all bars but pauses and waits, and marks such as a reply [ns]."""
    busy = [(low, high) for category, low, high in bars if category not in ("pause", "wait")]
    return busy + [(mark, mark) for mark in marks_ns]
