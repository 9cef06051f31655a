"""Plan the faults of a scenario: which units fail when, and the limits of recovery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stripesim.models.generations import recovery_model
from stripesim.models.placement import OsdWeights
from stripesim.models.problems import ScenarioError, problems_at
from stripesim.models.recovery import RecoveryModel
from stripesim.scenarios.cells.changes import planned_changes
from stripesim.scenarios.cells.files import cached_by_content
from stripesim.scenarios.cells.models import (
    build_models,
    device_set,
    recovery_device,
)
from stripesim.scenarios.cells.placement import domains_of_hosts, padded_osd_hosts
from stripesim.scenarios.schema.geometry import (
    OTHER_OBJECTS_MAX,
    loads_with_keys,
    stored_objects_beyond,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import FaultsSpec, LifetimeSpec, ReplaySpec
from stripesim.scenarios.schema.toml import KeyPath
from stripesim.scenarios.schema.topology import Topology, nanoseconds
from stripesim.scenarios.schema.units import duration_text, number_text
from stripesim.sim.ceph.failures import Corruption, Failure, FaultPlan
from stripesim.sim.ceph.failures.plan import FailureKind, FaultProblem
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.result_row import ResultRow

#: Most failures drawn for one run; each is an event with its own repairs.
FAILURES_MAX = 1_000_000


def limits_of(scenario: Scenario) -> RecoveryModel:
    """Return the constants of recovery: those of the scenario, the drive, or the generation."""
    limits = scenario.faults or scenario.repair
    queue = scenario.cluster.op_queue
    model = recovery_model(
        scenario.generation,
        device=recovery_device(scenario),
        op_queue=None if queue == "fifo" else queue,
    )
    model = device_set(scenario).replaced(model, "recovery")
    stated = {}
    for name in model.provenance:
        # Scenarios state times in seconds, and counts without the suffix.
        is_time = name.endswith("_ns")
        key = (
            f"{name.removesuffix('_ns')}_s" if is_time else name.removesuffix("_count")
        )
        if (value := getattr(limits, key, None)) is not None:
            stated[name] = nanoseconds(value) if is_time else value
    sync_ms = scenario.cluster.recovery_sync_ms
    if sync_ms is not None:
        stated["recovery_sync_ns"] = nanoseconds(sync_ms / 1e3)
    return model.given(**stated)


def recovery_sync_words(scenario: Scenario) -> str:
    """Describe how long a sync of the log takes while objects recover, and the source of that time."""
    models = build_models(scenario)
    limits = limits_of(scenario)
    key = "cluster.recovery_sync_ms"
    sync_ns: float = limits.recovery_sync_ns
    source = f"counted for the drive {scenario.cluster.drive} ({key} changes this)"
    if scenario.cluster.recovery_sync_ms is not None:
        source = f"as {key} states"
    if not sync_ns:
        sync_ns = models.ssd.sync_ns(models.store.metadata_bytes)
        source = (
            "the write and flush of the drive alone; a busy drive may take many times as long, so count it "
            f"on your cluster and state {key}"
        )
    return f"each object that recovers waits {duration_text(sync_ns / 1e9)} for a sync of the log, {source}"


def repair_plan(
    scenario: Scenario,
    up_sets: Callable[[OsdWeights], IntArray],
) -> FaultPlan:
    """Return the plan of a scenario with a table ``[repair]``, which loses OSDs at the start."""
    assert scenario.repair is not None
    return FaultPlan(
        lost_osds=scenario.repair.lost_osds,
        missing_osds=scenario.missing_osds,
        up_sets=up_sets,
        **_objects_of_images(scenario),
        model=limits_of(scenario),
        seed=scenario.seed,
    )


def plan_of(
    scenario: Scenario,
    osd_hosts: IntArray,
    up_sets: Callable[[OsdWeights], IntArray],
) -> FaultPlan:
    """Return the plan of a scenario with failures or planned changes."""
    faults = scenario.faults or FaultsSpec()
    topology = _topology(scenario, osd_hosts)
    failures = [
        topology.failure(event) for _, event in faults.numbered_events(slow=False)
    ]
    slow_drives = [
        topology.slow_drives(event) for _, event in faults.numbered_events(slow=True)
    ]
    if faults.drawn is not None:
        failures += drawn_failures(scenario, topology)
    if faults.replay is not None:
        failures += replayed_failures(scenario, topology)
    plan = FaultPlan(
        failures=tuple(failures),
        slow_drives=tuple(slow_drives),
        corruptions=tuple(
            Corruption(
                osd=one.osd, time_ns=nanoseconds(one.at_s), shards_count=one.shards
            )
            for one in faults.corruptions
        ),
        changes=planned_changes(scenario, osd_hosts),
        up_sets=up_sets,
        **_objects_of_images(scenario),
        model=limits_of(scenario),
        osd_racks=topology.osd_sites if topology.racks is None else topology.osd_racks,
        stretch_sites=topology.osd_sites if scenario.cluster.stretch else None,
        seed=scenario.seed,
        object_writes_count=faults.object_writes,
        # Scrubs repeat without end, so the run needs a duration.
        scrubs=faults.scrub_interval_s is not None and scenario.duration_s is not None,
        series_ns=nanoseconds(faults.series_s),
    )
    for problem in plan.problems(osd_hosts):
        key = _key_of(faults, problem, len(failures))
        raise ScenarioError(
            scenario.located(*key, got=problem.got, wanted=problem.wanted)
        )
    return plan


def _topology(scenario: Scenario, osd_hosts: IntArray) -> Topology:
    """Return the racks and sites of hosts, those of the scenario's counts alone."""
    if scenario.cluster.crush_map is not None:
        return Topology(osd_hosts, None)
    racks, sites = (domains_of_hosts(scenario, kind) for kind in ("rack", "site"))
    return Topology(osd_hosts, racks, sites)


