"""Simulate a candidate under several seeds, and judge its rates, latencies, rebuild and durability."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from stripesim.models.drive import drive_writes_per_day
from stripesim.models.problems import RefusedError, first_problem, problems_of
from stripesim.scenarios.answers.durability.durability import (
    DETECTION_S,
    described_system,
)
from stripesim.scenarios.answers.plan.candidates import Candidate, Verdict
from stripesim.scenarios.cells.bound import Bound
from stripesim.scenarios.cells.files import content_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    BURST,
    growth_warnings,
    latency_grows,
    length_warnings,
    slow_class,
)
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.forms.capacity import Drives, drives_of
from stripesim.scenarios.forms.rebuild import (
    RATE_OBJECTS,
    Rebuild,
    idle_rebuild,
)
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
from stripesim.scenarios.schema.units import rate_text
from stripesim.sim.ceph.planner import CompiledGraphs
from stripesim.sim.durability.assess import LONG_RUN, assess, recommended_method
from stripesim.sim.observe.audit import collecting_refusals
from stripesim.sim.observe.intervals import (
    NARROW_RUNS_MAX,
    NARROW_RUNS_MIN,
    Interval,
    is_narrow,
    student_interval,
)
from stripesim.sim.observe.result_row import ResultRow

#: Default annual failure rate, of the order that large fleets report.
AFR: Final = 0.015
#: Minimum served fraction of a rate, because a finite run ends with requests in flight.
SERVED: Final = 0.97
# A run that may be too short to show whether a rate is served, and how fast, is this many times longer next
# time.
_LONGER: Final = 4
# Requests of such a run, at most.
_REQUESTS_MAX: Final = 200_000
# Splitting walks for one candidate: the interval spans some tenths of a nine.
_WALKS: Final = 200


class _WorstCells(NamedTuple):
    """The worst numbers of all cells of a scenario under one seed."""

    # Of the slowest cell.
    iops: float
    offered_iops: float | None
    saturated: bool
    bottleneck: str | None

    latency_p99_ns: float  # Of the cell with the highest.
    # To all devices, of the cell that writes most per client byte.
    written_bytes_per_s: float

    # Cells whose p99 depends on the length of the run, each with the class of resources that it waits for.
    slow_cells: tuple[tuple[str, str], ...] = ()
    # Cells whose latency grows through the run.
    growing_cells: tuple[str, ...] = ()


class SimulatedRuns(NamedTuple):
    """Numbers of a candidate's runs: the worst of each under all seeds, and a rebuild."""

    at_rate: Scenario  # As it ran, at the required rate.
    worst: list[_WorstCells]
    rebuild: Rebuild
    recovering_worst: list[_WorstCells] | None  # While an OSD is rebuilt, if asked for.
    refusals: Sequence[str]


def simulate_candidate(
    candidate: Candidate,
    plan: PlanSpec,
    engine: str = "compiled",
    *,
    on_run: Callable[[], None] = lambda: None,
    unchecked: bool = False,
    shared: dict[tuple[str, ...], SimulatedRuns] | None = None,
) -> None:
    """Simulate a candidate with several seeds, rebuild one OSD, compute its nines, and judge the results.

    `on_run` is called after each run. `shared` holds the runs of earlier candidates.
    """
    scenario = candidate.scenario
    assert scenario is not None
    shared = {} if shared is None else shared
    key = content_of_runs(scenario)
    try:
        if key not in shared:
            shared[key] = _runs_of(
                candidate, plan, engine, on_run=on_run, unchecked=unchecked
            )
        else:
            for _ in range(runs_of_candidate(plan)):
                on_run()
    except RefusedError as error:
        candidate.refused = str(error)
        candidate.rule_out("refused", f"refused: {error}")
        return
    except ValueError as error:
        candidate.rule_out_by(problems_of(error)[0])
        return
    at_rate, worst, rebuild, recovering_worst, refusals = shared[key]
    candidate.refused = next(iter(refusals), None)
    candidate.results["bottleneck"] = worst[0].bottleneck
    if not all(_are_narrow(each, plan) for each in (worst, recovering_worst or worst)):
        candidate.warnings.append(
            f"intervals are wider than plan.interval_percent ({plan.interval_percent:g}) "
            f"after {NARROW_RUNS_MAX} runs: a longer run may narrow them"
        )
    candidate.warnings += _short_warnings(plan, at_rate, candidate.bound, worst)
    _judge_rate(candidate, plan, worst)
    _judge_latency(candidate, plan, worst)
    if recovering_worst is not None:
        _judge_recovery_latency(candidate, plan, recovering_worst)
    drives = drives_of(scenario, build_models(scenario))
    _judge_rebuild(candidate, plan, rebuild, drives)
    _note_wear(candidate, drives, worst)
    _judge_nines(candidate, plan, rebuild)


