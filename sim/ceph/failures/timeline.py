"""What happened when: the events of a run under faults, and the state of every placement group."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stripesim.sim.ceph.failures.groups import STATES, State
from stripesim.sim.engine.graph import IntArray

#: OSDs of one event that its text names.
_NAMED_MAX = 4


def osd_names(osds: Sequence[int]) -> str:
    """Name OSDs, or count them where they are many.

    >>> osd_names([0, 1]), osd_names(range(6, 12))
    ('osd.0, osd.1', '6 OSDs from osd.6')
    """
    if len(osds) > _NAMED_MAX:
        return f"{len(osds)} OSDs from osd.{min(osds)}"
    return ", ".join(f"osd.{osd}" for osd in osds)


@dataclass(frozen=True)
class Event:
    """One line of the timeline.

    `what` is one word, such as ``failed``, ``detected``, ``down``, ``out``, ``recovering``, ``clean``;
    `text` says who and why.
    """

    time_ns: int
    what: str
    text: str


@dataclass
class Timeline:
    """Events, and states of placement groups, as they came.

    All placement groups begin clean; for the `narrow` ones CRUSH never found enough OSDs, and the cluster
    is whole without them.
    """

    groups: int
    events: list[Event] = field(default_factory=list)
    changes: list[tuple[int, int, State]] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    narrow: int = 0
    lost: dict[int, set[int]] = field(default_factory=dict)
    counts: dict[State, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.states = [State.CLEAN] * self.groups
        self.counts = dict.fromkeys(STATES, 0) | {State.CLEAN: self.groups}

    def note(self, time_ns: int, what: str, text: str) -> None:
        """Add an event."""
        self.events.append(Event(time_ns, what, text))

    def enter(self, time_ns: int, group: int, state: State) -> None:
        """Let a placement group enter a state."""
        before = self.states[group]
        if before == state:
            return
        self.changes.append((time_ns, group, state))
        self.states[group] = state
        self.counts[before] -= 1
        self.counts[state] += 1

    @property
    def all_clean(self) -> bool:
        """Whether every placement group that can be is clean just now."""
        return self.counts[State.CLEAN] >= self.groups - self.narrow

    def series(self) -> tuple[IntArray, IntArray]:
        """Count placement groups by state over time.

        From each moment on [ns], ascending from 0, how many groups are in each of `STATES`.
        """
        times: list[int] = [0]
        counts = np.zeros(len(STATES), dtype=np.int64)
        now = dict.fromkeys(range(self.groups), State.CLEAN)
        counts[STATES.index(State.CLEAN)] = self.groups
        rows = [counts.copy()]
        for time_ns, group, state in self.changes:
            counts[STATES.index(now[group])] -= 1
            counts[STATES.index(state)] += 1
            now[group] = state
            if time_ns != times[-1]:
                times.append(time_ns)
                rows.append(counts)
            rows[-1] = counts.copy()
        return np.array(times, dtype=np.int64), np.stack(rows)

    def spans(
        self, states: tuple[State, ...] = (State.INACTIVE, State.INCOMPLETE)
    ) -> list[tuple[int, int, int | None, State]]:
        """List when which placement group was in one of some states.

        Each is group, from [ns], to [ns] (None: to the end of the run) and state; by time.
        """
        found: list[tuple[int, int, int | None, State]] = []
        open_since: dict[int, tuple[int, State]] = {}
        for time_ns, group, state in self.changes:
            if group in open_since:
                start_ns, was = open_since.pop(group)
                found.append((group, start_ns, time_ns, was))
            if state in states:
                open_since[group] = (time_ns, state)
        found += [
            (group, start_ns, None, was)
            for group, (start_ns, was) in open_since.items()
        ]
        return sorted(found, key=lambda span: (span[1], span[0]))

    def seconds_in(self, end_ns: int, *states: State) -> float:
        """Return how long placement groups were in some states, all together [s]."""
        spans = self.spans(states)
        return (
            sum(
                (end_ns if to_ns is None else to_ns) - from_ns
                for _, from_ns, to_ns, _ in spans
            )
            / 1e9
        )
