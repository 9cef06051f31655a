"""Split the critical path of a request into steps, and each step into service and waiting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.draws import (
    draw_key,
    drawn_factor,
    factor_cells,
    retried_state,
    scaled_ns,
)
from stripesim.sim.engine.graph import (
    COUNTER_INDEX,
    DELAY,
    NO_PHASE,
    USE,
    IntArray,
    Template,
)
from stripesim.sim.engine.program import PENDING

#: The steps of a latency, in the order of a write: the phases of operations, the coding within
#: the primary's processor time, and the time until a request was issued for the last time
#: (*hung*). Each consists of service and waiting.
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
#: Steps with service. Requests only wait for locks and for being issued again.
SERVED_STEPS: Final = tuple(step for step in STEPS if step not in ("lock", "hung"))
#: Steps with waiting. Encoding waits as part of the primary's processor time, and a pause
#: waits for nothing.
WAITED_STEPS: Final = tuple(step for step in STEPS if step not in ("encode", "pause"))


def cost_key(step: str, *, waiting: bool = False) -> str:
    """Name the column of a step's mean time in service, or waiting.

    >>> cost_key("device"), cost_key("lock", waiting=True)
    ('cost_device_ns', 'cost_lock_wait_ns')
    """
    return f"cost_{step}_wait_ns" if waiting else f"cost_{step}_ns"


def steps_with_time(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the steps that any row spends time on, in their order."""
    return [step for step in STEPS if any(_takes_time(row, step) for row in rows)]


def _takes_time(row: Mapping[str, Any], step: str) -> bool:
    return bool(row.get(cost_key(step)) or row.get(cost_key(step, waiting=True)))


def _cost_keys() -> list[str]:
    keys = []
    for step in STEPS:
        if step in SERVED_STEPS:
            keys.append(cost_key(step))
        if step in WAITED_STEPS:
            keys.append(cost_key(step, waiting=True))
    return keys


#: Columns of a row that are parts of the latency: service and waiting of each step, in the steps' order.
COST_KEYS: Final = tuple(_cost_keys())


def dominant(row: Mapping[str, Any]) -> str | None:
    """Name the largest part of a row's latency, such as ``lock_wait``, or return None without costs."""
    if row.get(COST_KEYS[0]) is None:
        return None
    largest = max(COST_KEYS, key=lambda key: row[key])
    return largest.removeprefix("cost_").removesuffix("_ns")


_INDEX: Final = {step: index for index, step in enumerate(STEPS)}
_ENCODE: Final = _INDEX["encode"]
_HUNG: Final = _INDEX["hung"]
_OF_PHASES: Final = {phase: _INDEX[phase.name.lower()] for phase in Phase}
_CODING: Final = COUNTER_INDEX["coding_ns"]
# Part of a step without a phase.
_NO_PART: Final = -1


@dataclass(frozen=True)
class PathTimes:
    """The critical path of one request, split into steps.

    Attributes
    ----------
    served_ns, waited_ns
        Service and waiting time by step [ns], shape (len(STEPS),). Their sum is the latency.
    """

    served_ns: IntArray
    waited_ns: IntArray

    @property
    def latency_ns(self) -> int:
        """Time from issue to reply [ns]."""
        return int(self.served_ns.sum() + self.waited_ns.sum())


def predecessors_of(template: Template) -> list[tuple[int, ...]]:
    """List the predecessors of each step of a template.

    Parameters
    ----------
    template
        The template.

    Returns
    -------
    list of tuple of int
        Predecessors by step.
    """
    before: list[list[int]] = [[] for _ in range(template.steps)]
    starts = template.successor_starts.tolist()
    for step in range(template.steps):
        for after in template.successors[starts[step] : starts[step + 1]].tolist():
            before[after].append(step)
    return [tuple(steps) for steps in before]


def critical_steps(
    before: Sequence[Sequence[int]], ends_ns: Sequence[int], reply: int
) -> list[int]:
    """Return the critical path: the reply, its predecessor that completed last, and so on to step 0.

    A join for the first few completes before its other predecessors, which are not on the path.

    Parameters
    ----------
    before
        Predecessors of each step.
    ends_ns
        Completion time of each step [ns].
    reply
        The step that completes the request.

    Returns
    -------
    list of int
        Steps from 0 to the reply. Ties go to the lower step.

    Examples
    --------
    >>> critical_steps([[], [0], [0], [1, 2]], [0, 50, 30, 60], 3)
    [0, 1, 3]
    >>> critical_steps([[], [0], [0], [1, 2]], [0, 50, 30, 30], 3)
    [0, 2, 3]
    """
    path = [reply]
    while earlier := before[path[-1]]:
        if len(earlier) == 1:
            path.append(earlier[0])
            continue
        # A step that did not complete has the lowest time, `PENDING`.
        own_ns = ends_ns[path[-1]]
        latest_ns = max([ends_ns[step] for step in earlier if ends_ns[step] <= own_ns])
        path.append(min([step for step in earlier if ends_ns[step] == latest_ns]))
    return path[::-1]