def content_of_runs(scenario: Scenario) -> tuple[str, ...]:
    """Identify the runs of a candidate. Where all drives are equal, their capacity changes no run."""
    cluster = scenario.cluster
    if isinstance(cluster.hosts, int):
        cluster = cluster.replaced(drive_bytes=None)
    return content_of(scenario.replaced(cluster=cluster, durability=None))


def _runs_of(
    candidate: Candidate,
    plan: PlanSpec,
    engine: str,
    *,
    on_run: Callable[[], None],
    unchecked: bool,
) -> SimulatedRuns:
    """Run a candidate with several seeds, rebuild one OSD, and run it while an OSD is rebuilt."""
    scenario = candidate.scenario
    assert scenario is not None
    recovering_worst = None
    with collecting_refusals(unchecked) as refusals:
        at_rate, worst = _long_enough(scenario, plan, engine, on_run)
        rebuild = idle_rebuild(
            scenario, candidate.scheme, engine=engine, sample_objects=RATE_OBJECTS
        ).accepted()
        on_run()
        if plan.p99_recovery_ms is not None:
            recovering = _recovering(at_rate)
            recovering_worst = _under_seeds(
                lambda seed: _worst(recovering.seeded(seed), engine, "recovery"),
                plan,
                on_run,
            )
    return SimulatedRuns(at_rate, worst, rebuild, recovering_worst, refusals)


def _long_enough(
    scenario: Scenario, plan: PlanSpec, engine: str, on_run: Callable[[], None]
) -> tuple[Scenario, list[_WorstCells]]:
    """Run a candidate at the required rate, long enough to show whether that rate is served, and how fast.

    The requests that are in flight when the last one arrives are not served. If they pile up, their share
    stays as high in a longer run. Otherwise it falls with the length. And a run starts with an idle cluster,
    so its latencies grow at first.
    """
    # Runs differ in their requests, but not in the op graphs.
    graphs: dict[Cell, CompiledGraphs] = {}

    def under_seeds(
        scenario: Scenario, on_run: Callable[[], None] = lambda: None
    ) -> list[_WorstCells]:
        return _under_seeds(
            lambda seed: _worst(scenario.seeded(seed), engine, graphs=graphs),
            plan,
            on_run,
        )

    at_rate = at_required_rate(scenario, plan.rate_per_s)
    worst = under_seeds(at_rate, on_run)
    requests = at_rate.workload.requests
    if plan.rate_per_s is None or requests is None:
        return at_rate, worst
    unserved = _unserved_share(worst)
    limit = 1.0
    while 0.0 < unserved < limit or _growing_cells(worst):
        requests *= _LONGER
        if requests > _REQUESTS_MAX:
            break
        at_rate = at_rate.replaced(workload=at_rate.workload.lasting(requests))
        worst = under_seeds(at_rate)
        limit = unserved / 2
        unserved = _unserved_share(worst)
    return at_rate, worst


def _growing_cells(worst: Sequence[_WorstCells]) -> list[str]:
    """List the cells whose latency grows through most runs. A single one may grow by chance."""
    runs = Counter(name for one in worst for name in one.growing_cells)
    return [name for name, count in runs.items() if count > len(worst) / 2]


def _unserved_share(worst: Sequence[_WorstCells]) -> float:
    """Return the mean share of an offered rate that is not served [0 to 1]."""
    return 1.0 - sum(map(_served_share, worst)) / len(worst)


def _served_share(one: _WorstCells) -> float:
    """Return the share of an offered rate that is served [0 to 1].

    Poisson arrivals of a finite run deviate from the rate, so only a saturated run serves a part of it.
    """
    if not one.saturated or not one.offered_iops:
        return 1.0
    return min(1.0, one.iops / one.offered_iops)


def _under_seeds(
    run: Callable[[int], _WorstCells], plan: PlanSpec, on_run: Callable[[], None]
) -> list[_WorstCells]:
    """Run under seeds 0, 1, … for all candidates alike, until the intervals are as narrow as the plan asks.

    `on_run` is called for the runs that each candidate has.
    """
    worst = []
    for seed in range(runs_min(plan)):
        worst.append(run(seed))
        on_run()
    while len(worst) < NARROW_RUNS_MAX and not _are_narrow(worst, plan):
        worst.append(run(len(worst)))
    return worst


