"""Recommend a cluster: closed forms prune the candidates, simulation decides between the others."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from stripesim.models.drive import drive_writes_per_day
from stripesim.models.problems import Problem, RefusedError, first_problem, problems_of
from stripesim.scenarios.answers.durability.durability import (
    DETECTION_S,
    described_system,
    parity_notes,
)
from stripesim.scenarios.answers.plan.candidates import (
    Candidate,
    Verdict,
    candidates_of,
    json_name,
    judge_closed_forms,
    line_name,
    varied_keys,
)
from stripesim.scenarios.answers.run.buying_curves import bounds_of_steps
from stripesim.scenarios.cells.failures import recovery_sync_words
from stripesim.scenarios.cells.files import content_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    client_notes,
    made_from,
    outside_of_all,
    scenario_warnings,
)
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.forms.capacity import Drives, drives_of
from stripesim.scenarios.forms.pg_settings import pg_choice_of
from stripesim.scenarios.forms.rebuild import (
    RATE_OBJECTS,
    Rebuild,
    idle_rebuild,
)
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
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
from stripesim.sim.observe.progress import OnStep, silent
from stripesim.sim.observe.result_row import ResultRow

#: Default annual failure rate, of the order that large fleets report.
AFR: Final = 0.015
#: Minimum served fraction of a rate, because a finite run ends with requests in flight.
SERVED: Final = 0.97
# Splitting walks for one candidate: the interval spans some tenths of a nine.
_WALKS: Final = 200

_SIMULATED: Final = (
    "iops",
    "latency_p99_ns",
    "latency_p99_recovery_ns",
    "rebuild_s",
    "nines",
    "drive_writes_per_day",
)


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


class _Simulated(NamedTuple):
    """Numbers of a candidate's runs: the worst of each under all seeds, and a rebuild."""

    worst: list[_WorstCells]
    rebuild: Rebuild
    recovering_worst: list[_WorstCells] | None  # While an OSD is rebuilt, if asked for.
    refusals: Sequence[str]


class MadePlan(NamedTuple):
    """The document of a plan, and the values of its candidates outside the calibrated range."""

    document: dict[str, Any]
    outside: Sequence[Problem]
    warnings: Sequence[str]


def make_plan(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
    on_known: Callable[[str], None] = lambda sentence: None,
    unchecked: bool = False,
) -> MadePlan:
    """Answer a scenario's `[plan]`.

    Parameters
    ----------
    scenario
        The scenario, with its table ``[plan]``. Clients that it does not state do not limit the rate.
    engine
        ``compiled`` or ``simpy``.
    progress
        Called after each step with what comes next, and with the number of all steps once it is known.
    on_known
        Called once with the recommendation if it is known before all candidates are simulated.
    unchecked
        True to show results that the audit refuses. Otherwise such a candidate has none.
    """
    plan = scenario.plan
    if plan is None:
        raise scenario.problem("plan", "nothing", "a table [plan]")
    deadline_s = time.monotonic() + plan.wall_s_max
    every = _judged_candidates(scenario, plan)
    left = sorted(
        (candidate for candidate in every if candidate.possible), key=_price_order
    )
    steps = 1 + min(len(left), plan.simulated_max) * _runs_of_candidate(plan)
    progress(f"{len(left)} of {len(every)} candidates to simulate", steps)
    _simulate_all(
        left,
        plan,
        engine,
        deadline_s,
        progress=progress,
        on_known=on_known,
        unchecked=unchecked,
    )
    made = _recommendation(scenario, plan, every)
    provenance = made_from(
        scenario,
        engine=engine,
        replications=plan.replications,
        unchecked=unchecked,
    )
    return made._replace(document={**made.document, "provenance": provenance})


def _judged_candidates(scenario: Scenario, plan: PlanSpec) -> list[Candidate]:
    """List all candidates, judged by closed forms."""
    every = list(candidates_of(scenario.with_enough_clients(), plan))
    for candidate in every:
        candidate.results |= dict.fromkeys(_SIMULATED)
        candidate.results |= {"cost": None, "next_domain_cost": None}
        judge_closed_forms(candidate, scenario, plan)
    return every