class _TemplateStep(NamedTuple):
    """One step of a template.

    `part` is the index of its phase in `STEPS`, and `demand_ns` its mean service time, 0 if it only waits.
    """

    part: int
    demand_ns: int
    spread: int
    coding_ns: int


@dataclass(frozen=True)
class PathSplitter:
    """Splits the critical paths of requests on one template.

    Attributes
    ----------
    template
        The template.
    factor_tables
        Random factors of the run, shape (distributions, FACTOR_POINTS).
    seed_state
        State of the run's seed, from `stripesim.sim.engine.draws.seed_state`.
    """

    template: Template
    factor_tables: IntArray
    seed_state: int

    @cached_property
    def _before(self) -> list[tuple[int, ...]]:
        return predecessors_of(self.template)

    @cached_property
    def _steps(self) -> list[_TemplateStep]:
        """Numbers of each step that the split needs."""
        template = self.template
        columns = (template.words, template.demands_ns, template.spreads)
        numbers = zip(*(column.tolist() for column in columns), strict=True)
        coding_ns = template.amounts[:, _CODING].tolist()
        steps = []
        for step, (word, demand_ns, spread) in enumerate(numbers):
            phase = template.phases[step]
            steps.append(
                _TemplateStep(
                    part=_NO_PART if phase == NO_PHASE else _OF_PHASES[Phase(phase)],
                    demand_ns=demand_ns if word in (USE, DELAY) else 0,
                    spread=spread,
                    coding_ns=coding_ns[step],
                )
            )
        return steps

    @cached_property
    def _cells(self) -> list[list[list[int]]]:
        cells: list[list[list[int]]] = factor_cells(self.factor_tables).tolist()
        return cells

    def split(
        self,
        number: int,
        issued_ns: int,
        ends_ns: Sequence[int],
        *,
        saved_ns: Sequence[int] | None = None,
        retries: int = 0,
    ) -> PathTimes:
        """Split the time from issue to reply into the steps of the critical path.

        Parameters
        ----------
        number
            The engine's number of the request.
        issued_ns
            Time of its first issue [ns].
        ends_ns
            Completion time of each step [ns].
        saved_ns
            Time that each step saved because others waited [ns], a row of `EngineRun.followed_saved_ns`.
            None: no time.
        retries
            Number of times it was cut off and issued again.

        Returns
        -------
        PathTimes
            Service and waiting time by step.

        Raises
        ------
        ValueError
            If the request has no reply, or if a step without a phase takes time.

        Notes
        -----
        A step on the path is ready when its last predecessor completes. From then until its end, it
        first waits and then is served for its demand. A transaction in a sync shared with others
        counts the service that it would have had alone, and waiting for the rest. The time before the
        first step is waiting (*hung*): the request had been issued to a member that died, or to a
        held group, until it was issued for the last time.
        """
        template = self.template
        if ends_ns[template.reply] == PENDING:
            raise ValueError(
                f"{template.name}: got a request without a reply, wanted one that completed"
            )
        served_ns = [0] * len(STEPS)
        waited_ns = [0] * len(STEPS)
        state = self.seed_state
        if retries:
            state = retried_state(state, retries)
        path = critical_steps(self._before, ends_ns, template.reply)
        last_ns = ends_ns[path[0]]
        waited_ns[_HUNG] = last_ns - issued_ns
        for index in path[1:]:
            end_ns = ends_ns[index]
            span_ns = end_ns - last_ns
            last_ns = end_ns
            if not span_ns:
                continue
            step = self._steps[index]
            if step.part == _NO_PART:
                raise ValueError(
                    f"{template.name}: '{template.labels[index]}' takes time and has no phase"
                )
            saved_of_step_ns = 0 if saved_ns is None else saved_ns[index]
            drawn_ns = self._drawn_ns(number, index, state, saved_of_step_ns)
            service_ns = min(span_ns, drawn_ns)
            coding_ns = min(service_ns, step.coding_ns)
            served_ns[_ENCODE] += coding_ns
            served_ns[step.part] += service_ns - coding_ns
            waited_ns[step.part] += span_ns - service_ns
        return PathTimes(
            np.array(served_ns, dtype=np.int64), np.array(waited_ns, dtype=np.int64)
        )

    def _drawn_ns(self, number: int, index: int, state: int, saved_ns: int) -> int:
        """Return the service time that the engine drew for a step of a request [ns].

        `state` is that of the seed for this issue of the request.
        """
        step = self._steps[index]
        demand_ns = step.demand_ns - saved_ns
        if not demand_ns or not step.spread:
            return demand_ns
        key = draw_key(number, index)
        factor = drawn_factor(self._cells[step.spread], state, key)
        return scaled_ns(demand_ns, factor)
