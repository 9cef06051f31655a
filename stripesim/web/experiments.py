"""Simulate one option in a worker process: its required load, load curve, a failure, and added hosts.

Each experiment is a function of a scenario and its settings. It yields dictionaries as it goes, which
`stripesim.web.jobs` collects and `stripesim.web.simulated_pictures` draws.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from stripesim.models.documents import Documented
from stripesim.models.qos import mclock_defaults
from stripesim.scenarios.answers.load.curve_builder import GROWTH_MAX, CurveSettings
from stripesim.scenarios.answers.load.curves import curve_builders, new_points
from stripesim.scenarios.answers.load.rate_runs import RateRun, measure_rate
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, load_scenario, scenario_from

Items = Iterator[Mapping[str, Any]]
ShouldStop = Callable[[], bool]


class Settings(NamedTuple):
    """Values of the form that are not in the scenario."""

    failure: str  # What fails: a host, an OSD or a site.
    added_hosts: int  # [count]
    stored_bytes: float  # Client data before the change [B].


@dataclass(frozen=True, kw_only=True)
class CurvePoint(Documented):
    """A point of a load curve, and what is known of the curve by then. A sketch knows nothing of it.

    Attributes
    ----------
    offered_iops, iops
        Arrivals and completions [1/s].
    p50_ns, p99_ns
        Percentiles of latency [ns].
    is_steady
        False if the latency rises through the run.
    is_past_saturation
        True if the rate exceeds saturation.
    saturation_iops, limited_by
        Highest rate of the curve [1/s], None in a sketch, and the class of resources that limits it.
    knee_iops
        Rate at the knee [1/s], None if it is not known.
    """

    offered_iops: float
    iops: float
    p50_ns: float
    p99_ns: float
    is_steady: bool
    is_past_saturation: bool = False
    saturation_iops: float | None = None
    limited_by: str | None = None
    knee_iops: float | None = None


#: Runs at the required load, with different seeds [count].
SEEDS: Final = 3
_COLUMNS: Final = (
    "iops",
    "saturated",
    "latency_mean_ns",
    "latency_p99_ns",
    "bottleneck",
)

# Size of a load curve on the page, for seconds instead of minutes.
_REPLICATIONS: Final = 2
_POINTS_MAX: Final = 11
#: Time after which a curve stops with the points that it has [s].
CURVE_S_MAX: Final = 20.0
#: Points that come first, as parts of the lowest bound, and requests of each [count]. Their 99th percentile
#: is within 10 % of that of twenty times as many requests.
SKETCHED_PARTS: Final = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
_SKETCH_REQUESTS: Final = 10_000
# Part of the bound at which a timeline or a rehearsal of a closed loop plays.
_CLOSED_LOOP_PART: Final = 0.5

# Key of a failure in `[[faults.events]]` by the value of the form.
_FAILING: Final = {"host": "hosts", "OSD": "osds", "site": "sites"}
# Timeline of a failure: the failure, a short time until the OSD is marked out, and the end [s].
_FAILS_S: Final = 3.0
_OUT_S: Final = 3.0
_END_S: Final = 20.0
#: Requests of a timeline or of a second of a rehearsal, at most. Above, the load is scaled down.
_TIMELINE_REQUESTS_MAX: Final = 20_000
_REHEARSAL_PER_S_MAX: Final = 500.0
#: Data of a timeline, enough to see its recovery [B], and objects in buckets at most [count].
_TIMELINE_IMAGES_BYTES: Final = 16 << 30
_TIMELINE_OBJECTS_MAX: Final = 20_000


def at_the_load(
    scenario: Scenario, settings: Settings, should_stop: ShouldStop
) -> Items:
    """Run the load of the form with several seeds."""
    for number in range(SEEDS):
        seeded = scenario.seeded(number)
        for _, result in run_cells(seeded, "compiled"):
            yield {key: getattr(result.row, key) for key in _COLUMNS}
        if should_stop():
            return


def load_curve(
    scenario: Scenario, settings: Settings, should_stop: ShouldStop
) -> Items:
    """Simulate latency over throughput, and yield each point with the saturation and knee known then.

    A few points by single runs come first, because a large cluster takes long to saturate.

    Raises
    ------
    ValueError
        If time runs out before the curve is complete.
    """
    latest_s = time.monotonic() + CURVE_S_MAX
    ran_out = False

    def must_stop() -> bool:
        nonlocal ran_out
        ran_out = time.monotonic() > latest_s
        return ran_out or should_stop()

    yield from _sketch_curve(scenario, should_stop)
    few = CurveSettings(replications=_REPLICATIONS, points_max=_POINTS_MAX)
    builders = curve_builders(scenario, few)
    for curve, point in new_points(builders, jobs=1, should_stop=must_stop):
        knee = curve.knee_iops
        yield CurvePoint(
            offered_iops=point.offered_iops,
            iops=point.iops.mean,
            p50_ns=point.latency_p50_ns.mean,
            p99_ns=point.latency_p99_ns.mean,
            is_steady=point.is_steady,
            is_past_saturation=point.is_past_saturation,
            saturation_iops=curve.saturation_iops.mean,
            limited_by=curve.limited_by,
            knee_iops=knee.mean if knee else None,
        ).to_json()

    if ran_out:
        raise ValueError(
            f"not complete: stopped after {CURVE_S_MAX:g} s; stripesim load simulates all rates"
        )


def _sketch_curve(scenario: Scenario, should_stop: ShouldStop) -> Items:
    """Yield points at parts of the lowest bound, each by one short run, up to one that is not steady."""
    (cell,) = cells(scenario)
    bounds = bounds_of(scenario, scenario.schemes[0])
    if not bounds:
        return
    for part in SKETCHED_PARTS:
        if should_stop():
            return
        run = RateRun(
            scenario=scenario,
            cell=cell,
            rates_per_s=(part * bounds[0].iops,),
            in_flight=0,
            requests=_SKETCH_REQUESTS,
            engine="compiled",
        )
        measured = measure_rate(run)
        point = CurvePoint(
            offered_iops=measured.offered_iops,
            iops=measured.iops,
            p50_ns=measured.latency_p50_ns,
            p99_ns=measured.latency_p99_ns,
            is_steady=measured.growth <= GROWTH_MAX,
        )
        yield point.to_json()
        if not point.is_steady:
            return


def failure(scenario: Scenario, settings: Settings, should_stop: ShouldStop) -> Items:
    """Lose a host, an OSD or a site under load, and yield the timeline of clients and placement groups."""
    rate_per_s = min(_rate_per_s(scenario), _TIMELINE_REQUESTS_MAX / _END_S)
    lost = {_FAILING[settings.failure]: [0]}
    keys = _with_load(scenario, rate_per_s, _END_S)
    load = scenario.workload
    if load.is_s3:
        objects = _TIMELINE_IMAGES_BYTES / load.mean_object_bytes
        keys["workload"]["objects"] = min(_TIMELINE_OBJECTS_MAX, round(objects))
    else:
        keys["workload"]["image_bytes"] = _TIMELINE_IMAGES_BYTES // load.clients
    # The timeline shows a small pool, whose size the page states.
    keys["cluster"].pop("stored_bytes", None)
    keys["faults"] = {
        "down_out_interval_s": _OUT_S,
        "events": [{**lost, "at_s": _FAILS_S, "kind": "process"}],
    }
    for _, result in run_cells(_rebuilt(scenario, keys), "compiled"):
        timeline = result.timeline
        numbers = result.row.faults
        assert timeline is not None
        assert numbers is not None
        states = timeline["pg_states"]
        clean = states["active+clean"]
        # All are clean at first, those of bucket indexes too.
        pgs = clean[0]
        yield {
            "time_s": timeline["foreground"]["time_s"],
            "p99_ns": timeline["foreground"]["latency_p99_ns"],
            "state_s": states["time_s"],
            "not_clean": [1 - count / pgs for count in clean],
            "events": [
                (event["time_s"], event["what"]) for event in timeline["events"]
            ],
            "end_s": timeline["end_s"],
            "rate_per_s": rate_per_s,
            "clean_after_s": numbers.failure_to_clean_s,
            "blocked": sum(phase.blocked for phase in numbers.phases.values()),
        }


def added_hosts(
    scenario: Scenario, settings: Settings, should_stop: ShouldStop
) -> Items:
    """Rehearse adding hosts, and yield the row of the change."""
    rate_per_s = min(_rate_per_s(scenario), _REHEARSAL_PER_S_MAX)
    keys = _with_load(scenario, rate_per_s, duration_s=1.0)
    keys["changes"] = [{"kind": "add", "hosts": settings.added_hosts}]
    keys["cluster"]["stored_bytes"] = round(settings.stored_bytes) or None
    if scenario.cluster.op_queue == "mclock_scheduler":
        # A rehearsal without a profile plays all of them.
        default = mclock_defaults(scenario.generation).profile
        keys["cluster"].setdefault("mclock_profile", default)
    changed = _rebuilt(scenario, keys)
    document = rehearse(changed)
    yield {
        **document["changes"][0],
        "rate_per_s": rate_per_s,
        "warnings": document["warnings"],
    }


EXPERIMENTS: Final[Mapping[str, Callable[[Scenario, Settings, ShouldStop], Items]]] = {
    "curve": load_curve,
    "load": at_the_load,
    "failure": failure,
    "added": added_hosts,
}


def run_experiment(
    name: str,
    scenario: Scenario,
    settings: Settings,
    *,
    should_stop: ShouldStop,
) -> Items:
    """Run an experiment by its name."""
    return EXPERIMENTS[name](scenario, settings, should_stop)


def warm_up() -> None:
    """Load what the experiments need, so that the next one starts immediately."""
    load = load_scenario("quickstart", sets=("workload.requests=100",))
    # Its numbers are not shown.
    for _ in run_cells(load, "compiled", unchecked=True):
        pass


def _rate_per_s(scenario: Scenario) -> float:
    """Return the rate of the load; of a closed loop, a part of the lowest bound."""
    stated = scenario.workload.rate_per_s
    if stated is not None:
        return stated
    bounds = bounds_of(scenario, scenario.schemes[0])
    # Without a bound the caller accepts what it can play.
    return _CLOSED_LOOP_PART * bounds[0].iops if bounds else float("inf")


def _with_load(
    scenario: Scenario, rate_per_s: float, duration_s: float
) -> dict[str, Any]:
    """Return the keys of a scenario with Poisson arrivals for some time."""
    keys = scenario.model_dump(mode="json", exclude_unset=True)
    load = keys["workload"]
    for key in ("requests", "queue_depth"):
        load.pop(key, None)
    kind = "s3" if scenario.workload.is_s3 else "open"
    load |= {"kind": kind, "rate_per_s": rate_per_s, "duration_s": duration_s}
    return keys


def _rebuilt(scenario: Scenario, keys: Mapping[str, Any]) -> Scenario:
    """Validate changed keys like a file."""
    return scenario_from(keys, label=scenario.name, base_dir=scenario.resolve(""))