def _simulate_all(
    candidates: Sequence[Candidate],
    plan: PlanSpec,
    engine: str,
    deadline_s: float,
    *,
    progress: OnStep,
    on_known: Callable[[str], None],
    unchecked: bool,
) -> None:
    """Simulate candidates in this order, up to the plan's number and a time of the monotonic clock."""
    is_known = False
    simulated_max = min(len(candidates), plan.simulated_max)
    shared: dict[tuple[str, ...], _Simulated] = {}
    for number, candidate in enumerate(candidates):
        limit = ""
        if time.monotonic() > deadline_s:
            limit = f"{plan.wall_s_max:g} s"
        elif number >= plan.simulated_max:
            limit = f"plan.simulated_max ({plan.simulated_max})"
        if limit:
            reason = f"not simulated: beyond {limit}"
            candidate.verdicts.append(Verdict("simulated", "uncertain", reason))
            continue
        progress_text = f"{candidate.scheme}, {number + 1} of {simulated_max}"
        simulate(
            candidate,
            plan,
            engine,
            on_run=partial(progress, progress_text),
            unchecked=unchecked,
            shared=shared,
        )
        left_count = simulated_max - number - 1
        best = None if is_known else _known_best(candidates, number + 1)
        if best is not None and left_count:
            is_known = True
            on_known(
                f"recommended: {_name_of(best, plan)}, the first in order of price that meets all "
                f"requirements; {left_count} more are simulated to compare"
            )


def _known_best(candidates: Sequence[Candidate], simulated: int) -> Candidate | None:
    """Return the recommendation if no later candidate can be as cheap, or None.

    The candidates are in order of price, and the first `simulated` of them have been judged.
    """
    judged = [one for one in candidates[:simulated] if one.meets]
    if not judged or simulated == len(candidates):
        return None
    best = min(judged, key=_price_order)
    if _price_of(candidates[simulated]) == _price_of(best):
        return None
    return best


def _name_of(candidate: Candidate, plan: PlanSpec) -> str:
    return line_name(candidate.to_json(), list(map(json_name, varied_keys(plan))))


def _recommendation(
    scenario: Scenario, plan: PlanSpec, every: Sequence[Candidate]
) -> MadePlan:
    """Compare the judged candidates, and recommend the first in order of price that meets the plan."""
    meeting = sorted(
        (candidate for candidate in every if candidate.meets), key=_price_order
    )
    best = meeting[0] if meeting else None
    documents = _documents_of(every)
    varied = [json_name(key) for key in varied_keys(plan)]
    recommended = None if best is None else documents[id(best)]
    name = "" if recommended is None else line_name(recommended, varied)
    refusals = [
        f"{line_name(documents[id(one)], varied)}: {one.refused}"
        for one in every
        if one.refused is not None
    ]
    scenarios = [one.scenario for one in every if one.scenario]
    outside = outside_of_all(_at_rate(one, plan.rate_per_s) for one in scenarios)
    lines = (scenario_warnings(one, build_models(one)) for one in scenarios)
    warnings = list(dict.fromkeys(line for listed in lines for line in listed))
    document = {
        "varied": varied,
        "candidates": list(documents.values()),
        "recommended": recommended,
        "reasons": _reasons(name, best, meeting, every),
        **_purchase_of(best, plan),
        "assumptions": [
            *_assumptions(scenario, plan),
            *_own_assumptions(every, documents, varied),
            *_equal_latencies(plan, every),
        ],
        "warnings": [*map(str, outside), *warnings, *refusals],
        "refusals": refusals,
    }
    return MadePlan(document, outside, warnings)


def _documents_of(every: Sequence[Candidate]) -> dict[int, dict[str, Any]]:
    """Return the document of each candidate by its identity, with its place on the Pareto front."""
    simulated = [
        one for one in every if one.possible and one.results["iops"] is not None
    ]
    front = {id(candidate) for candidate in _pareto(simulated)}
    return {id(one): {**one.to_json(), "pareto": id(one) in front} for one in every}


