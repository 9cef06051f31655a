"""From what may vary and what is required to one recommendation: closed forms prune, simulation decides."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from stripesim.models.drive import drive_writes_per_day
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import made_from, warnings_of_all
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.planning.candidates import (
    Candidate,
    Verdict,
    at_least,
    at_most,
    candidates_of,
    judge_closed_forms,
    varied_keys,
)
from stripesim.scenarios.planning.capacity import Drives, drives_of
from stripesim.scenarios.planning.durability import DETECTION_S, system_of
from stripesim.scenarios.planning.rebuild import Rebuild, idle_rebuild, without_osd
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
from stripesim.sim.durability.assess import assess, recommended_method
from stripesim.sim.observe.intervals import Interval, student_interval
from stripesim.sim.observe.result_row import ResultRow

#: Annual failure rate where a scenario gives none: the order of what large fleets report.
AFR: Final = 0.015
#: A rate counts as served from this share on: a finite run ends with requests in flight.
SERVED: Final = 0.97
# Walks of splitting for one candidate: an interval of some tenths of a nine.
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


def make_plan(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Answer a scenario's `[plan]`."""
    plan = scenario.plan
    if plan is None:
        raise scenario.problem("plan", "nothing", "a table [plan]")
    begun = time.monotonic()
    every = list(candidates_of(scenario, plan))
    for candidate in every:
        candidate.found |= dict.fromkeys(_SIMULATED)
        candidate.found.setdefault("cost", None)
        judge_closed_forms(candidate, scenario, plan)
    left = sorted(
        (candidate for candidate in every if candidate.possible), key=_price_order
    )
    progress(f"{len(every)} candidates, {len(left)} left by closed forms")
    simulated_max = min(len(left), plan.simulated_max)
    for number, candidate in enumerate(left):
        limit = ""
        if time.monotonic() - begun > plan.wall_s_max:
            limit = f"{plan.wall_s_max:g} s"
        elif number >= plan.simulated_max:
            limit = f"plan.simulated_max ({plan.simulated_max})"
        if limit:
            reason = f"not simulated: beyond {limit}"
            candidate.verdicts.append(Verdict("simulated", "uncertain", reason))
            continue
        progress(f"simulating {number + 1} of {simulated_max}: {_name(candidate)}")
        simulate(candidate, plan, engine)
    meeting = sorted(
        (candidate for candidate in every if candidate.meets), key=_price_order
    )
    simulated = [one for one in every if one.possible and one.found["iops"] is not None]
    front = {id(candidate) for candidate in _pareto(simulated)}
    best = meeting[0] if meeting else None
    documents = {
        id(one): {**one.to_json(), "pareto": id(one) in front} for one in every
    }
    return {
        "varied": varied_keys(plan),
        "candidates": list(documents.values()),
        "recommended": None if best is None else documents[id(best)],
        "reasons": _reasons(best, meeting, every),
        "assumptions": _assumptions(scenario, plan),
        "warnings": warnings_of_all(
            _at_rate(one.scenario, plan.rate_per_s) for one in every if one.scenario
        ),
        "provenance": made_from(
            scenario, engine=engine, replications=plan.replications
        ),
    }


def _name(candidate: Candidate) -> str:
    keys = candidate.keys
    return (
        f"{candidate.scheme} on {keys['hosts']} × {keys['osds_per_host']} {keys['ssd']}"
    )


def _price_order(candidate: Candidate) -> tuple[float, ...]:
    """Order by cost, then raw bytes, hosts and latency: the first that meets all is recommended."""
    raw_bytes = 0.0
    safe_bytes = 0.0
    if candidate.capacity is not None:
        raw_bytes = candidate.capacity.raw_bytes or 0.0
        safe_bytes = candidate.capacity.usable_bytes_safe or 0.0
    return (
        candidate.found.get("cost") or 0.0,
        raw_bytes,
        candidate.keys["hosts"],
        candidate.found.get("latency_p99_ns") or 0.0,
        -safe_bytes,
    )


def simulate(candidate: Candidate, plan: PlanSpec, engine: str = "compiled") -> None:
    """Simulate a candidate under several seeds, rebuild one OSD, compute its nines, and judge all of it."""
    scenario = candidate.scenario
    assert scenario is not None
    at_rate = _at_rate(scenario, plan.rate_per_s)
    seeds = range(plan.replications)
    recovering_worst = None
    try:
        worst = [_worst(_seeded(at_rate, number), engine) for number in seeds]
        rebuild = idle_rebuild(
            scenario, candidate.scheme, engine=engine, sample_objects=1000
        )
        if plan.p99_recovery_ms is not None:
            recovering = _recovering(at_rate)
            recovering_worst = [
                _worst(_seeded(recovering, number), engine, "recovery")
                for number in seeds
            ]
    except ValueError as error:
        candidate.problem = str(error).splitlines()[0]
        return
    candidate.found["bottleneck"] = worst[0].bottleneck
    _judge_rate(candidate, plan, worst)
    _judge_latency(candidate, plan, worst)
    if recovering_worst is not None:
        _judge_recovery_latency(candidate, plan, recovering_worst)
    drives = drives_of(scenario, build_models(scenario))
    _judge_rebuild(candidate, plan, rebuild, drives)
    _note_wear(candidate, drives, worst)
    _judge_nines(candidate, plan, rebuild, drives)


