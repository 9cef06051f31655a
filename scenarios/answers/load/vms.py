"""Count the virtual machines that keep a latency: simulate more until the 99th percentile is too long.

`vm_answer` writes the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, ClassVar, Final

from stripesim.models.documents import Documented
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.answers.load.analysis import rate_within
from stripesim.scenarios.answers.load.curves import (
    RunSlot,
    check_bounds,
    check_load,
    measurements,
)
from stripesim.scenarios.answers.load.rate_runs import RateMeasurement, RateRun
from stripesim.scenarios.cells.bound import Bound, bounds_of_cell
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.longer import REQUESTS_MAX
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import check_room
from stripesim.scenarios.schema.keys import Cell, WorkloadSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import duration_text, rate_text
from stripesim.scenarios.work.pool import workers_wanted
from stripesim.sim.observe.intervals import Interval, student_interval
from stripesim.sim.observe.progress import OnStep, silent

#: Runs of each number of machines, with different seeds.
REPLICATIONS: Final = 5
#: Largest number of machines to try, and of their requests in flight.
VMS_MAX: Final = 65_536
IN_FLIGHT_MAX: Final = 32_768
#: Numbers of machines to try after the first that exceeds the bound, at most.
_REFINED_MAX: Final = 5
#: Ratio of the neighbours of the bound at which the search ends.
_NEIGHBOURS: Final = 1.1
#: Requests of a run, at least, and for each request in flight.
_REQUESTS_MIN: Final = 24_000
_ROUNDS: Final = 16
#: Time that open arrivals last at least, in multiples of the bound, so that queues that grow show.
_BOUNDS: Final = 20
#: Time that open arrivals last at least where a CPU limit may stop OSDs [s], for ten of its periods.
_LIMITED_S: Final = 1.0
#: Part of the arrivals that machines within a latency bound are served, at least.
_SERVED_MIN: Final = 0.99
#: Latency of machines whose requests pile up, in multiples of the bound, if the run is too short to show it.
_PILES_UP: Final = 2.0

#: A virtual machine where the scenario describes none, an assumption: a small general-purpose machine under
#: the limit of a storage class. The scenario's own requests are those of all its clients together.
ASSUMED_VM: Final[Mapping[str, Any]] = {
    "vms": 1,
    "vm_iops_limit": 500.0,
    "read_fraction": 0.7,
    "patterns": ("rand",),
    "block_sizes_bytes": (4096,),
}


@dataclass(frozen=True, kw_only=True)
class VmPoint(Documented):
    """A number of virtual machines, simulated with several seeds."""

    vms: int
    iops: Interval
    latency_p50_ns: Interval
    latency_p99_ns: Interval
    bottleneck: str | None
    refused: str | None
    #: 99th percentile of each run [ns]
    each_p99_ns: tuple[float, ...]
    #: True if nearly all arrivals are served
    is_served: bool

    in_document: ClassVar = (
        "vms",
        ("iops", "iops.mean"),
        ("iops_low", "iops.low"),
        ("iops_high", "iops.high"),
        ("latency_p50_ns", "latency_p50_ns.mean"),
        ("latency_p99_ns", "latency_p99_ns.mean"),
        ("latency_p99_low_ns", "latency_p99_ns.low"),
        ("latency_p99_high_ns", "latency_p99_ns.high"),
        "bottleneck",
        "refused",
    )


@dataclass(frozen=True, kw_only=True)
class VmsWithin(Documented):
    """Number of virtual machines that keep the 99th percentile within a bound.

    Attributes
    ----------
    cell
        Scheme and kind of request.
    p99_bound_ns
        The bound [ns].
    vms
        Number of machines, 0 if a single one exceeds the bound.
    low, high
        95 % interval of the number, over seeds. None if one machine exceeds the bound, or no number does.
    is_most
        True if no number of machines that was tried exceeds the bound.
    limited_by
        Class of resource that limits more machines, at the smallest simulated number above the bound where
        one is near its limit, or else that of `bound_iops`. None if no resource is.
    points
        Simulated numbers of machines, ascending.
    """

    cell: Cell
    p99_bound_ns: float
    vms: int
    low: int | None
    high: int | None
    is_most: bool
    limited_by: str | None
    points: tuple[VmPoint, ...]
    #: Closed-form bound of the rate, which hardly more machines exceed [1/s]. None if a simulated number
    #: exceeds the bound of p99.
    bound_iops: float | None = None

    in_document: ClassVar = (
        *((name, f"cell.{name}") for name in Cell._fields),
        "p99_bound_ns",
        "vms",
        ("vms_low", "low"),
        ("vms_high", "high"),
        ("all_within", "is_most"),
        "limited_by",
        "bound_iops",
        ("points", "point_documents"),
    )

    def point_documents(self) -> list[dict[str, Any]]:
        """Return the documents of all points."""
        return [point.to_json() for point in self.points]

    @property
    def refusals(self) -> list[str]:
        """The points that the audit refuses."""
        return [
            f"{self.cell.name}, {point.vms} virtual machines: {point.refused}"
            for point in self.points
            if point.refused is not None
        ]


def vms_within(
    scenario: Scenario,
    *,
    p99_bound_s: float,
    engine: str = "compiled",
    replications: int = REPLICATIONS,
    jobs: int | None = None,
    progress: OnStep = silent,
) -> list[VmsWithin]:
    """Find how many virtual machines keep the 99th percentile of latency within a bound.

    Parameters
    ----------
    scenario
        The scenario. `workload.vms` is replaced. Without `vm_iops_limit`, each machine keeps `vm_queue_depth`
        requests in flight. A scenario without `workload.vms` gets the machines of `ASSUMED_VM`.
    p99_bound_s
        The bound [s].
    engine
        ``compiled`` or ``simpy``.
    replications
        Runs of each number of machines [count], at least 2.
    jobs
        Worker processes [count]. None uses all cores. 1 runs everything in this process.
    progress
        Called before each number of machines, with it.

    Returns
    -------
    list of VmsWithin
        One for each cell of the scenario, in order.

    Raises
    ------
    ValueError
        If the scenario has no steady load, a scheme does not fit on the cluster, or runs would be too long
        for the bound. The message names the key.
    """
    check_bounds("p99_bound_s", [p99_bound_s])
    if scenario.workload.is_s3:
        wanted = "requests for blocks"
        raise scenario.problem("workload.kind", '"s3"', wanted)
    scenario = with_machines(scenario)
    if scenario.workloads:
        wanted = "one table [workload], the profile of a virtual machine"
        raise scenario.problem("workloads", "several", wanted)
    check_load(scenario)
    models = build_models(scenario)
    check_schemes(scenario, models)
    check_room(scenario, models)
    search = _VmSearch(
        scenario, p99_bound_s * 1e9, engine, replications, workers_wanted(jobs)
    )
    return [search.within(cell, progress) for cell in cells(scenario)]


def with_machines(scenario: Scenario) -> Scenario:
    """Return a scenario whose load is virtual machines: its own, or else those of `ASSUMED_VM`."""
    if describes_machines(scenario):
        return scenario
    keys = {
        **ASSUMED_VM,
        "requests": _REQUESTS_MIN,
        "image": scenario.workload.image,
        "image_bytes": scenario.workload.image_bytes,
    }
    assumed = WorkloadSpec.model_validate(keys)
    return scenario.replaced(workload=assumed, workloads=())


def describes_machines(scenario: Scenario) -> bool:
    """Return True if a load of a scenario is stated as virtual machines."""
    return any(load.vms is not None for load in scenario.loads)


@dataclass(frozen=True)
class _VmSearch:
    scenario: Scenario
    bound_ns: float
    engine: str
    replications: int
    jobs: int

    def within(self, cell: Cell, progress: OnStep) -> VmsWithin:
        """Double the number of machines until the bound is exceeded, then search between neighbours."""
        points: dict[int, VmPoint] = {}
        bound = self._bound(cell)
        self._check_length(bound)
        is_exceeded = False

        def exceeds(vms: int) -> bool:
            if vms > self._sustained(bound):
                return True
            progress(f"{cell.scheme}, {vms:,} virtual machines")
            points[vms] = self._point(cell, vms)
            return self._exceeds(points[vms])

        most = 0
        first_above = 1
        while first_above <= self._vms_max:
            is_exceeded = exceeds(first_above)
            if is_exceeded:
                break
            most = first_above
            first_above *= 2
        for _ in range(_REFINED_MAX):
            if not is_exceeded or first_above <= max(1, most) * _NEIGHBOURS:
                break
            middle = round(sqrt(most * first_above)) if most else 0
            if not most < middle < first_above:
                break
            if exceeds(middle):
                first_above = middle
            else:
                most = middle
        result = self._result(cell, [points[vms] for vms in sorted(points)])
        if not (result.is_most and is_exceeded):
            return result
        assert bound is not None
        return replace(
            result, is_most=False, limited_by=bound.resource, bound_iops=bound.iops
        )

    def _bound(self, cell: Cell) -> Bound | None:
        """Return the bound of the rate, for machines that issue a given one; None if none is known."""
        load = self.scenario.workload
        if load.vm_iops_limit is None:
            return None
        # The bound of a few machines would be that of their clients.
        most = self.scenario.replaced(workload=load.with_vms(VMS_MAX))
        return next(iter(bounds_of_cell(most, cell, build_models(most))), None)

    def _sustained(self, bound: Bound | None) -> float:
        """Return the most machines whose rate is within the bound. A run is too short to show the others."""
        limit = self.scenario.workload.vm_iops_limit
        if bound is None or limit is None:
            return inf
        return bound.iops / limit

    def _check_length(self, bound: Bound | None) -> None:
        """Refuse a latency bound that the longest affordable run is too short to show."""
        limit = self.scenario.workload.vm_iops_limit
        if limit is None:
            return
        most_iops = min(VMS_MAX, self._sustained(bound)) * limit
        longest_ns = REQUESTS_MAX / most_iops / _BOUNDS * 1e9
        if self.bound_ns > longest_ns:
            raise AnswerError(
                Problem(
                    key="p99",
                    got=duration_text(self.bound_ns / 1e9),
                    wanted=f"at most {duration_text(longest_ns / 1e9)}, for runs {_BOUNDS} times as long "
                    f"with at most {REQUESTS_MAX:,} requests at {rate_text(most_iops)} requests/s",
                )
            )

    @property
    def _vms_max(self) -> int:
        load = self.scenario.workload
        if load.vm_iops_limit is not None:
            return VMS_MAX
        return max(1, min(VMS_MAX, IN_FLIGHT_MAX // load.queue_depth))

    def _exceeds(self, point: VmPoint) -> bool:
        return point.latency_p99_ns.mean > self.bound_ns or not point.is_served

    def _point(self, cell: Cell, vms: int) -> VmPoint:
        runs = [self._run(cell, vms, number) for number in range(self.replications)]
        measured = _measured(runs, self.jobs)
        p99s_ns = tuple(one.latency_p99_ns for one in measured)
        served = sum(one.iops / one.offered_iops for one in measured) / len(measured)
        refusals = [one.refused for one in measured if one.refused is not None]
        return VmPoint(
            vms=vms,
            iops=student_interval([one.iops for one in measured]),
            latency_p50_ns=student_interval([one.latency_p50_ns for one in measured]),
            latency_p99_ns=student_interval(p99s_ns),
            bottleneck=measured[0].bottleneck,
            refused=next(iter(refusals), None),
            each_p99_ns=p99s_ns,
            is_served=served >= _SERVED_MIN,
        )

    def _run(self, cell: Cell, vms: int, number: int) -> RateRun:
        load = self.scenario.workload.with_vms(vms)
        scenario = self.scenario.replaced(workload=load).seeded(number)
        limit = load.vm_iops_limit
        in_flight = vms * load.queue_depth
        requests = max(_REQUESTS_MIN, _ROUNDS * in_flight)
        rates: tuple[float, ...] = ()
        if limit is not None:
            rates = (vms * limit,)
            lasts_s = _BOUNDS * self.bound_ns * 1e-9
            if scenario.cluster.cpu_limit_per_osd is not None:
                lasts_s = max(lasts_s, _LIMITED_S)
            requests = max(_REQUESTS_MIN, round(rates[0] * lasts_s))
        return RateRun(scenario, cell, rates, in_flight, requests, self.engine)

    def _result(self, cell: Cell, points: Sequence[VmPoint]) -> VmsWithin:
        above = [point for point in points if self._exceeds(point)]
        within = [point.vms for point in points if not self._exceeds(point)]
        crossing = None
        if above and within:
            crossing = self._crossing(points)
        vms = max(within, default=0)
        if crossing is not None:
            vms = max(vms, int(crossing.mean))
        return VmsWithin(
            cell=cell,
            p99_bound_ns=self.bound_ns,
            vms=vms,
            low=_whole(crossing and crossing.low),
            high=_whole(crossing and crossing.high),
            is_most=not above,
            # Queues are long somewhat before the busiest resource is at its limit.
            limited_by=next((one.bottleneck for one in above if one.bottleneck), None),
            points=tuple(points),
        )

    def _crossing(self, points: Sequence[VmPoint]) -> Interval | None:
        """Return the number of machines at which the 99th percentile reaches the bound, over seeds."""
        numbers = [float(point.vms) for point in points]
        crossings = []
        for seed in range(self.replications):
            p99s_ns = [self._shown_p99_ns(point, seed) for point in points]
            number = rate_within(numbers, p99s_ns, self.bound_ns)
            if number is not None:
                crossings.append(number)
        return student_interval(crossings) if len(crossings) > 1 else None

    def _shown_p99_ns(self, point: VmPoint, seed: int) -> float:
        p99_ns = point.each_p99_ns[seed]
        return p99_ns if point.is_served else max(p99_ns, _PILES_UP * self.bound_ns)


def _whole(number: float | None) -> int | None:
    return None if number is None else max(0, int(number))


def _measured(runs: Sequence[RateRun], jobs: int) -> list[RateMeasurement]:
    """Return measurements in the order of the runs."""
    slots = deque(RunSlot(0, number, run) for number, run in enumerate(runs))
    measured = {slot.number: one for slot, one in measurements(slots, jobs)}
    return [measured[number] for number in range(len(runs))]
