"""Split the critical path of a request over steps, and each step into service and waiting."""

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

#: The steps that a latency consists of, in the order of a write: the phases of operations, the coding within
#: the primary's processor time, and the time before a request was issued for the last time (*hung*).
#: Each is split into service and waiting.
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
#: Steps with service; locks, and being issued again, are only waited for.
SERVED_STEPS: Final = tuple(step for step in STEPS if step not in ("lock", "hung"))
#: Steps with waiting; encoding waits as part of the primary's processor time, a pause for nothing.
WAITED_STEPS: Final = tuple(step for step in STEPS if step not in ("encode", "pause"))

_INDEX: Final = {step: index for index, step in enumerate(STEPS)}
_ENCODE: Final = _INDEX["encode"]
_HUNG: Final = _INDEX["hung"]
_OF_PHASES: Final = {phase: _INDEX[phase.name.lower()] for phase in Phase}
_CODING: Final = COUNTER_INDEX["coding_ns"]


@dataclass(frozen=True)
class PathTimes:
    """The critical path of one request, split over steps."""

    # Shape (len(STEPS),). Service and waiting time by step [ns]; their sum is the latency.
    served_ns: IntArray
    waited_ns: IntArray

    @property
    def latency_ns(self) -> int:
        """Return the time from issue to reply [ns]."""
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
    """Return the critical path: from the reply back to the predecessor that completed last, and so on.

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

        A step on the path is ready when its last predecessor is complete. From then to its end it waits and
        then is served, the latter as long as it demands. A transaction
        in a sync that serves several has the service that it would have had alone; the rest counts as
        waiting. The time before the first step is waiting too, *hung*: the request had been issued to a
        member that died or a group that was held, until it was issued for the last time.

        Raises
        ------
        ValueError
            If the request has no reply, or if a step without a phase takes time.
        """
        template = self.template
        if ends_ns[template.reply] == PENDING:
            raise ValueError(
                f"{template.name}: got a request without a reply, wanted one that completed"
            )
        served = np.zeros(len(STEPS), dtype=np.int64)
        waited = np.zeros(len(STEPS), dtype=np.int64)
        path = critical_steps(self._before, ends_ns, template.reply)
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
        return PathTimes(served, waited)

    def _demand_ns(self, number: int, step: int, retries: int) -> int:
        """Return the service time of a step of a request [ns], its random factor included."""
        template = self.template
        if template.words[step] not in (USE, DELAY):
            return 0
        demand_ns = int(template.demands_ns[step])
        spread = int(template.spreads[step])
        if not spread:
            return demand_ns
        state = self.seed_state
        if retries:
            state = retried_state(state, retries)
        index = factor_index(state, number << STEP_BITS | step)
        return scaled_ns(demand_ns, int(self.factor_tables[spread][index]))
