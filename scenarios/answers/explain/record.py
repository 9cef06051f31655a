"""Record the steps of one request, with their times, as the reference engine executes them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stripesim.models.problems import AnswerError, Problem
from stripesim.sim.ceph import roles
from stripesim.sim.engine import graph
from stripesim.sim.engine.graph import COUNTERS, NO_SHARD, Template
from stripesim.sim.engine.program import UNBOUND, Program, bound_rows
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight
from stripesim.sim.observe.critical_path import predecessors_of

# One bin that spans the whole run. Without bins the engine does not call `account`.
_ONE_BIN_NS = 1 << 60


@dataclass(frozen=True)
class RecordedStep:
    """One step of a request, as the engine executed it."""

    graph: int  # 0 for the request itself, further numbers for the detached graphs it started.
    index: int  # Position in its graph.
    # Shard of its sub-operation, on the primary as well. None for the whole request.
    shard: int | None
    label: str  # Description, such as "op prepare".
    word: str  # Kind of step in the op graph: use, delay, acquire …
    role: str  # Resource that it needs, as the graph names it (shard[3].ssd), or empty.
    resource: str  # The same resource, as the cluster names it (osd.7.ssd).
    ready_ns: int  # End of its last predecessor.
    start_ns: int  # Start of service.
    end_ns: int
    counted: dict[str, int]  # Counters that it increases, by name.
    predecessors: tuple[int, ...]  # Steps of the same graph that it waited for.

    @property
    def wait_ns(self) -> int:
        """Time in the queue [ns]."""
        return self.start_ns - self.ready_ns

    @property
    def duration_ns(self) -> int:
        """Time in service [ns]."""
        return self.end_ns - self.start_ns


class RecordingEngine(SimpyEngine):
    """The reference engine, which also notes when each step of one request completes."""

    def __init__(self, program: Program) -> None:
        #: Template index → step → completion [ns].
        self.completions_ns: dict[int, dict[int, int]] = {}
        super().__init__(program)

    def account(self, request: RequestInFlight, step: PathStep) -> None:
        """Account a completed step and note when it completed."""
        completions_ns = self.completions_ns.setdefault(request.path.number, {})
        completions_ns.setdefault(step.number, self.now_ns)
        super().account(request, step)


def record(
    program: Program, role_name: Callable[[int], str] = roles.role_name
) -> tuple[list[RecordedStep], int, list[int]]:
    """Run a program of one request; return its steps, the time of its reply [ns] and its templates.

    `role_name` names the roles of its graphs.
    """
    engine = RecordingEngine(replace(program, bin_ns=_ONE_BIN_NS))
    streams = [stream for stream in engine.execute().streams if len(stream.issued_ns)]
    issued = sum(len(stream.issued_ns) for stream in streams)
    if issued != 1:
        raise AnswerError(
            Problem(key="explain", got=f"{issued} requests", wanted="one")
        )
    (stream,) = streams
    of_request = int(stream.templates[0])
    reply_ns = int(stream.completed_ns[0])
    templates = program.book.templates
    ends_ns = engine.completions_ns
    if ends_ns.get(of_request, {}).get(templates[of_request].reply) != reply_ns:
        raise AnswerError("explain: the recording does not hold the request's reply")
    (bound,) = bound_rows(program.book, stream.bindings[:1])
    row = [*bound.tolist(), UNBOUND]
    graphs = [of_request, *(number for number in ends_ns if number != of_request)]
    steps: list[RecordedStep] = []
    for number, template in enumerate(graphs):
        graph_steps = _GraphSteps(
            number, templates[template], ends_ns[template], role_name
        )
        steps += graph_steps.recorded(row, program.resources.names)
    steps.sort(key=lambda step: (step.start_ns, step.graph, step.index))
    return steps, reply_ns, graphs


@dataclass(frozen=True)
class _GraphSteps:
    """A graph and the end of each of its steps [ns]."""

    number: int
    template: Template
    ends_ns: dict[int, int]
    role_name: Callable[[int], str]

    def recorded(
        self, row: Sequence[int], names: Sequence[str]
    ) -> Iterator[RecordedStep]:
        """Yield the steps, given the resource of each role (`row`) and the names of resources."""
        template = self.template
        before = predecessors_of(template)
        for step, end_ns in self.ends_ns.items():
            role = int(template.roles[step])
            resource = row[role]
            is_bound = role < 0 or resource >= 0
            ready_ns = self._ready_ns(before[step])
            start_ns = end_ns
            if is_bound and int(template.words[step]) in (graph.USE, graph.DELAY):
                # Service takes exactly the demand, so any earlier time was spent in the queue.
                start_ns = max(ready_ns, end_ns - int(template.demands_ns[step]))
            shard = template.shards[step]
            yield RecordedStep(
                graph=self.number,
                index=step,
                shard=None if shard == NO_SHARD else shard,
                label=template.labels[step],
                word=graph.WORDS[int(template.words[step])],
                role=self.role_name(role),
                resource=names[resource] if resource >= 0 else "",
                ready_ns=ready_ns,
                start_ns=start_ns,
                end_ns=end_ns,
                counted=_counted(template, step) if is_bound else {},
                predecessors=before[step],
            )

    def _ready_ns(self, before: Sequence[int]) -> int:
        """Return the end of the last predecessor, or the start of the graph [ns]."""
        known_ns = [self.ends_ns[step] for step in before if step in self.ends_ns]
        return max(known_ns or [min(self.ends_ns.values())])


def _counted(template: Template, step: int) -> dict[str, int]:
    """Return the counters that a step increases, with the costs that a batch shares, since it is alone."""
    amounts = template.amounts[step]
    once = getattr(getattr(template, "dynamics", None), "once", None)
    if once is not None:
        amounts = amounts + once[step]
    by_name = zip(COUNTERS, amounts.tolist(), strict=True)
    return {name: amount for name, amount in by_name if amount}