def _are_narrow(worst: Sequence[_WorstCells], plan: PlanSpec) -> bool:
    """Return True if the intervals of rate and latency are as narrow as the plan asks."""
    if plan.interval_percent is None:
        return True
    rates = [one.iops for one in worst]
    latencies_ns = [one.latency_p99_ns for one in worst]
    return all(is_narrow(each, plan.interval_percent) for each in (rates, latencies_ns))


def _short_warnings(
    plan: PlanSpec,
    at_rate: Scenario,
    bound: Bound | None,
    worst: Sequence[_WorstCells],
) -> list[str]:
    """Warn of runs that are too short for their queues to settle, as `run` does."""
    if plan.rate_per_s is not None:
        return growth_warnings(at_rate, _growing_cells(worst))
    rate = min(one.iops for one in worst)
    if bound is not None and rate > BURST * bound.iops:
        return [
            f"{rate_text(rate)} requests/s or more are a burst: {bound.resource} sustain "
            f"{rate_text(bound.iops)}, with a higher p99: compare a longer workload"
        ]
    slow_cells = dict.fromkeys(cell for one in worst for cell in one.slow_cells)
    return length_warnings(at_rate, list(slow_cells))


def _judge_rate(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    """Record the served rate, and judge it if one is required."""
    if plan.rate_per_s is None:
        served = student_interval([one.iops for one in worst])
    else:
        served = student_interval(
            [_served_share(one) * plan.rate_per_s for one in worst]
        )
    candidate.results |= {
        "iops": served.mean,
        "iops_low": served.low,
        "iops_high": served.high,
    }
    if plan.rate_per_s is not None:
        unit = "requests/s served"
        wanted = SERVED * plan.rate_per_s
        candidate.judge("rate_per_s", served, wanted, 1.0, unit, "or more")


def _judge_latency(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    p99_ns = student_interval([one.latency_p99_ns for one in worst])
    candidate.results |= {
        "latency_p99_ns": p99_ns.mean,
        "latency_p99_low_ns": p99_ns.low,
        "latency_p99_high_ns": p99_ns.high,
    }
    if plan.p99_ms is not None:
        unit = "ms at the 99th percentile"
        wanted_ns = plan.p99_ms * 1e6
        candidate.judge("p99_ms", p99_ns, wanted_ns, 1e-6, unit, "or less")


def _judge_recovery_latency(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    assert plan.p99_recovery_ms is not None
    p99_ns = student_interval([one.latency_p99_ns for one in worst])
    candidate.results["latency_p99_recovery_ns"] = p99_ns.mean
    unit = "ms while an OSD is rebuilt"
    wanted_ns = plan.p99_recovery_ms * 1e6
    candidate.judge("p99_recovery_ms", p99_ns, wanted_ns, 1e-6, unit, "or less")


def _judge_rebuild(
    candidate: Candidate, plan: PlanSpec, rebuild: Rebuild, drives: Drives
) -> None:
    """Record the rebuild time of the largest OSD at the nearfull ratio, and judge it."""
    if drives.largest_osd_bytes is not None and drives.fill is not None:
        lost_bytes = drives.largest_osd_bytes * drives.fill.nearfull_ratio
        candidate.results["rebuild_s"] = rebuild.seconds_for(lost_bytes)
    if plan.rebuild_s is None:
        return
    seconds = candidate.results["rebuild_s"]
    if seconds is None:
        sentence = f"rebuild_s: no rebuild: {rebuild.reason or 'not finished'}"
        candidate.verdicts.append(Verdict("rebuild_s", "failed", sentence))
        return
    # The spread is the difference from a sample half as large.
    seconds_by_half = seconds
    if rebuild.bytes_per_s and rebuild.half_bytes_per_s:
        seconds_by_half *= rebuild.bytes_per_s / rebuild.half_bytes_per_s
    spread = Interval(seconds, *sorted((seconds, seconds_by_half)))
    unit = "s to rebuild an OSD"
    candidate.judge("rebuild_s", spread, plan.rebuild_s, 1.0, unit, "or less")


def _note_wear(
    candidate: Candidate, drives: Drives, worst: Sequence[_WorstCells]
) -> None:
    """Record the drive writes per day."""
    capacity = candidate.capacity
    if drives.capacity is None or capacity is None:
        return
    written = max(one.written_bytes_per_s for one in worst)
    per_drive = written / (capacity.osds * drives.per_osd)
    candidate.results["drive_writes_per_day"] = drive_writes_per_day(
        per_drive, drives.capacity.drive_bytes
    )


def _judge_nines(candidate: Candidate, plan: PlanSpec, rebuild: Rebuild) -> None:
    """Compute the nines of a candidate, and judge them."""
    assert candidate.scenario is not None
    try:
        row = nines_of(candidate.scenario, candidate.scheme, rebuild)
    except ValueError as error:
        if plan.nines is not None:
            candidate.verdicts.append(Verdict("nines", "failed", first_problem(error)))
        return
    candidate.results["nines"] = row["nines"]
    spec = candidate.scenario.durability
    if spec is not None and spec.bursts:
        # Without bursts, it is that of single drives alone.
        candidate.results["unavailability"] = row["unavailability"]
        if LONG_RUN in row["assumptions"]:
            candidate.assumptions.append(LONG_RUN)
    nines = None
    if row["nines"] is not None:
        nines = Interval(row["nines"], row["nines_low"], row["nines_high"])
    candidate.judge("nines", nines, plan.nines, 1.0, "nines", "or more")


def nines_of(
    scenario: Scenario, scheme: str, rebuild: Rebuild | None = None
) -> dict[str, Any]:
    """Return the durability of a scheme by `[durability]`, or with stated defaults.

    A simulated `rebuild` of the cluster replaces the one that would be simulated for its rate.
    """
    asked = scenario
    if scenario.durability is None:
        spec = DurabilitySpec(afr=AFR, detection_s=DETECTION_S)
        asked = scenario.replaced(durability=spec)
    system, notes, rebuild_rate = described_system(asked, scheme, rebuild)
    method = recommended_method(system).method
    row = assess(system, method, seed=scenario.seed, walks=_WALKS)
    row["rebuild_rate"] = rebuild_rate
    row["assumptions"] += notes
    return row


def at_required_rate(scenario: Scenario, rate_per_s: float | None) -> Scenario:
    """Return the scenario with Poisson arrivals at a rate, or unchanged if no rate is required."""
    if rate_per_s is None:
        return scenario
    return scenario.at_rate(rate_per_s)


def _recovering(scenario: Scenario) -> Scenario:
    """Return the scenario with its first OSD lost at the start and rebuilt under load."""
    load = scenario.workload.replaced(image="prefilled", completions="each")
    return scenario.without_osd(0, load)


def _worst(
    scenario: Scenario,
    engine: str,
    phase: str = "",
    graphs: dict[Cell, CompiledGraphs] | None = None,
) -> _WorstCells:
    """Run all cells of a scenario and take the worst of each number; `phase` chooses the latency's."""
    runs = list(run_cells(scenario, engine, graphs=graphs))
    rows = [result.row for _, result in runs]
    slow = [(cell.name, slow_class(scenario, result)) for cell, result in runs]
    if any(row.requests == 0 for row in rows):
        raise ValueError("simulation: got a run in which no request completed")
    slowest = min(rows, key=lambda row: row.iops or 0.0)
    written = max(rows, key=lambda row: row.device_write_bytes_per_client_byte or 0.0)
    written_per_byte = written.device_write_bytes_per_client_byte or 0.0
    return _WorstCells(
        iops=slowest.iops or 0.0,
        offered_iops=slowest.offered_iops,
        saturated=bool(slowest.saturated),
        bottleneck=slowest.bottleneck,
        latency_p99_ns=max(_p99_ns(row, phase) for row in rows),
        written_bytes_per_s=written_per_byte * (written.throughput_bytes_per_s or 0.0),
        slow_cells=tuple((name, kind) for name, kind in slow if kind is not None),
        growing_cells=tuple(
            cell.name for cell, result in runs if latency_grows(scenario, result)
        ),
    )


def _p99_ns(row: ResultRow, phase: str) -> float:
    """Return the p99 latency of a phase.

    A run without the phase rebuilt nothing, or all of it before the first request: that of the run counts.
    """
    of_phase = row.faults.phases.get(phase) if row.faults else None
    if of_phase is not None and of_phase.latency_p99_ns:
        return of_phase.latency_p99_ns
    return row.latency_p99_ns or 0.0


def runs_of_candidate(plan: PlanSpec) -> int:
    """Return the simulations of one candidate: each seed, with and without recovery, and a rebuild."""
    loads = 1 if plan.p99_recovery_ms is None else 2
    return loads * runs_min(plan) + 1


def runs_min(plan: PlanSpec) -> int:
    """Return the seeds of each candidate, at least."""
    if plan.interval_percent is None:
        return plan.replications
    return max(plan.replications, NARROW_RUNS_MIN)