def _purchase_of(best: Candidate | None, plan: PlanSpec) -> dict[str, Any]:
    """Return the placement groups of the recommended cluster, and what more of each resource gives."""
    if best is None or best.scenario is None:
        return {"placement": None, "purchases": []}
    # Scenarios of candidates have no plan, which has the prices.
    priced = best.scenario.replaced(plan=plan)
    return {
        "placement": pg_choice_of(best.scenario, best.scheme).to_json(),
        "purchases": bounds_of_steps(priced, best.scheme),
    }


def _runs_of_candidate(plan: PlanSpec) -> int:
    """Return the simulations of one candidate: each seed, with and without recovery, and a rebuild."""
    loads = 1 if plan.p99_recovery_ms is None else 2
    return loads * _runs_min(plan) + 1


def _runs_min(plan: PlanSpec) -> int:
    """Return the seeds of each candidate, at least."""
    if plan.interval_percent is None:
        return plan.replications
    return max(plan.replications, NARROW_RUNS_MIN)


def _price_of(candidate: Candidate) -> tuple[float, ...]:
    """Return what is known of a price before a simulation: cost, raw bytes, hosts and gateways."""
    raw_bytes = 0.0
    if candidate.capacity is not None:
        raw_bytes = candidate.capacity.raw_bytes or 0.0
    return (
        candidate.results.get("cost") or 0.0,
        raw_bytes,
        candidate.keys["hosts"],
        candidate.keys.get("gateways", 0),
    )


def _price_order(candidate: Candidate) -> tuple[float, ...]:
    """Return a sort key: the price, then latency and capacity. The first one is recommended."""
    safe_bytes = 0.0
    if candidate.capacity is not None:
        safe_bytes = candidate.capacity.usable_bytes_safe or 0.0
    return (
        *_price_of(candidate),
        candidate.results.get("latency_p99_ns") or 0.0,
        -safe_bytes,
    )


def simulate(
    candidate: Candidate,
    plan: PlanSpec,
    engine: str = "compiled",
    *,
    on_run: Callable[[], None] = lambda: None,
    unchecked: bool = False,
    shared: dict[tuple[str, ...], _Simulated] | None = None,
) -> None:
    """Simulate a candidate with several seeds, rebuild one OSD, compute its nines, and judge the results.

    `on_run` is called after each run. `shared` holds the runs of earlier candidates.
    """
    scenario = candidate.scenario
    assert scenario is not None
    shared = {} if shared is None else shared
    key = _content_of_runs(scenario)
    try:
        if key not in shared:
            shared[key] = _runs_of(
                candidate, plan, engine, on_run=on_run, unchecked=unchecked
            )
        else:
            for _ in range(_runs_of_candidate(plan)):
                on_run()
    except RefusedError as error:
        candidate.refused = str(error)
        candidate.rule_out("refused", f"refused: {error}")
        return
    except ValueError as error:
        candidate.rule_out_by(problems_of(error)[0])
        return
    worst, rebuild, recovering_worst, refusals = shared[key]
    candidate.refused = next(iter(refusals), None)
    candidate.results["bottleneck"] = worst[0].bottleneck
    if not all(_are_narrow(each, plan) for each in (worst, recovering_worst or worst)):
        candidate.warnings.append(
            f"intervals are wider than plan.interval_percent ({plan.interval_percent:g}) "
            f"after {NARROW_RUNS_MAX} runs: a longer run may narrow them"
        )
    _judge_rate(candidate, plan, worst)
    _judge_latency(candidate, plan, worst)
    if recovering_worst is not None:
        _judge_recovery_latency(candidate, plan, recovering_worst)
    drives = drives_of(scenario, build_models(scenario))
    _judge_rebuild(candidate, plan, rebuild, drives)
    _note_wear(candidate, drives, worst)
    _judge_nines(candidate, plan, rebuild)


def _content_of_runs(scenario: Scenario) -> tuple[str, ...]:
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
) -> _Simulated:
    """Run a candidate with several seeds, rebuild one OSD, and run it while an OSD is rebuilt."""
    scenario = candidate.scenario
    assert scenario is not None
    at_rate = _at_rate(scenario, plan.rate_per_s)
    recovering_worst = None
    # Seeds differ in their requests, but not in the op graphs.
    graphs: dict[Cell, CompiledGraphs] = {}
    with collecting_refusals(unchecked) as refusals:
        worst = _under_seeds(
            lambda seed: _worst(at_rate.seeded(seed), engine, graphs=graphs),
            plan,
            on_run,
        )
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
    return _Simulated(worst, rebuild, recovering_worst, refusals)


