"""Simulate latency over throughput, from a tenth of saturation to past it.

Curves are independent, so worker processes compute them side by side. `curve_builder` chooses the rates of
each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from math import inf
from typing import Final, NamedTuple

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.answers.load.curve_builder import (
    POINTS_MAX,
    Batch,
    CurveBuilder,
    CurveSettings,
    NewPoint,
)
from stripesim.scenarios.answers.load.rate_runs import (
    RateMeasurement,
    RateRun,
    measure_rate,
)
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import rounded_rate
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import check_room
from stripesim.scenarios.schema.failure_checks import stands_alone
from stripesim.scenarios.schema.geometry import loads_with_keys
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.work.pool import results, workers_wanted
from stripesim.sim.observe.progress import OnStep, silent

#: Largest number of curves of one scenario.
CURVES_MAX: Final = 24
#: Fewest requests of each run.
REQUESTS_LEAST: Final = 100
#: Batches of runs that find the saturation of a curve, about: steps of progress before its points.
SEARCH_STEPS: Final = 4
#: Steps of progress of one curve, about.
STEPS: Final = POINTS_MAX + SEARCH_STEPS


def load_curves(
    scenario: Scenario | Sequence[Scenario],
    settings: CurveSettings = CurveSettings(),  # noqa: B008 - immutable
    *,
    jobs: int | None = None,
    progress: OnStep = silent,
) -> list[LoadCurve]:
    """Simulate the load curve of each scheme and kind of request of a scenario.

    Parameters
    ----------
    scenario
        The scenario, or several to compare. Queue depth, rate and length are replaced: arrivals are Poisson
        at each rate. Several workloads keep their shares of the requests. Clients that the scenario does not
        state do not limit the rate.
    settings
        Points and runs of each curve.
    jobs
        Worker processes [count]. None uses all cores. 1 runs everything in this process.
    progress
        Called after each point with its scheme and rate, and after each batch of runs that looks for the
        saturation.

    Returns
    -------
    list of LoadCurve
        One for each cell of each scenario, in order.

    Raises
    ------
    ValueError
        If the scenario has no steady load (traces, faults, changes, repairs), too many cells, or a scheme
        does not fit on the cluster. The message names the key.
    RefusedError
        If the audit refuses the saturation of a curve.
    """
    builders = curve_builders(scenario, settings)
    for curve, point in new_points(builders, jobs=jobs, on_search=progress):
        progress(f"{curve.cell.scheme} at {rounded_rate(point.offered_iops)}/s")
    return [builder.curve() for builder in builders if builder.is_begun]


def check_bounds(argument: str, bounds_s: Iterable[float]) -> None:
    """Raise an AnswerError if a bound of latency [s] is not a number above 0."""
    for bound_s in bounds_s:
        if not (isinstance(bound_s, int | float) and 0 < bound_s < inf):
            wanted = "a number of seconds above 0"
            raise AnswerError(Problem(place=argument, got=repr(bound_s), wanted=wanted))


def curve_builders(
    scenario: Scenario | Sequence[Scenario], settings: CurveSettings
) -> list[CurveBuilder]:
    """Return a builder for each cell of each scenario. The errors are those of `load_curves`."""
    check_bounds("p99_bounds_s", settings.p99_bounds_s)
    if settings.requests is not None and settings.requests < REQUESTS_LEAST:
        wanted = f"at least {REQUESTS_LEAST}"
        raise AnswerError(
            Problem(place="--requests", got=f"{settings.requests}", wanted=wanted)
        )
    scenarios = [scenario] if isinstance(scenario, Scenario) else list(scenario)
    builders = []
    for asked in (one.with_enough_clients() for one in scenarios):
        check_load(asked)
        models = build_models(asked)
        check_schemes(asked, models)
        check_room(asked, models)
        builders += [CurveBuilder(asked, cell, settings) for cell in cells(asked)]
    return builders


def check_load(scenario: Scenario) -> None:
    """Refuse a scenario without a load that can be simulated at any rate in a steady state.

    Raises
    ------
    ValueError
        With one line that names the key.
    """
    if stands_alone(scenario):
        raise scenario.problem("workload", "nothing", "a table [workload]")
    for place, load in loads_with_keys(scenario):
        if load.kind == "trace":
            wanted = (
                'closed or open: a trace has one rate; "stripesim sweep --over workload.speed=…" '
                "replays it faster"
            )
            raise scenario.problem(f"{place}.kind", "trace", wanted)
    wanted = (
        "none: a load curve needs a steady state; [degraded] keeps OSDs down throughout"
    )
    if scenario.faults is not None:
        raise scenario.problem("faults", "faults during the run", wanted)
    if scenario.repair is not None:
        raise scenario.problem("repair", "a rebuild during the run", wanted)
    if scenario.changes:
        raise scenario.problem("changes", "changes during the run", wanted)
    count = len(cells(scenario))
    if count > CURVES_MAX:
        wanted = (
            f"at most {CURVES_MAX}: fewer schemes, ops, patterns or block_sizes_bytes"
        )
        raise scenario.problem("workload", f"{count} curves", wanted)


class RunSlot(NamedTuple):
    """A run with its curve, and its place in the batch that the curve waits for."""

    curve: int
    number: int
    run: RateRun


def new_points(
    builders: Sequence[CurveBuilder],
    *,
    jobs: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_search: OnStep = silent,
) -> Iterator[NewPoint]:
    """Run the batches of all curves side by side until all are complete, and yield each point.

    Parameters
    ----------
    builders
        One for each curve.
    jobs
        Worker processes [count]. None uses all cores. 1 runs everything in this process.
    should_stop
        Asked after each run. If it returns True, the curves remain as they are.
    on_search
        Called after each batch of a curve that looks for its saturation, which has no points yet.
    """
    curves = [builder.runs() for builder in builders]
    waiting: deque[RunSlot] = deque()
    pending: list[dict[int, RateMeasurement]] = [{} for _ in builders]
    sizes = [0] * len(builders)

    def queue(curve: int, batch: list[RateRun]) -> None:
        sizes[curve] = len(batch)
        pending[curve] = {}
        waiting.extend(RunSlot(curve, number, run) for number, run in enumerate(batch))

    for index, runs in enumerate(curves):
        queue(index, next(runs))
    with closing(measurements(waiting, workers_wanted(jobs))) as of_slots:
        for slot, measurement in of_slots:
            if should_stop():
                return
            measured = pending[slot.curve]
            measured[slot.number] = measurement
            if len(measured) < sizes[slot.curve]:
                continue
            builder = builders[slot.curve]
            batch = _next_batch(curves[slot.curve], measured)
            if not builder.is_begun:
                on_search(f"{builder.cell.scheme}: saturation")
            yield from builder.take_new()
            if batch is not None:
                queue(slot.curve, batch)


def _next_batch(
    runs: Batch, measured: Mapping[int, RateMeasurement]
) -> list[RateRun] | None:
    """Return the runs that follow measured ones, None at the end of the curve."""
    try:
        return runs.send([measured[number] for number in range(len(measured))])
    except StopIteration:
        return None


def measurements(
    waiting: Iterable[RunSlot], jobs: int
) -> Generator[tuple[RunSlot, RateMeasurement], None, None]:
    """Measure runs in this process or in `jobs` workers, and yield each as it ends.

    A deque of runs may grow meanwhile.

    Raises
    ------
    ProblemsError
        If a run fails, or its worker dies.
    """
    return results(_measured, waiting, jobs=jobs, place="load")


def _measured(slot: RunSlot) -> RateMeasurement:
    return measure_rate(slot.run)
