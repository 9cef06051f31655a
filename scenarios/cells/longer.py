"""Lengthen runs of closed loops that are too short to show their steady state."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from stripesim.scenarios.cells.build import CellInputs
from stripesim.sim.ceph.clients.workload import SyntheticLoops, SyntheticStream
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.observe.audit import ROUNDS_MIN
from stripesim.sim.run import AnyWorkload, Run

#: Largest lengthened run [uses of resources]. The compiled engine takes about fifteen seconds for it.
USES_MAX: Final = 60_000_000
#: Largest lengthened run [requests], for less than a gigabyte of memory.
REQUESTS_MAX: Final = 2_000_000
#: Requests up to which a run that is known to be too short is not tried first [count].
_UNTRIED_REQUESTS_MAX: Final = 4_096
# Growth of a run by one try, at least, and of the last that the budget allows.
_GROWTH: Final = 2
_GROWTH_LAST: Final = 1.25
# Ratio of the requests that a short run asks for to those that a longer one needs, at most.
_ROUGHLY: Final = 2


#: Simulates a cell, with the graphs of an earlier run of the cell if there was one.
RunCell = Callable[[CellInputs, CompiledGraphs | None], Run]


def long_enough(
    inputs: CellInputs,
    run: RunCell,
    checked: Callable[[Run], Run] = lambda result: result,
    *,
    compiled: CompiledGraphs | None = None,
    is_step: bool = False,
) -> Run:
    """Run a cell, and run it longer until the audit accepts it or a longer run costs too much.

    `checked` returns a result with the refusal of a further check, if it fails that one. `compiled` are the
    graphs of a run that differs in nothing but its seed. A step of a fit is only made as long as rounds and
    periods of a CPU limit need: its queues need not be steady.
    """

    def run_longer(length: int, graphs: CompiledGraphs | None) -> Run:
        longer = replace(inputs, workload=lengthened(inputs.workload, length))
        return checked(replace(run(longer, graphs), length=length))

    if not can_lengthen(inputs):
        return checked(run(inputs, compiled))
    result = run_longer(first_length(inputs), compiled)
    while (length := next_length(result, is_step=is_step)) is not None:
        result = run_longer(length, result.compiled)
    return result


def can_lengthen(built: CellInputs) -> bool:
    """Return True for closed loops bounded by a number of requests, in a run that gets steady.

    Changes during the run, the fill of an image and traces are as long as they are.
    """
    if built.faults is not None or built.until_ns is not None or not built.prefilled:
        return False
    return all(
        isinstance(load, SyntheticLoops | SyntheticStream)
        and load.queue_depth > 0
        and load.workload.requests is not None
        for load in _listed(built.workload)
    )


def lengthened(
    workload: AnyWorkload | Sequence[AnyWorkload], length: int
) -> AnyWorkload | Sequence[AnyWorkload]:
    """Return workloads with a multiple of their requests. Each begins with the same requests."""
    if length == 1:
        return workload
    longer = [_longer(load, length) for load in _listed(workload)]
    return longer if isinstance(workload, Sequence) else longer[0]


def first_length(inputs: CellInputs) -> int:
    """Return the length of the first try: 1, or that of the second if the audit cannot accept the first.

    The audit refuses closed loops of fewer rounds than it wants, whatever happens in them.
    """
    if inputs.pool.cluster.gateways is not None:
        return 1
    asked = 0
    in_flight = 0
    for load in _listed(inputs.workload):
        assert isinstance(load, SyntheticLoops | SyntheticStream)
        asked += load.workload.requests or 0
        in_flight += load.queue_depth * load.workload.clients
    least = ROUNDS_MIN * in_flight
    if not asked < least <= _UNTRIED_REQUESTS_MAX:
        return 1
    return max(_GROWTH, ceil(least / asked))


def next_length(result: Run, *, is_step: bool = False) -> int | None:
    """Return the length of the next try. None if the audit accepts a run, or a longer one costs too much.

    A step of a fit is long enough with the fewest requests that the audit wants of its load.
    """
    if result.refused is None:
        return None
    issued = len(result.requested.issued_ns)
    if is_step and issued >= result.requests_least:
        return None
    affordable = min(USES_MAX / max(1, result.uses), REQUESTS_MAX / issued)
    wanted = result.requests_wanted / issued
    if affordable < _GROWTH_LAST or wanted > _ROUGHLY * affordable:
        return None
    length = max(_GROWTH * result.length, ceil(wanted * result.length))
    length = min(length, int(affordable * result.length))
    return length if length > result.length else None


def _listed(
    workload: AnyWorkload | Sequence[AnyWorkload],
) -> Sequence[AnyWorkload]:
    return workload if isinstance(workload, Sequence) else [workload]


def _longer(load: AnyWorkload, length: int) -> AnyWorkload:
    assert isinstance(load, SyntheticLoops | SyntheticStream)
    own = load.workload
    assert own.requests is not None
    return replace(own, requests=own.requests * length).start()
