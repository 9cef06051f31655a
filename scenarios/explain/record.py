"""What happened to one request: its steps with times, recorded by the reference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stripesim.sim.ceph import roles
from stripesim.sim.engine import graph
from stripesim.sim.engine.graph import COUNTERS, NO_SHARD, Template
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.observe.critical_path import predecessors_of

# A single bin that holds the whole run: the engine counts into bins only where they are asked for.
_ONE_BIN_NS = 1 << 60


class RecordingError(ValueError):
    """The run is not one that can be recorded."""


@dataclass(frozen=True)
class RecordedStep:
    """One step of a request, as the engine executed it."""

    graph: int  # 0 for the request itself, then one number for each detached graph that it started
    index: int  # in its graph
    shard: int | None  # whose sub-operation it belongs to, also on the primary; None: the whole request
    label: str  # what it does
    word: str  # of the op graph: use, delay, acquire …
    role: str  # whom it needs, as in the graph (shard[3].ssd); empty: nobody
    resource: str  # the same on the cluster (osd.7.ssd)
    ready_ns: int  # when it could have begun; service began at start_ns
    start_ns: int
    end_ns: int
    counted: dict[str, int]  # what it accounts, without zeros
    predecessors: tuple[int, ...]  # steps of the same graph that it waited for

    @property
    def wait_ns(self) -> int:
        """Time in the queue [ns]."""
        return self.start_ns - self.ready_ns

    @property
    def duration_ns(self) -> int:
        """Time in service [ns]."""
        return self.end_ns - self.start_ns


class RecordingEngine(SimpyEngine):
    """The reference engine, which also notes when each step of its only request is complete.

    Notes
    -----
    The engine accounts each step when it completes: that is the hook. Waits and service are the
    engine's own; nothing is timed a second time.
    """

    def __init__(self, program: Program) -> None:
        #: Template index → step → completion [ns].
        self.completions_ns: dict[int, dict[int, int]] = {}
        self._template_of: dict[int, int] = {}
        super().__init__(program)

    def path(self, template: int) -> Any:
        """Return a template's plain lists and remember whose they are."""
        found = super().path(template)
        self._template_of[id(found)] = template
        return found

    def _account(self, path: Any, *rest: Any, **named: Any) -> None:
        # Of what follows the path only the step's number matters here; the rest is the engine's affair.
        step = next(value for value in rest if type(value) is int)
        path = getattr(path, "path", path)
        template = self._template_of[id(path)]
        self.completions_ns.setdefault(template, {}).setdefault(step, int(self.now))
        super()._account(path, *rest, **named)


def record(program: Program) -> tuple[list[RecordedStep], int, list[int]]:
    """Run a program of one request; return its steps, the time of its reply [ns] and its graphs.

    Service times should have no spread, so that a demand is a mean. Steps on the side of a branch that was
    not taken are absent. Graphs are templates by index in the program's book, the request's own first.
    """
    engine = RecordingEngine(replace(program, bin_ns=_ONE_BIN_NS))
    run = engine.execute()
    streams = [stream for stream in run.streams if len(stream.issued_ns)]
    issued = sum(len(stream.issued_ns) for stream in streams)
    if issued != 1:
        raise RecordingError(f"explain: got {issued} requests, wanted one")
    chosen, binding = int(streams[0].templates[0]), int(streams[0].bindings[0])
    reply_ns = int(streams[0].completed_ns[0])
    templates = program.book.templates
    ends_ns = engine.completions_ns
    if ends_ns.get(chosen, {}).get(templates[chosen].reply) != reply_ns:
        raise RecordingError("explain: the recording does not hold the request's reply")
    row = [*program.book.bindings[binding].tolist(), -1]
    names = program.resources.names
    detached = [number for number in ends_ns if number != chosen]
    steps: list[RecordedStep] = []
    graphs = [chosen, *detached]
    for number, template in enumerate(graphs):
        steps += _steps(number, templates[template], ends_ns[template], row, names)
    steps.sort(key=lambda step: (step.start_ns, step.graph, step.index))
    return steps, reply_ns, graphs


def _steps(
    number: int, template: Template, ends_ns: dict[int, int], row: Sequence[int], names: Sequence[str]
) -> list[RecordedStep]:
    """Join a graph and its completions to steps."""
    before = predecessors_of(template)
    begun_ns = min(ends_ns.values())
    found = []
    for step, end_ns in ends_ns.items():
        role, word = int(template.roles[step]), int(template.words[step])
        resource = row[role] if role >= 0 else -1
        ready_ns = max((ends_ns[index] for index in before[step] if index in ends_ns), default=begun_ns)
        bound = role < 0 or resource >= 0
        served = word in (graph.USE, graph.DELAY) and bound
        # Service ends a demand after it began; what is left of the time before is the queue.
        start_ns = max(ready_ns, end_ns - int(template.demands_ns[step])) if served else end_ns
        amounts = zip(COUNTERS, _amounts(template, step), strict=True)
        found.append(
            RecordedStep(
                graph=number,
                index=step,
                shard=template.shards[step] if template.shards[step] != NO_SHARD else None,
                label=template.labels[step],
                word=graph.WORDS[word],
                role=roles.role_name(role),
                resource=names[resource] if resource >= 0 else "",
                ready_ns=ready_ns,
                start_ns=start_ns,
                end_ns=end_ns,
                counted={name: amount for name, amount in amounts if amount and bound},
                predecessors=before[step],
            )
        )
    return found


def _amounts(template: Template, step: int) -> list[int]:
    """Sum what a step accounts; alone on the cluster it also pays what is accounted once per service."""
    once = getattr(getattr(template, "dynamics", None), "once", None)
    counted = template.amounts[step] if once is None else template.amounts[step] + once[step]
    return [int(amount) for amount in counted]
