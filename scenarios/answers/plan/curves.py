"""Simulate the load curves of a plan's recommended candidates, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stripesim.scenarios.answers.load.curve_builder import CurveSettings
from stripesim.scenarios.answers.load.curves import SEARCH_STEPS, load_curves
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.plan.candidates import scenario_of_result
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.observe.progress import OnStep, silent

#: Points, schemes and runs of the curves of a plan, which compares several clusters.
_PLAN_POINTS: Final = 10
_PLAN_SCHEMES_MAX: Final = 3
_PLAN_REPLICATIONS: Final = 3
# Requests of each run: at most, and for each request of the plan's own runs.
_PLAN_REQUESTS: Final = 6000
_PLAN_LONGER: Final = 2


def curves_of_plan(
    scenario: Scenario,
    document: Mapping[str, Any],
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
) -> list[LoadCurve]:
    """Simulate the load curves of a plan's recommended candidates.

    These are the recommended one and, of up to two other schemes, the cheapest one that meets all
    requirements.

    Parameters
    ----------
    scenario
        The scenario, with its table ``[plan]``.
    document
        That of `stripesim.scenarios.answers.plan.plan.make_plan`.
    engine
        ``compiled`` or ``simpy``.
    progress
        Called after each step of a curve with words, and with the number of all steps, about.

    Returns
    -------
    list of LoadCurve
        Empty without a recommendation.

    Raises
    ------
    ValueError
        If the load has no curve. See `stripesim.scenarios.answers.load.curves.load_curves`.
    """
    plan = scenario.plan
    best = document["recommended"]
    if plan is None or best is None:
        return []
    by_scheme = {best["scheme"]: best}
    meeting = [one for one in document["candidates"] if one["meets"]]
    for one in sorted(meeting, key=lambda each: each["cost"] or 0.0):
        if len(by_scheme) < _PLAN_SCHEMES_MAX:
            by_scheme.setdefault(one["scheme"], one)
    bounds_s = [] if plan.p99_ms is None else [plan.p99_ms / 1e3]
    requests = _PLAN_REQUESTS
    if scenario.workload.requests is not None:
        requests = min(requests, _PLAN_LONGER * scenario.workload.requests)
    # In the order of the other figures, so that schemes have the same colours.
    names = sorted(by_scheme, key=scenario.schemes.index)
    steps = (_PLAN_POINTS + SEARCH_STEPS) * len(names)

    def on_step(words: str, total: int | None = None) -> None:
        progress(f"load curve of {words}", steps)

    return load_curves(
        [scenario_of_result(scenario, plan, by_scheme[name]) for name in names],
        CurveSettings(
            engine=engine,
            p99_bounds_s=bounds_s,
            replications=_PLAN_REPLICATIONS,
            requests=requests,
            points_max=_PLAN_POINTS,
        ),
        progress=on_step,
    )
