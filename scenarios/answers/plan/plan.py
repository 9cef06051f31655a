"""Recommend a cluster: closed forms prune the candidates, simulation decides between the others."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from stripesim.models.problems import Problem
from stripesim.scenarios.answers.plan.assumptions import (
    assumptions_of,
    equal_latencies,
    own_assumptions,
    price_warnings,
)
from stripesim.scenarios.answers.plan.candidate_runs import (
    SimulatedRuns,
    at_required_rate,
    runs_of_candidate,
    simulate_candidate,
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
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import (
    made_from,
    outside_of_all,
    scenario_warnings,
)
from stripesim.scenarios.forms.pg_settings import pg_choice_of
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import PlanSpec
from stripesim.scenarios.schema.units import counted_text
from stripesim.sim.observe.progress import OnStep, silent

_SIMULATED: Final = (
    "iops",
    "latency_p99_ns",
    "latency_p99_recovery_ns",
    "rebuild_s",
    "nines",
    "drive_writes_per_day",
)


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
    steps = 1 + min(len(left), plan.simulated_max) * runs_of_candidate(plan)
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
    shared: dict[tuple[str, ...], SimulatedRuns] = {}
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
        simulate_candidate(
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
    # Models of other candidates cannot be built.
    scenarios = [one.scenario for one in every if one.scenario and one.capacity]
    outside = outside_of_all(
        at_required_rate(one, plan.rate_per_s) for one in scenarios
    )
    lines = (scenario_warnings(one, build_models(one)) for one in scenarios)
    warnings = list(dict.fromkeys(line for listed in lines for line in listed))
    warnings += price_warnings(scenario, plan)
    document = {
        "varied": varied,
        "candidates": list(documents.values()),
        "recommended": recommended,
        "reasons": _reasons(name, best, meeting, every),
        **_purchase_of(best, plan),
        "assumptions": [
            *assumptions_of(scenario, plan),
            *own_assumptions(every, documents, varied),
            *equal_latencies(plan, every),
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
        tried = counted_text(len(every), "candidate")
        if open_ones == 0:
            return [f"none of {tried} meets all requirements"]
        uncertain = "1 is" if open_ones == 1 else f"{open_ones} are"
        return [
            f"none of {tried} is known to meet all requirements. {uncertain} uncertain: more replications, a "
            "longer run or a higher plan.simulated_max may decide"
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
        *_cheaper_words(best, every),
        *(f"warning: {line}" for line in best.warnings),
    ]


def _cheaper_words(best: Candidate, every: Sequence[Candidate]) -> list[str]:
    """Return a sentence on cheaper candidates that may meet all requirements, too."""
    cheaper = [
        one
        for one in every
        if one.possible and not one.meets and _price_of(one) < _price_of(best)
    ]
    if not cheaper:
        return []
    named = counted_text(len(cheaper), "cheaper candidate")
    verb = "is" if len(cheaper) == 1 else "are"
    return [f"{named} {verb} uncertain: more replications or a longer run may decide"]
