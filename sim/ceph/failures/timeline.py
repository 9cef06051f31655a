"""The timeline of a run under faults: events, and the state of every PG over time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from stripesim.sim.ceph.failures.groups import STATES, State
from stripesim.sim.engine.graph import IntArray

# OSDs that the text of an event names at most.
_NAMED_OSDS_MAX = 4


def osd_names(osds: Sequence[int]) -> str:
    """Name OSDs, or count them if they are many.

    >>> osd_names([0, 1]), osd_names(range(6, 12))
    ('osd.0, osd.1', '6 OSDs from osd.6')
    """
    if len(osds) > _NAMED_OSDS_MAX:
        return f"{len(osds)} OSDs from osd.{min(osds)}"
    return ", ".join(f"osd.{osd}" for osd in osds)


@dataclass(frozen=True)
class FaultEvent:
    """One line of the timeline.

    `kind` is one word, such as ``failed``, ``detected``, ``down``, ``out``, ``recovering``, ``clean``;
    `text` names the OSD or PG and the reason.
    """

    time_ns: int
    kind: str
    text: str


class StateSpan(NamedTuple):
    """The time that a PG spent in one state, until `to_ns` (None: the end of the run)."""

    group: int
    from_ns: int
    to_ns: int | None
    state: State

    def duration_ns(self, end_ns: int) -> int:
        """Return its length in a run that ends at a time [ns]."""
        return (end_ns if self.to_ns is None else self.to_ns) - self.from_ns


class GatewayStall(NamedTuple):
    """The time in which some groups of the engine have a gateway that does not answer."""

    groups: Sequence[int]
    from_ns: int
    to_ns: int


@dataclass
class FaultTimeline:
    """Events and state changes of PGs, in the order of their occurrence.

    All PGs begin clean. For `narrow` ones CRUSH has never found enough OSDs; the cluster counts as clean
    without them. `lost` has the permanently lost objects by PG. `slow_spans` has when PGs used a slow drive,
    with None for the end of the run.
    """

    groups: int
    events: list[FaultEvent] = field(default_factory=list)
    changes: list[tuple[int, int, State]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    narrow: set[int] = field(default_factory=set)
    lost: dict[int, set[int]] = field(default_factory=dict)
    slow_spans: list[tuple[int, int | None]] = field(default_factory=list)
    gateway_stalls: list[GatewayStall] = field(default_factory=list)
    clean_count: int = 0

    def __post_init__(self) -> None:
        self.states = [State.CLEAN] * self.groups
        self.clean_count = self.groups

    def note(self, time_ns: int, kind: str, text: str) -> None:
        """Add an event."""
        self.events.append(FaultEvent(time_ns, kind, text))

    def note_slowness(self, time_ns: int, is_used: bool) -> None:
        """Record if the PGs use a slow drive from a time on."""
        spans = self.slow_spans
        was_used = bool(spans) and spans[-1][1] is None
        if is_used and not was_used:
            spans.append((time_ns, None))
        elif was_used and not is_used:
            start_ns, _ = spans.pop()
            spans.append((start_ns, time_ns))

    def is_slow(self, time_ns: int) -> bool:
        """Return True if PGs use a slow drive right after a time."""
        return any(
            start_ns <= time_ns and (stop_ns is None or time_ns < stop_ns)
            for start_ns, stop_ns in self.slow_spans
        )

    def first_ns(self, kind: str, after_ns: int = 0) -> int | None:
        """Return the time of the first event of a kind, not before a time [ns]."""
        for event in self.events:
            if event.kind == kind and event.time_ns >= after_ns:
                return event.time_ns
        return None

    def enter(self, time_ns: int, group: int, state: State) -> None:
        """Record that a PG enters a state."""
        before = self.states[group]
        if before == state:
            return
        self.changes.append((time_ns, group, state))
        self.states[group] = state
        self.clean_count += (state == State.CLEAN) - (before == State.CLEAN)

    @property
    def all_clean(self) -> bool:
        """True if every PG that can be clean is clean now."""
        return self.clean_count >= self.groups - len(self.narrow)

    def series(self) -> tuple[IntArray, IntArray]:
        """Count PGs by state over time.

        Returns
        -------
        times_ns
            When a count changes [ns], ascending from 0, shape (times,).
        counts
            PGs in each of `STATES` up to the next time, shape (times, states).
        """
        times: list[int] = [0]
        counts = np.zeros(len(STATES), dtype=np.int64)
        counts[STATES.index(State.CLEAN)] = self.groups
        rows = [counts.copy()]
        state_of = dict.fromkeys(range(self.groups), State.CLEAN)
        for time_ns, group, state in self.changes:
            counts[STATES.index(state_of[group])] -= 1
            counts[STATES.index(state)] += 1
            state_of[group] = state
            if time_ns != times[-1]:
                times.append(time_ns)
                rows.append(counts)
            rows[-1] = counts.copy()
        return np.array(times, dtype=np.int64), np.stack(rows)

    def spans(
        self, states: tuple[State, ...] = (State.INACTIVE, State.INCOMPLETE)
    ) -> list[StateSpan]:
        """List when PGs were in some states, by time."""
        spans: list[StateSpan] = []
        since: dict[int, tuple[int, State]] = {}
        for time_ns, group, state in self.changes:
            if group in since:
                from_ns, state_before = since.pop(group)
                spans.append(StateSpan(group, from_ns, time_ns, state_before))
            if state in states:
                since[group] = (time_ns, state)
        for group, (from_ns, last_state) in since.items():
            spans.append(StateSpan(group, from_ns, None, last_state))
        return sorted(spans, key=lambda span: (span.from_ns, span.group))

    def seconds_in(self, end_ns: int, *states: State) -> float:
        """Return the total time of PGs in some states [s]."""
        return sum(span.duration_ns(end_ns) for span in self.spans(states)) / 1e9
