"""Where the time of a request went: its critical path, split over steps, each into service and waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from stripesim.sim.ceph import roles
from stripesim.sim.engine.draws import factor_index, retried_state, scaled_ns
from stripesim.sim.engine.graph import ACQUIRE, DELAY, NO_ROLE, STEP_BITS, USE, IntArray, Template
from stripesim.sim.engine.program import PENDING

__all__ = ["SERVED_STEPS", "STEPS", "WAITED_STEPS", "PathSplitter", "PathTimes", "step_kinds"]

#: The steps of a request, in the order of a write. A step's time is service, or waiting for what serves it.
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

_OF_FIXED_ROLES: Final = {
    roles.CLIENT_SUBMIT: "client",
    **dict.fromkeys(
        (roles.CLIENT_TX, roles.CLIENT_RX, roles.PUBLIC_TX, roles.PUBLIC_RX, roles.PUBLIC_WIRE), "public_net"
    ),
    **dict.fromkeys((roles.PRIMARY_WORKER, roles.PRIMARY_CPU), "primary_cpu"),
    **dict.fromkeys((roles.PG_LOCK, roles.PG_EXEC, roles.PG_PIPELINE), "lock"),
}
_OF_SHARD_ROLES: Final = {
    **dict.fromkeys((roles.WORKER, roles.CPU), "shard_cpu"),
    roles.SSD: "device",
    **dict.fromkeys((roles.KV, roles.SYNC), "log"),
    **dict.fromkeys(
        (roles.OUT_TX, roles.OUT_WIRE, roles.OUT_RX, roles.BACK_TX, roles.BACK_WIRE, roles.BACK_RX),
        "distribution",
    ),
}


@dataclass(frozen=True)
class PathTimes:
    """What one request's critical path consists of.

    Parameters
    ----------
    served_ns, waited_ns : ndarray of int64, shape (len(STEPS),)
        Time in service and time waiting, by step [ns]; together they are the latency.
    """

    served_ns: IntArray
    waited_ns: IntArray

    @property
    def latency_ns(self) -> int:
        """From issue to reply [ns]."""
        return int(self.served_ns.sum() + self.waited_ns.sum())


def step_kinds(template: Template) -> list[int]:
    """Return which of `STEPS` each step of a template belongs to, as an index.

    Notes
    -----
    The resource that a step needs decides. Two things it does not tell: what a processor does while
    the thread of the key-value log is held is part of the log, and what the private network carries for a
    read, also one inside a write, has ``read`` in its label.
    """
    before = predecessors_of(template)
    words, named = template.words.tolist(), template.roles.tolist()
    kinds: list[int] = []
    for step, role in enumerate(named):
        kind = _INDEX[_kind_of(role, template.labels[step])]
        if _part(role) in (roles.OUT_WIRE, roles.BACK_WIRE):
            # A wire carries what was sent before.
            kind = kinds[before[step][0]]
        elif any(words[p] == ACQUIRE and _part(named[p]) == roles.KV for p in before[step]):
            kind = _INDEX["log"]
        kinds.append(kind)
    return kinds


def _part(role: int) -> int:
    """Return which part of a shard a role is; −1: of no shard."""
    return (role - roles.FIXED_ROLES) % roles.SHARD_ROLES if role >= roles.FIXED_ROLES else -1


def _kind_of(role: int, label: str) -> str:
    if role == NO_ROLE:
        return "pause"
    if role < roles.FIXED_ROLES:
        return _OF_FIXED_ROLES.get(role, "pause")
    kind = _OF_SHARD_ROLES.get(_part(role), "pause")
    return "read_back" if kind == "distribution" and "read" in label else kind


def predecessors_of(template: Template) -> list[tuple[int, ...]]:
    """List the predecessors of each step of a template."""
    before: list[list[int]] = [[] for _ in range(template.steps)]
    starts = template.successor_starts.tolist()
    for step in range(template.steps):
        for after in template.successors[starts[step] : starts[step + 1]].tolist():
            before[after].append(step)
    return [tuple(steps) for steps in before]


@dataclass(frozen=True)
class PathSplitter:
    """Splits the critical paths of requests on one template.

    Parameters
    ----------
    template : Template
    coding_ns : ndarray of int64, shape (steps,)
        The part of each step's demand that encodes, decodes or rebuilds [ns].
    factor_tables : ndarray of int64, shape (distributions, FACTOR_POINTS)
        The run's.
    seed_state : int
        The run's, from `stripesim.sim.engine.draws.seed_state`.
    """

    template: Template
    coding_ns: IntArray
    factor_tables: IntArray
    seed_state: int

    @cached_property
    def _before(self) -> list[tuple[int, ...]]:
        return predecessors_of(self.template)

    @cached_property
    def _kinds(self) -> list[int]:
        return step_kinds(self.template)

    def split(self, number: int, issued_ns: int, ends_ns: Sequence[int], *, retries: int = 0) -> PathTimes:
        """Walk back from the reply, each time to the predecessor that was complete last.

        Parameters
        ----------
        number : int
            The request's number in the run, which its random service times belong to.
        issued_ns : int
            When it was issued [ns].
        ends_ns : sequence of int
            When each step completed [ns]; `PENDING` where it has not run.
        retries : int
            How often it was cut off and issued again.

        Returns
        -------
        PathTimes
            Its parts add up to the end of the reply minus `issued_ns`, exactly.

        Raises
        ------
        ValueError
            If the reply has not completed.

        Notes
        -----
        A step on the path is ready when its last predecessor is complete. Of what lies between that and its
        end the last part is service, as much as it demands, and the rest waiting. A transaction in a sync
        that serves several has the service that it would have had alone; what it took longer for the
        others' sake counts as waiting. What lies before the first step is waiting too, *hung*: the request
        had been issued, to a member that died or a group that was held, until it was issued for the last
        time.
        """
        template, before, kinds = self.template, self._before, self._kinds
        served, waited = [0] * len(STEPS), [0] * len(STEPS)
        step = template.reply
        if ends_ns[step] == PENDING:
            raise ValueError(f"{template.name}: got a request without a reply, wanted one that completed")
        while before[step]:
            last = max((p for p in before[step] if ends_ns[p] != PENDING), key=lambda p: (ends_ns[p], -p))
            span_ns, kind = ends_ns[step] - ends_ns[last], kinds[step]
            if span_ns:
                service_ns = min(span_ns, self._demand_ns(number, step, retries))
                coding_ns = min(service_ns, int(self.coding_ns[step]))
                served[_ENCODE] += coding_ns
                served[kind] += service_ns - coding_ns
                waited[kind] += span_ns - service_ns
            step = last
        waited[_HUNG] += ends_ns[step] - issued_ns
        return PathTimes(np.array(served, dtype=np.int64), np.array(waited, dtype=np.int64))

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
        return scaled_ns(demand_ns, int(self.factor_tables[spread][factor_index(state, key)]))