def _judge_rate(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    """Note the rate that is served, and judge it where one is required."""
    if plan.rate_per_s is None:
        served = student_interval([one.iops for one in worst])
    else:
        # Poisson arrivals of a finite run are not exactly at the rate: a saturated run serves a share of it.
        shares = [
            one.iops / one.offered_iops if one.saturated and one.offered_iops else 1.0
            for one in worst
        ]
        served = student_interval(
            [min(1.0, share) * plan.rate_per_s for share in shares]
        )
    candidate.found |= {
        "iops": served.mean,
        "iops_low": served.low,
        "iops_high": served.high,
    }
    if plan.rate_per_s is not None:
        unit = "requests a second served"
        verdict = at_least(
            "rate_per_s",
            served,
            SERVED * plan.rate_per_s,
            1.0,
            unit,
        )
        candidate.verdicts.append(verdict)


def _judge_latency(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    p99_ns = student_interval([one.latency_p99_ns for one in worst])
    candidate.found |= {
        "latency_p99_ns": p99_ns.mean,
        "latency_p99_low_ns": p99_ns.low,
        "latency_p99_high_ns": p99_ns.high,
    }
    if plan.p99_ms is not None:
        unit = "ms at the 99th percentile"
        verdict = at_most("p99_ms", p99_ns, plan.p99_ms * 1e6, 1e-6, unit)
        candidate.verdicts.append(verdict)


def _judge_recovery_latency(
    candidate: Candidate, plan: PlanSpec, worst: Sequence[_WorstCells]
) -> None:
    assert plan.p99_recovery_ms is not None
    p99_ns = student_interval([one.latency_p99_ns for one in worst])
    candidate.found["latency_p99_recovery_ns"] = p99_ns.mean
    unit = "ms while an OSD is rebuilt"
    wanted_ns = plan.p99_recovery_ms * 1e6
    verdict = at_most("p99_recovery_ms", p99_ns, wanted_ns, 1e-6, unit)
    candidate.verdicts.append(verdict)


def _judge_rebuild(
    candidate: Candidate, plan: PlanSpec, rebuild: Rebuild, drives: Drives
) -> None:
    """Note how long a rebuild of the largest OSD takes at the nearfull ratio, and judge it."""
    if drives.largest_osd_bytes is not None and drives.fill is not None:
        lost_bytes = drives.largest_osd_bytes * drives.fill.nearfull_ratio
        candidate.found["rebuild_s"] = rebuild.seconds_for(lost_bytes)
    if plan.rebuild_s is not None:
        candidate.verdicts.append(
            _rebuild_verdict(plan.rebuild_s, candidate.found["rebuild_s"], rebuild)
        )


def _note_wear(
    candidate: Candidate, drives: Drives, worst: Sequence[_WorstCells]
) -> None:
    """Note how many times its capacity a drive is written in a day."""
    capacity = candidate.capacity
    if drives.capacity is None or capacity is None:
        return
    written = max(one.written_bytes_per_s for one in worst)
    per_drive = written / (capacity.osds * drives.per_osd)
    candidate.found["drive_writes_per_day"] = drive_writes_per_day(
        per_drive, drives.capacity.drive_bytes
    )


def _judge_nines(
    candidate: Candidate, plan: PlanSpec, rebuild: Rebuild, drives: Drives
) -> None:
    """Compute the nines with the rebuild that was simulated for this candidate, and judge them."""
    assert candidate.scenario is not None
    pace = rebuild.bytes_per_s
    seconds = candidate.found["rebuild_s"]
    if seconds and drives.largest_osd_bytes is not None and drives.fill is not None:
        pace = drives.largest_osd_bytes * drives.fill.nearfull_ratio / seconds
    try:
        row = nines_of(_with_pace(candidate.scenario, pace), candidate.scheme, pace)
    except ValueError as error:
        if plan.nines is not None:
            candidate.verdicts.append(
                Verdict("nines", "failed", str(error).splitlines()[0])
            )
        return
    candidate.found["nines"] = row["nines"]
    if plan.nines is not None:
        nines = None
        if row["nines"] is not None:
            nines = Interval(row["nines"], row["nines_low"], row["nines_high"])
        verdict = at_least("nines", nines, plan.nines, 1.0, "nines")
        candidate.verdicts.append(verdict)


def _with_pace(scenario: Scenario, bytes_per_s: float | None) -> Scenario:
    """Return a scenario whose drives are rebuilt at a pace, where its nines are those of its placement."""
    spec = scenario.durability
    if spec is None or bytes_per_s is None or spec.placement != "crush":
        return scenario
    paced = spec.model_copy(
        update={"repair_bytes_per_s": bytes_per_s, "repair": "parallel"}
    )
    return scenario.model_copy(update={"durability": paced})


def _rebuild_verdict(wanted: float, seconds: float | None, rebuild: Rebuild) -> Verdict:
    """Judge the time of a rebuild, the spread being what half the sample gives."""
    if seconds is None:
        return Verdict(
            "rebuild_s",
            "failed",
            f"rebuild_s: no rebuild: {rebuild.reason or 'not finished'}",
        )
    seconds_by_half = seconds
    if rebuild.bytes_per_s and rebuild.half_bytes_per_s:
        seconds_by_half *= rebuild.bytes_per_s / rebuild.half_bytes_per_s
    spread = Interval(seconds, *sorted((seconds, seconds_by_half)))
    return at_most("rebuild_s", spread, wanted, 1.0, "s to rebuild an OSD")


def nines_of(
    scenario: Scenario, scheme: str, bytes_per_s: float | None
) -> dict[str, Any]:
    """Return the durability of a scheme: as `[durability]` says, else at stated defaults."""
    asked = scenario
    if scenario.durability is None:
        if bytes_per_s is None:
            raise ValueError(
                f"nines: {scheme} cannot be rebuilt here, so it has no pace of repair"
            )
        spec = DurabilitySpec(
            afr=AFR, repair_bytes_per_s=bytes_per_s, detection_s=DETECTION_S
        )
        asked = scenario.model_copy(update={"durability": spec})
    system = system_of(asked, scheme)
    method = recommended_method(system).method
    return assess(system, method, seed=scenario.seed, walks=_WALKS)


def _at_rate(scenario: Scenario, rate_per_s: float | None) -> Scenario:
    """Return the scenario with Poisson arrivals at a rate; as it is where none is required."""
    if rate_per_s is None:
        return scenario
    open_loop = {"kind": "open", "rate_per_s": rate_per_s, "completions": "each"}
    load = scenario.workload.model_copy(update=open_loop)
    return scenario.model_copy(update={"workload": load})


def _seeded(scenario: Scenario, number: int) -> Scenario:
    return scenario.model_copy(update={"seed": scenario.seed + number})


def _recovering(scenario: Scenario) -> Scenario:
    """Return the scenario with its first OSD lost at the start and rebuilt under the load."""
    load = scenario.workload.model_copy(
        update={"image": "prefilled", "completions": "each"}
    )
    return without_osd(scenario, 0, load)


def _worst(scenario: Scenario, engine: str, phase: str = "") -> _WorstCells:
    """Run all cells of a scenario and take the worst of each number; `phase` chooses the latency's."""
    rows = [result.row for _, result in run_cells(scenario, engine)]
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
    """Keep those that no other one beats in cost, capacity, latency and nines at once."""

    def goals(candidate: Candidate) -> tuple[float, ...]:
        capacity = candidate.capacity
        found = candidate.found
        assert capacity is not None
        cost = found["cost"]
        if cost is None:
            cost = capacity.raw_bytes or 0.0
        return (
            cost,
            -(capacity.usable_bytes_safe or 0.0),
            found["latency_p99_ns"] or 0.0,
            -(found["nines"] or 0.0),
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
    best: Candidate | None, meeting: Sequence[Candidate], every: Sequence[Candidate]
) -> list[str]:
    """Say why one is recommended, or why none is."""
    if best is None:
        open_ones = sum(one.possible and not one.meets for one in every)
        return [
            f"none of {len(every)} candidates is known to meet every requirement; {open_ones} are uncertain: "
            "more replications, a longer run or a higher plan.simulated_max may decide them"
        ]
    criterion = "the lowest cost"
    if best.found.get("cost") is None:
        criterion = "the fewest raw bytes"
    ties = f" of {len(meeting)} that meet every requirement"
    if len(meeting) == 1:
        ties = ": only it meets every requirement"
    return [
        f"{_name(best)}: {criterion}{ties}",
        *(verdict.words for verdict in best.verdicts),
    ]


def _assumptions(scenario: Scenario, plan: PlanSpec) -> list[str]:
    """State what the numbers rest on."""
    said = [
        "usable_bytes_safe = raw × (1 − largest domain) × nearfull ratio / overhead; metadata and other "
        "pools are not counted",
        f"rates and latencies: mean over {plan.replications} seeds with a 95 % interval (Student's t); of "
        "several kinds of request the slowest and the worst",
        "rebuild_s: an idle cluster rebuilds a sample of objects; extrapolated to an OSD at the "
        "nearfull ratio",
    ]
    said.append(
        "nines: each candidate is rebuilt at the pace of its own simulated rebuild, whatever "
        "durability.repair_bytes_per_s says"
    )
    if scenario.durability is None:
        said.append(
            f"nines: within a year, drives fail independently at {AFR:.1%} a year, repair begins after "
            f"{DETECTION_S:g} s; no bursts, no latent errors; "
            "set [durability] for yours"
        )
    if plan.rate_per_s is not None:
        said.append(f"a rate counts as served from {SERVED:.0%} of it on")
    if plan.p99_recovery_ms is not None:
        said.append(
            "p99 during recovery: of the requests issued between its start and its end; OSD 0 is lost at the "
            "start, and what the image has on it is rebuilt"
        )
    return said
