"""What happened to one request: its steps with times, and the parameters that each duration comes from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from stripesim.models.provenance import Provenance
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine import graph
from stripesim.sim.engine.graph import COUNTER_INDEX, COUNTERS, NO_SHARD, Template
from stripesim.sim.engine.program import Program, bound_rows
from stripesim.sim.engine.simpy.engine import SimpyEngine
from stripesim.sim.engine.simpy.paths import Request, Step
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
    shard: (
        int | None
    )  # whose sub-operation it belongs to, also on the primary; None: the whole request
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
    """The reference engine, which also notes when it accounts, so completes, each step of one request."""

    def __init__(self, program: Program) -> None:
        #: Template index → step → completion [ns].
        self.completions_ns: dict[int, dict[int, int]] = {}
        super().__init__(program)

    def account(self, request: Request, step: Step) -> None:
        """Account a completed step and note when it completed."""
        completions_ns = self.completions_ns.setdefault(request.path.number, {})
        completions_ns.setdefault(step.number, self.now_ns)
        super().account(request, step)


def record(program: Program) -> tuple[list[RecordedStep], int, list[int]]:
    """Run a program of one request; return its steps, the time of its reply [ns] and its graphs."""
    engine = RecordingEngine(replace(program, bin_ns=_ONE_BIN_NS))
    streams = [stream for stream in engine.execute().streams if len(stream.issued_ns)]
    issued = sum(len(stream.issued_ns) for stream in streams)
    if issued != 1:
        raise RecordingError(f"explain: got {issued} requests, wanted one")
    chosen = int(streams[0].templates[0])
    reply_ns = int(streams[0].completed_ns[0])
    templates, ends_ns = program.book.templates, engine.completions_ns
    if ends_ns.get(chosen, {}).get(templates[chosen].reply) != reply_ns:
        raise RecordingError("explain: the recording does not hold the request's reply")
    (bound,) = bound_rows(program.book, streams[0].bindings[:1])
    row = [*bound.tolist(), -1]
    graphs = [chosen, *(number for number in ends_ns if number != chosen)]
    steps: list[RecordedStep] = []
    for number, template in enumerate(graphs):
        steps += _steps(
            number, templates[template], ends_ns[template], row, program.resources.names
        )
    steps.sort(key=lambda step: (step.start_ns, step.graph, step.index))
    return steps, reply_ns, graphs


def _steps(
    number: int,
    template: Template,
    ends_ns: dict[int, int],
    row: Sequence[int],
    names: Sequence[str],
) -> list[RecordedStep]:
    """Join a graph and its completions to steps."""
    before = predecessors_of(template)
    begun_ns = min(ends_ns.values())
    found = []
    for step, end_ns in ends_ns.items():
        role, word = int(template.roles[step]), int(template.words[step])
        resource = row[role] if role >= 0 else -1
        ready_ns = max(
            (ends_ns[index] for index in before[step] if index in ends_ns),
            default=begun_ns,
        )
        bound = role < 0 or resource >= 0
        served = word in (graph.USE, graph.DELAY) and bound
        # Service ends a demand after it began; what is left of the time before is the queue.
        start_ns = (
            max(ready_ns, end_ns - int(template.demands_ns[step])) if served else end_ns
        )
        amounts = zip(COUNTERS, _amounts(template, step), strict=True)
        found.append(
            RecordedStep(
                graph=number,
                index=step,
                shard=template.shards[step]
                if template.shards[step] != NO_SHARD
                else None,
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
    counted = (
        template.amounts[step] if once is None else template.amounts[step] + once[step]
    )
    return [int(amount) for amount in counted]


_CODING = COUNTER_INDEX["coding_ns"]
_KERNEL = "kernel"


class Share(NamedTuple):
    """What one parameter has to do with the duration of one step."""

    parameter: str  # such as cpu.op_prepare_ns; kernel stands for the kernel table
    # How much longer the step takes if it is doubled: for a term of a sum the term, for a rate negative.
    change_ns: int


def shares_of(
    plan: Callable[[Models], Sequence[Template]], models: Models
) -> tuple[list[list[list[Share]]], dict[str, dict[str, Any]]]:
    """Attribute the demands of a path's steps to the parameters of the models, the greatest share first.

    `plan` makes the templates of the one request from models; the second result describes each parameter
    named. Any cost but coding is a sum of terms, each proportional to one parameter, so doubling one adds
    exactly its term; a rate, or a factor over a sum, changes the whole sum and is listed beside its terms.
    Not seen: numbers that are zero, distributions, and those whose doubling gives a path with other steps,
    such as the allocation unit of a store.
    """
    bases = plan(models)
    shares: list[list[list[Share]]] = [
        [[] for _ in range(base.steps)] for base in bases
    ]
    parameters: dict[str, dict[str, Any]] = {}
    for parameter, changed in _doubled(models):
        try:
            others = plan(changed)
        except ValueError:
            # The models reject the doubled number, so its share stays unknown.
            continue
        for base, other, found in zip(bases, others, shares, strict=True):
            if not _same_steps(base, other):
                continue
            change = other.demands_ns - base.demands_ns
            for step in np.flatnonzero(change).tolist():
                found[step].append(Share(parameter["name"], int(change[step])))
                parameters[parameter["name"]] = parameter
    for base, of_template in zip(bases, shares, strict=True):
        for step, of_step in enumerate(of_template):
            buffers_ns = sum(
                each.change_ns
                for each in of_step
                if each.parameter.startswith("encode_buffers.")
            )
            kernel_ns = int(base.amounts[step, _CODING]) - buffers_ns
            # One nanosecond is what rounding leaves.
            if kernel_ns > 1:
                of_step.append(Share(_KERNEL, kernel_ns))
                parameters[_KERNEL] = _kernel(models)
            of_step.sort(key=lambda share: -abs(share.change_ns))
    return shares, parameters


def _same_steps(one: Template, other: Template) -> bool:
    parts = ("words", "roles", "successors")
    return all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in parts
    )


def _doubled(models: Models) -> Iterator[tuple[dict[str, Any], Models]]:
    """Yield each number with its provenance, and the models in which it is twice as large."""
    for name, model in models.described().items():
        for parameter in model.parameters(f"{name}."):
            field, value = (
                parameter["name"].removeprefix(f"{name}."),
                parameter["value"],
            )
            if isinstance(value, list) or not value:
                continue
            try:
                changed: Any = replace(model, **{field: 2 * value})
            except ValueError:
                continue
            yield parameter, replace(models, **{name: changed})


def _kernel(models: Models) -> dict[str, Any]:
    """Describe the kernel table as a parameter."""
    origin = models.kernel.provenance
    cpu = origin["cpu"]
    name = cpu.get("name", cpu) if hasattr(cpu, "get") else cpu
    kind = Provenance("measured", str(origin["basis"])).kind
    source = f"kernel table {models.kernel.name}: {name}"
    for measured in origin.get("measured_here", ()):
        source += f"; {measured['scheme']}: measured here on {measured['cpu']['name']}"
    found = {
        "name": _KERNEL,
        "value": None,
        "unit": "ns",
        "provenance": kind,
        "source": source,
    }
    return {**found, "confidence_interval": None}
