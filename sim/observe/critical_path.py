"""Where the time of a request went: its critical path, split over steps, each into service and waiting."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np

from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.draws import factor_index, retried_state, scaled_ns
from stripesim.sim.engine.graph import (
    COUNTER_INDEX,
    DELAY,
    NO_PHASE,
    STEP_BITS,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import PENDING

#: What a latency consists of, in the order of a write: the phases that steps are stamped with, the coding
#: inside of the primary's processor time, and the time before a request was issued for the last time.
#: Each part is service, or waiting for what serves it.
STEPS: Final = (
    "client",
    "public_net",
    "lock",
    "primary_cpu",
    "encode",
    "read_back",
    "distribution",
    "shard_cpu",
    "device",
    "log",
    "pause",
    "hung",
)
#: Steps that have a service; a lock is only waited for, and so is being issued again.
SERVED_STEPS: Final = tuple(step for step in STEPS if step not in ("lock", "hung"))
#: Steps that can be waited for; encoding waits for the primary's processor, a pause for nobody.
WAITED_STEPS: Final = tuple(step for step in STEPS if step not in ("encode", "pause"))

_INDEX: Final = {step: index for index, step in enumerate(STEPS)}
_ENCODE: Final = _INDEX["encode"]
_HUNG: Final = _INDEX["hung"]
_OF_PHASES: Final = {phase: _INDEX[phase.name.lower()] for phase in Phase}
_CODING: Final = COUNTER_INDEX["coding_ns"]


@dataclass(frozen=True)
class PathTimes:
    """What one request's critical path consists of."""

    # Shape (len(STEPS). Time in service and time waiting, by step [ns]; together they are the latency.
    served_ns: IntArray
    waited_ns: IntArray

    @property
    def latency_ns(self) -> int:
        """From issue to reply [ns]."""
        return int(self.served_ns.sum() + self.waited_ns.sum())


def predecessors_of(template: Template) -> list[tuple[int, ...]]:
    """List the predecessors of each step of a template."""
    before: list[list[int]] = [[] for _ in range(template.steps)]
    starts = template.successor_starts.tolist()
    for step in range(template.steps):
        for after in template.successors[starts[step] : starts[step + 1]].tolist():
            before[after].append(step)
    return [tuple(steps) for steps in before]


def critical_steps(
    before: Sequence[Sequence[int]], ends_ns: Sequence[int], reply: int
) -> list[int]:
    """Walk back from the reply, each time to the predecessor that was complete last.

    >>> critical_steps([[], [0], [0], [1, 2]], [0, 50, 30, 60], 3)
    [0, 1, 3]
    """
    path = [reply]
    while before[path[-1]]:
        done = (step for step in before[path[-1]] if ends_ns[step] != PENDING)
        path.append(max(done, key=lambda step: (ends_ns[step], -step)))
    return path[::-1]


@dataclass(frozen=True)
class PathSplitter:
    """Splits the critical paths of requests on one template."""

    template: Template
    factor_tables: IntArray  # Shape (distributions, FACTOR_POINTS). The run's.
    seed_state: int  # The run's, from `stripesim.sim.engine.draws.seed_state`.

    @cached_property
    def _before(self) -> list[tuple[int, ...]]:
        return predecessors_of(self.template)

    def split(
        self, number: int, issued_ns: int, ends_ns: Sequence[int], *, retries: int = 0
    ) -> PathTimes:
        """Split the time between issue and reply over the steps of the critical path.

        A step on the path is ready when its last predecessor is complete. Of what lies between that and its
        end the last part is service, as much as it demands, and the rest waiting. A transaction in a sync
        that serves several has the service that it would have had alone; what it took longer for the
        others' sake counts as waiting. What lies before the first step is waiting too, *hung*: the request
        had been issued, to a member that died or a group that was held, until it was issued for the last
        time.
        """
        template = self.template
        served, waited = [0] * len(STEPS), [0] * len(STEPS)
        step = template.reply
        if ends_ns[step] == PENDING:
            raise ValueError(
                f"{template.name}: got a request without a reply, wanted one that completed"
            )
        path = critical_steps(self._before, ends_ns, step)
        for last, step in pairwise(path):
            span_ns = ends_ns[step] - ends_ns[last]
            if not span_ns:
                continue
            if template.phases[step] == NO_PHASE:
                raise ValueError(
                    f"{template.name}: '{template.labels[step]}' takes time and has no phase"
                )
            part = _OF_PHASES[Phase(template.phases[step])]
            service_ns = min(span_ns, self._demand_ns(number, step, retries))
            coding_ns = min(service_ns, int(template.amounts[step, _CODING]))
            served[_ENCODE] += coding_ns
            served[part] += service_ns - coding_ns
            waited[part] += span_ns - service_ns
        waited[_HUNG] += ends_ns[path[0]] - issued_ns
        return PathTimes(
            np.array(served, dtype=np.int64), np.array(waited, dtype=np.int64)
        )

    def _demand_ns(self, number: int, step: int, retries: int) -> int:
        """Return what a step of a request takes in service [ns], its random factor included."""
        template = self.template
        if template.words[step] not in (USE, DELAY):
            return 0
        demand_ns, spread = int(template.demands_ns[step]), int(template.spreads[step])
        if not spread:
            return demand_ns
        key = number << STEP_BITS | step
        state = retried_state(self.seed_state, retries) if retries else self.seed_state
        return scaled_ns(
            demand_ns, int(self.factor_tables[spread][factor_index(state, key)])
        )