def _objects_of_images(scenario: Scenario) -> dict[str, Any]:
    """Return the fields of a plan that state the objects of the pool at the start of the run.

    The pool holds `cluster.stored_bytes`, and images are a part of them. Of the other part at most
    `OTHER_OBJECTS_MAX` objects are simulated.
    """
    object_bytes = scenario.cluster.object_bytes
    images_count = 1
    image_bytes = scenario.images_bytes
    if scenario.workload.kind == "trace":
        from stripesim.scenarios.cells.replay import images_of

        images_count, image_bytes = images_of(scenario)
    image_objects = -(-image_bytes // object_bytes)
    images_bytes = images_count * image_objects * object_bytes
    other_objects = stored_objects_beyond(scenario, images_bytes)
    simulated = min(other_objects, OTHER_OBJECTS_MAX)
    prefilled = scenario.workload.image == "prefilled"
    of_images = images_count * image_objects if prefilled else 0
    ratio = 1.0
    if simulated < other_objects:
        ratio = (of_images + other_objects) / (of_images + simulated)
    return {
        "image_objects": image_objects,
        "images_count": images_count,
        "other_objects_count": simulated,
        "objects_ratio": ratio,
        "prefilled": prefilled,
    }


def objects_of_buckets(
    scenario: Scenario, stored: int, object_bytes: int, groups: int
) -> dict[str, Any]:
    """Return the fields of a plan that state the RADOS objects of buckets at the start of the run.

    Parameters
    ----------
    scenario
        The scenario. With `cluster.stored_bytes` the pool holds further objects, up to those bytes.
    stored, object_bytes
        RADOS objects of the load's buckets [count], and their mean size [B].
    groups
        Placement groups of the pool, which hold equally many.
    """
    known_bytes = stored * object_bytes
    all_objects = stored + stored_objects_beyond(scenario, known_bytes, object_bytes)
    simulated = min(all_objects, OTHER_OBJECTS_MAX)
    numbers = np.arange(groups, dtype=np.int64)
    counts = simulated // groups + (numbers < simulated % groups)
    return {
        "group_objects": tuple(counts.tolist()),
        "objects_ratio": all_objects / simulated if simulated else 1.0,
    }


def check_clients_meet_faults(
    scenario: Scenario, requested_until: Callable[[int], ClientRequests]
) -> None:
    """Refuse a run whose requests all end before the first fault.

    Parameters
    ----------
    scenario
        The scenario.
    requested_until
        Runs the workload without faults for a simulated time [ns] and returns its requests.

    Raises
    ------
    ValueError
        If no request is left at the first fault; the message names the keys to change.
    """
    first = _first_fault(scenario)
    if first is None or scenario.duration_s is not None:
        return
    at_s, key = first
    requested = requested_until(nanoseconds(at_s))
    if not requested.done.all() or len(requested.done) < _requests_count(scenario):
        return
    last_s = float(requested.completed_ns.max(initial=0)) / 1e9
    load_key, load = loads_with_keys(scenario)[0]
    got = f"{len(requested.done):,} requests, which are done after {last_s:.3g} s"
    wanted = f"requests at the first fault, {key}"
    if load.kind == "trace":
        raise scenario.problem(f"{load_key}.trace", got, f"{wanted}: an earlier fault")
    wanted += ": workload.duration_s instead, or a fault at 0 s for a recovery without clients"
    raise scenario.problem(f"{load_key}.requests", got, wanted)


def _first_fault(scenario: Scenario) -> tuple[float, str] | None:
    """Return the time of the first fault [s] and its key, or None without faults at known times."""
    faults = scenario.faults
    if faults is None:
        return None
    times = [
        (event.at_s, f"faults.events.{number}.at_s = {event.at_s:g}")
        for number, event in enumerate(faults.events)
    ]
    times += [
        (corruption.at_s, f"faults.corruptions.{number}.at_s = {corruption.at_s:g}")
        for number, corruption in enumerate(faults.corruptions)
    ]
    if faults.replay is not None:
        topology = _topology(scenario, padded_osd_hosts(scenario))
        first = min(one.time_ns for one in replayed_failures(scenario, topology))
        times.append((first / 1e9, f"{first / 1e9:g} s into faults.replay"))
    return min(times, default=None)


def _requests_count(scenario: Scenario) -> int:
    """Return the number of requests of a scenario without a duration [count]."""
    if scenario.workload.kind == "trace":
        from stripesim.scenarios.cells.replay import replay_of

        return len(replay_of(scenario))
    return sum(load.requests or 0 for load in scenario.loads)


def recovery_warnings(scenario: Scenario, scheme: str, row: ResultRow) -> list[str]:
    """Warn of a recovery that is simulated in part, or that continues after the end of the run."""
    faults = row.faults
    if faults is None:
        return []
    whole_note = ""
    if faults.recovery_whole_s is not None:
        whole_text = f"about {duration_text(faults.recovery_whole_s)} to recover"
        if not faults.clean_at_end:
            whole_text = (
                f"at least {duration_text(faults.recovery_whole_s)} to recover, and far more if few groups "
                "hold the rest"
            )
        whole_note = f"; all of it takes {whole_text}"
    warnings = []
    if faults.objects_ratio > 1:
        share = number_text(100 / faults.objects_ratio)
        warnings.append(
            f"{scheme}: bytes and times of the recovery are those of {share} % of the stored data{whole_note}"
        )
    elif not faults.clean_at_end and scenario.duration_s is not None:
        warnings.append(
            f"{scheme}: workload.duration_s ends the run before the cluster is clean{whole_note}"
        )
    return warnings


def _key_of(faults: FaultsSpec, problem: FaultProblem, failures: int) -> KeyPath:
    """Return the scenario key of a problem of a plan with a number of failures."""
    slow = faults.numbered_events(slow=True)
    first_corruption = failures + len(slow)
    first_change = first_corruption + len(faults.corruptions)
    if problem.event >= first_change:
        return ("changes", problem.event - first_change)
    if problem.event >= first_corruption:
        return ("faults", "corruptions", problem.event - first_corruption, "osd")
    if problem.event >= failures:
        number, _ = slow[problem.event - failures]
    elif faults.drawn is not None:
        return ("faults", "drawn")
    elif faults.replay is not None:
        return ("faults", "replay")
    else:
        number, _ = faults.numbered_events(slow=False)[problem.event]
    where: KeyPath = ("faults", "events", number)
    return (*where, problem.key) if problem.key else where


# Failures drawn from lifetimes.


def drawn_failures(scenario: Scenario, topology: Topology) -> list[Failure]:
    """Draw the failures of every OSD or host until the end of the run, from one random stream per unit."""
    assert scenario.faults is not None
    drawn = scenario.faults.drawn
    horizon_s = scenario.duration_s
    assert drawn is not None
    assert horizon_s is not None, "the schema requires workload.duration_s"
    lifetime = drawn.lifetime
    downtime = drawn.downtime
    if drawn.trace is not None:
        lifetime, downtime = _fitted(
            str(scenario.resolve(drawn.trace)), drawn.trace_format
        )
    assert lifetime is not None
    failures: list[Failure] = []
    for unit in range(topology.count(drawn.unit)):
        draw = np.random.default_rng([scenario.seed, 9, unit])
        at_s = _draw(lifetime, draw) / drawn.speed
        while at_s < horizon_s:
            if len(failures) >= FAILURES_MAX:
                got = f"more than {FAILURES_MAX:,} failures before {at_s:g} of {horizon_s:g} s"
                wanted = "fewer: longer lifetimes, or a smaller faults.drawn.speed"
                raise scenario.problem("faults.drawn.lifetime", got, wanted)
            back_s = (
                None if downtime is None else at_s + _draw(downtime, draw) / drawn.speed
            )
            failures.append(
                _of_unit(topology, drawn.unit, unit, at_s, back_s, drawn.kind)
            )
            if back_s is None:
                break
            at_s = back_s + max(1e-9, _draw(lifetime, draw) / drawn.speed)
    return sorted(failures, key=lambda failure: (failure.time_ns, failure.osds))


def _of_unit(
    topology: Topology,
    unit: str,
    number: int,
    at_s: float,
    back_s: float | None,
    kind: FailureKind,
) -> Failure:
    osds: tuple[int, ...] = (number,)
    hosts: tuple[int, ...] = ()
    if unit == "host":
        osds = tuple(topology.osds_of_hosts([number]))
        hosts = (number,)
    start_ns = nanoseconds(at_s)
    back_ns = None
    if back_s is not None:
        back_ns = max(start_ns + 1, nanoseconds(back_s))
    return Failure(osds=osds, hosts=hosts, time_ns=start_ns, back_ns=back_ns, kind=kind)


def _draw(lifetime: LifetimeSpec, draw: np.random.Generator) -> float:
    # The schema requires the parameters of each distribution.
    scale = lifetime.scale_s or 0.0
    shape = lifetime.shape or 0.0
    if lifetime.distribution == "exponential":
        return float(draw.exponential(scale))
    if lifetime.distribution == "weibull":
        return float(scale * draw.weibull(shape))
    return float(
        draw.lognormal(np.log(lifetime.median_s or 0.0), lifetime.sigma or 0.0)
    )


@cached_by_content(maxsize=4)
def _fitted(path: str, trace_format: str | None) -> list[LifetimeSpec]:
    """Fit distributions of time up and time down to a trace."""
    from stripesim.calibration.survival import fit_survival

    # Readers of traces take long to load.
    from stripesim.traces import read_failures

    try:
        trace = read_failures(path, format=trace_format)
        best = [fit_survival(trace, state).fits[0] for state in ("up", "down")]
    except (ValueError, OSError) as error:
        raise ScenarioError(*problems_at("faults.drawn.trace", error)) from error
    return [
        LifetimeSpec.model_validate({"distribution": fit.name, **fit.parameters})
        for fit in best
    ]


# Failures replayed from a trace.


def replayed_failures(scenario: Scenario, topology: Topology) -> list[Failure]:
    """Return the outages in a trace after the chosen start, with times scaled.

    Raises
    ------
    ScenarioError
        If the trace fails more units than the cluster has, or none during the run.
    """
    assert scenario.faults is not None
    replayed = scenario.faults.replay
    assert replayed is not None
    outages = _outages(
        str(scenario.resolve(replayed.trace)), replayed.trace_format, replayed.unit
    )
    units = topology.count(replayed.unit)
    numbers = {
        name: number
        for number, name in enumerate(dict.fromkeys(name for name, _, _ in outages))
    }
    if len(numbers) > units:
        names = {"osd": "components", "host": "nodes"}[replayed.unit]
        got = f"{len(numbers)} failing {names} in {replayed.trace}"
        wanted = f"at most the cluster's {units} {replayed.unit}s"
        raise scenario.problem("faults.replay.trace", got, wanted)
    failures = []
    for name, start_s, stop_s in outages:
        at_s = max(0.0, (start_s - replayed.from_s) / replayed.speed)
        back_s = None if stop_s is None else (stop_s - replayed.from_s) / replayed.speed
        if back_s is not None and nanoseconds(back_s) <= nanoseconds(at_s):
            continue
        if scenario.duration_s is None or at_s < scenario.duration_s:
            failures.append(
                _of_unit(
                    topology, replayed.unit, numbers[name], at_s, back_s, replayed.kind
                )
            )
    if not failures:
        raise _no_failure(scenario, replayed, [start_s for _, start_s, _ in outages])
    return failures


def _no_failure(
    scenario: Scenario, replayed: ReplaySpec, starts_s: list[float]
) -> ScenarioError:
    """Return the error of a replay without a failure, given when the outages of its trace start [s]."""
    got = f"no failure from {replayed.from_s:g} s of {replayed.trace}"
    wanted = "a trace with failures"
    if starts_s:
        wanted = f"one: the failures of the trace start {starts_s[0]:g} s to {starts_s[-1]:g} s after it"
    if scenario.duration_s is not None:
        seen_s = scenario.duration_s * replayed.speed
        got += f" on, of which the run sees {seen_s:g} s"
    return scenario.problem("faults.replay.from_s", got, wanted)


@cached_by_content(maxsize=4)
def _outages(
    path: str, trace_format: str | None, unit: str
) -> list[tuple[str, float, float | None]]:
    """Read the outages of components (unit osd) or nodes (host), merged where they overlap or touch.

    Times are in seconds after the trace's start. A component without a node is a node of its own.
    """
    # Readers of traces take long to load.
    from stripesim.traces import read_failures
    from stripesim.traces.failures.columns import outages_of

    try:
        trace = read_failures(path, format=trace_format)
    except (ValueError, OSError) as error:
        raise ScenarioError(*problems_at("faults.replay.trace", error)) from error
    merged: dict[str, list[tuple[float, float | None]]] = {}
    for component, node, first_s, stop_s in outages_of(trace).iter_rows():
        unit_name = component if unit == "osd" or node is None else node
        spans = merged.setdefault(unit_name, [])
        if not spans or not _reaches(spans[-1], first_s):
            spans.append((first_s, stop_s))
            continue
        begin_s, last_s = spans[-1]
        end_s = None
        if last_s is not None and stop_s is not None:
            end_s = max(last_s, stop_s)
        spans[-1] = (begin_s, end_s)
    outages = [
        (unit_name, *span) for unit_name, spans in merged.items() for span in spans
    ]
    return sorted(outages, key=lambda outage: outage[1])


def _reaches(span: tuple[float, float | None], time_s: float) -> bool:
    """Return True if an outage lasts until a time, or has no end."""
    _, end_s = span
    return end_s is None or time_s <= end_s