def _under_seeds(
    run: Callable[[int], _WorstCells], plan: PlanSpec, on_run: Callable[[], None]
) -> list[_WorstCells]:
    """Run under seeds 0, 1, … for all candidates alike, until the intervals are as narrow as the plan asks.

    `on_run` is called for the runs that each candidate has.
    """
    worst = []
    for seed in range(_runs_min(plan)):
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


def _judge_rate(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    """Record the served rate, and judge it if one is required."""
    if plan.rate_per_s is None:
        served = student_interval([one.iops for one in worst])
    else:
        # Poisson arrivals of a finite run deviate from the rate, so a saturated run serves a share of the
        # offered rate.
        shares = [
            one.iops / one.offered_iops if one.saturated and one.offered_iops else 1.0
            for one in worst
        ]
        served = student_interval(
            [min(1.0, share) * plan.rate_per_s for share in shares]
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


def _at_rate(scenario: Scenario, rate_per_s: float | None) -> Scenario:
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
    rows = [result.row for _, result in run_cells(scenario, engine, graphs=graphs)]
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
    )


def _p99_ns(row: ResultRow, phase: str) -> float:
    """Return the p99 latency of a phase.

    A run without the phase rebuilt nothing, or all of it before the first request: that of the run counts.
    """
    of_phase = row.faults.phases.get(phase) if row.faults else None
    if of_phase is not None and of_phase.latency_p99_ns:
        return of_phase.latency_p99_ns
    return row.latency_p99_ns or 0.0


def _pareto(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no other one beats in cost, capacity, latency and nines together."""

    def goals(candidate: Candidate) -> tuple[float, ...]:
        capacity = candidate.capacity
        results = candidate.results
        assert capacity is not None
        cost = results["cost"]
        if cost is None:
            cost = capacity.raw_bytes or 0.0
        return (
            cost,
            -(capacity.usable_bytes_safe or 0.0),
            results["latency_p99_ns"] or 0.0,
            -(results["nines"] or 0.0),
        )

    def beaten(mine: tuple[float, ...]) -> bool:
        return any(
            mine != its and all(b <= a for a, b in zip(mine, its, strict=True))
            for its in points
        )

    points = [goals(one) for one in candidates]
    return [
        one for one, mine in zip(candidates, points, strict=True) if not beaten(mine)
    ]


def _reasons(
    name: str,
    best: Candidate | None,
    meeting: Sequence[Candidate],
    every: Sequence[Candidate],
) -> list[str]:
    """Explain the recommendation, or why there is none."""
    if best is None:
        open_ones = sum(one.possible and not one.meets for one in every)
        if open_ones == 0:
            return [f"none of {len(every)} candidates meets all requirements"]
        return [
            f"none of {len(every)} candidates is known to meet all requirements. {open_ones} are uncertain: "
            "more replications, a longer run or a higher plan.simulated_max may decide"
        ]
    criterion = "the lowest cost"
    if best.results.get("cost") is None:
        criterion = "the fewest raw bytes"
    ties = f" of {len(meeting)} that meet all requirements"
    if len(meeting) == 1:
        ties = ", and the only one that meets all requirements"
    return [
        f"{name}: {criterion}{ties}",
        *(verdict.words for verdict in best.verdicts),
        *(f"warning: {line}" for line in best.warnings),
    ]


def _assumptions(scenario: Scenario, plan: PlanSpec) -> list[str]:
    """List the assumptions behind the numbers."""
    assumptions = [
        "usable_bytes_safe = raw × (1 − largest domain) × nearfull ratio / overhead / padding / imbalance, "
        "how full the fullest OSD then is over the mean, with the groups placed again. Without a spare "
        "domain, the overhead is that of the shards left. Objects are padded to whole stripes. Metadata "
        "and other pools are not included",
        f"rates and latencies: mean over {_narrow_words(plan)} with a 95 % interval (Student's t), for "
        "the slowest kind of request and the one with the highest latency",
        "rebuild_s: an idle cluster rebuilds a sample of objects, extrapolated to an OSD at the "
        f"nearfull ratio; {_sync_words(scenario, plan)}",
    ]
    assumptions.append(_rate_assumption(scenario))
    if scenario.durability is None:
        assumptions.append(
            f"nines: over one year, drives fail independently at {AFR:.1%} per year, and repair starts after "
            f"{DETECTION_S:g} s, without bursts and latent errors. Set [durability] to change this"
        )
    assumptions += parity_notes(scenario.schemes)
    assumptions += client_notes(scenario)
    if plan.rate_per_s is not None:
        assumptions.append(f"a rate counts as served if at least {SERVED:.0%} of it is")
    if plan.p99_recovery_ms is not None:
        assumptions.append(
            "p99 during recovery: of requests issued during recovery. OSD 0 is lost at the start, and the "
            "image's data on it is rebuilt"
        )
    return assumptions


def _own_assumptions(
    every: Sequence[Candidate],
    documents: Mapping[int, Mapping[str, Any]],
    varied: Sequence[str],
) -> Iterator[str]:
    """Name the candidates that each assumption about some of them concerns."""
    names: dict[str, list[str]] = {}
    for one in every:
        for line in one.assumptions:
            names.setdefault(line, []).append(line_name(documents[id(one)], varied))
    for line, (first, *others) in names.items():
        more = f" and {len(others)} more" if others else ""
        yield f"{first}{more}: {line}"


def _sync_words(scenario: Scenario, plan: PlanSpec) -> str:
    """Return a note on how long recovery waits for the log, by the candidates' drives."""
    if plan.drive:
        return (
            "each object that recovers waits for a sync of the log (cluster.recovery_sync_ms, or the "
            "drive's own)"
        )
    return recovery_sync_words(scenario)


def seeds_words(plan: PlanSpec) -> str:
    """Return how many seeds each candidate runs under."""
    if plan.interval_percent is None:
        return f"{plan.replications} seeds"
    return f"{_runs_min(plan)} to {NARROW_RUNS_MAX} seeds"


def _narrow_words(plan: PlanSpec) -> str:
    """Return a note on how many seeds each candidate runs under, and until when."""
    if plan.interval_percent is None:
        return seeds_words(plan)
    return f"{seeds_words(plan)}, until half the interval is at most {plan.interval_percent:g} % of the mean,"


def _equal_latencies(plan: PlanSpec, every: Sequence[Candidate]) -> Iterator[str]:
    """Explain a p99 that clusters share although each has runs of its own.

    All candidates draw the same requests and service times (common random numbers). Where hardly any request
    waits, the slowest percent are the same requests with the same service times on every cluster.
    """
    if plan.rate_per_s is None:
        return
    alike: dict[tuple[str, float], list[Candidate]] = {}
    for one in every:
        p99_ns = one.results["latency_p99_ns"]
        if p99_ns is not None and one.bound is not None:
            alike.setdefault((one.scheme, p99_ns), []).append(one)
    for (scheme, _), candidates in alike.items():
        runs = {_content_of_runs(one.scenario) for one in candidates if one.scenario}
        if len(runs) > 1:
            lowest = min(one.bound.iops for one in candidates if one.bound)
            yield (
                f"{len(candidates)} clusters with {scheme} have the same p99, although each was simulated: "
                f"at {plan.rate_per_s / lowest:.1%} of their bounds or less, the slowest requests wait for "
                "no other, and all clusters draw the same service times (common random numbers)"
            )


def _rate_assumption(scenario: Scenario) -> str:
    """Name the rate of rebuilds that the nines assume."""
    spec = scenario.durability
    if spec is not None and spec.repair_bytes_per_s is not None:
        return (
            "nines: lost drives are rebuilt at durability.repair_bytes_per_s, not at the simulated rate of "
            "rebuild_s"
        )
    return "nines: lost drives are rebuilt at the simulated rate of rebuild_s, as in `stripesim durability`"
