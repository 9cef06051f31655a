"""Answer a scenario's `[durability]`: build the systems, choose the methods, assemble the document."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS, RecoveryModel
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.files import cached_by_content
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import made_from
from stripesim.scenarios.planning.capacity import drives_of
from stripesim.scenarios.planning.rebuild import idle_rebuild
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec
from stripesim.sim.durability.assess import (
    METHODS,
    Method,
    Spread,
    applicable,
    assess,
    recommended_method,
    unsuited,
    why_not,
)
from stripesim.sim.durability.splitting import BATCHES, WALKS
from stripesim.sim.durability.system import (
    YEAR_S,
    Burst,
    DriveRepair,
    Ints,
    Lifetime,
    System,
    code_of,
)


def answer(
    scenario: Scenario,
    method: Method | Literal["all"] = "all",
    *,
    walks: int = WALKS,
    spread: Spread | None = None,
    progress: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Compute the durability of each scheme of a scenario."""
    rows = []
    skipped = []
    recommended: dict[str, dict[str, str]] = {}
    defaults = _defaults(scenario)
    for scheme in scenario.schemes:
        system = system_of(scenario, scheme)
        chosen: Sequence[Method] = (method,) if method != "all" else _suited(system)
        if chosen:
            recommended[scheme] = recommended_method(system)._asdict()
        for name in METHODS:
            reason = why_not(system, name)
            if name in chosen and reason is not None:
                got = f"one that method {name} cannot answer ({scheme}: {reason})"
                raise scenario.problem(
                    "durability", got, f"one of {', '.join(applicable(system))}"
                )
            reason = reason or unsuited(system, name)
            is_told = name in ("markov", "splitting")
            if method == "all" and reason is not None and is_told:
                skipped.append(f"{scheme}: {name}: {reason}")
        for name in chosen:
            row = assess(
                system,
                name,
                seed=scenario.seed,
                walks=walks,
                spread=spread,
                progress=partial(_tell, progress, f"{scheme} {name}"),
            )
            if name != "burst":
                row["assumptions"] += defaults
            rows.append(row)
            progress(f"{scheme} {name}")
    provenance = made_from(scenario, method=method, batches=BATCHES, walks=walks)
    return {
        "rows": rows,
        "recommended": recommended,
        "skipped": skipped,
        "provenance": provenance,
    }


def _tell(progress: Callable[[str], None], what: str, effort: str) -> None:
    """Report the effort of an answer that is under way."""
    progress(f"{what}: {effort}")


def _suited(system: System) -> list[Method]:
    """List the methods that can answer for a system of this size."""
    return [method for method in applicable(system) if unsuited(system, method) is None]


def detection_s(scenario: Scenario) -> float:
    """Return the time from a failure to the start of its repair [s], by default Ceph's."""
    spec = scenario.durability
    if spec is not None and spec.detection_s is not None:
        return spec.detection_s
    return _until_out_s(limits_of(scenario, rotational=False))


def _until_out_s(model: RecoveryModel) -> float:
    """Return the time until a silent OSD is reported, marked down, and marked out [s]."""
    return (model.heartbeat_grace_ns + model.down_out_interval_ns) / SECOND_NS


#: Time from a failure to the start of its repair with Ceph's defaults [s]: 20 s of grace, and 600 s until
#: out.
DETECTION_S: Final = _until_out_s(recovery_model())


def _defaults(scenario: Scenario) -> list[str]:
    """List the defaults of `[durability]` that come from Ceph."""
    spec = scenario.durability
    if spec is None or spec.detection_s is not None:
        return []
    return [
        f"Repair starts {detection_s(scenario):g} s after a failure, Ceph's heartbeat grace plus down-out "
        "interval (durability.detection_s changes this)."
    ]


def system_of(scenario: Scenario, scheme: str) -> System:
    """Build the system that a scenario describes, for one of its schemes."""
    spec = scenario.durability
    if spec is None:
        raise scenario.problem("durability", "nothing", "a table [durability]")
    groups = None
    drives = spec.drives or 0
    drive_bytes = spec.drive_bytes or 0.0
    units: dict[str, Ints] = {}
    if spec.placement == "crush":
        models = build_models(scenario)
        cluster = build_pool(scenario, parse_scheme(scheme), models).cluster
        groups = cluster.acting.astype(np.int32)
        drives = len(cluster.osd_hosts)
        units["host"] = cluster.osd_hosts.astype(np.int32)
        names = scenario.cluster.rack_names
        if names is not None and scenario.cluster.crush_map is None:
            _, racks = np.unique(names, return_inverse=True)
            units["rack"] = racks.astype(np.int32)[units["host"]]
        capacity = drives_of(scenario, models).osd_bytes
        if not spec.drive_bytes and capacity is None:
            wanted = "bytes: the device parameter set has no capacity"
            raise scenario.problem("durability.drive_bytes", "nothing", wanted)
        drive_bytes = float(spec.drive_bytes or capacity or 0.0)
    scrub_s = spec.scrub_interval_s or spec.horizon_s
    return System(
        code=code_of(scheme),
        placement=spec.placement,
        drives=drives,
        drive_bytes=drive_bytes,
        lifetime=lifetime_of(scenario, spec),
        age_s=spec.lifetime.age_s if spec.lifetime else 0.0,
        repair=_repair(scenario, spec, scheme),
        horizon_s=spec.horizon_s,
        # Errors arise at a constant rate between scrubs, so half an interval's errors are present on
        # average.
        sector_errors=spec.sector_error_rate * scrub_s / 2 / YEAR_S,
        bursts=tuple(
            Burst(
                b.name, b.unit, b.units, b.per_year / YEAR_S, b.lost_fraction, b.down_s
            )
            for b in spec.bursts
        ),
        groups=groups,
        units=units,
        stripes=spec.stripes,
        min_shards=spec.min_size,
        spares=spec.spare_drives,
        replacement_s=spec.replacement_s,
    )


def _repair(scenario: Scenario, spec: DurabilitySpec, scheme: str) -> DriveRepair:
    fixed = spec.placement != "clustered"
    if spec.repair_time is not None:
        fixed = spec.repair_time == "fixed"
    pace = spec.repair_bytes_per_s
    policy = spec.repair
    if policy == "simulated":
        rebuild = idle_rebuild(scenario, scheme)
        pace = rebuild.bytes_per_s
        policy = "parallel"
        if pace is None:
            got = f"no rebuild rate for {scheme} ({rebuild.reason})"
            raise scenario.problem(
                "durability.repair", got, "durability.repair_bytes_per_s"
            )
    assert pace is not None, "the rules require it"
    return DriveRepair(
        bytes_per_s=pace,
        policy=policy,
        detection_s=detection_s(scenario),
        fixed=fixed,
        prioritised=spec.prioritised,
        progress=spec.rebuilt_is_safe,
    )


def lifetime_of(scenario: Scenario, spec: DurabilitySpec) -> Lifetime:
    """Return the lifetimes of drives: from the rate, the distribution, or a fit to the trace."""
    if spec.afr is not None:
        return Lifetime.exponential(spec.afr)
    ageing = spec.lifetime
    assert ageing is not None, "the rules require afr or lifetime"
    until_s = ageing.age_s + spec.horizon_s
    if ageing.trace is not None:
        return _fitted(
            str(scenario.resolve(ageing.trace)),
            ageing.trace_format,
            ageing.pieces,
            until_s,
        )
    if ageing.distribution == "piecewise":
        rates = tuple(
            Lifetime.exponential(afr).hazards_per_s[0] if afr else 0.0
            for afr in ageing.afrs
        )
        return Lifetime(ageing.ages_s, rates)
    assert ageing.scale_s is not None
    return Lifetime.weibull(ageing.scale_s, ageing.shape or 1.0, until_s)


@cached_by_content(maxsize=8)
def _fitted(
    path: str, trace_format: str | None, pieces: int | None, until_s: float
) -> Lifetime:
    """Fit a piecewise hazard, or the better of exponential and Weibull, to a failure trace."""
    from stripesim.calibration.survival import (
        fit_lifetimes,
        lifetimes_of,
        piecewise_hazard,
    )
    from stripesim.traces import read_failures

    try:
        lived = lifetimes_of(read_failures(path, format=trace_format), "up")
        if pieces is not None:
            return Lifetime(*piecewise_hazard(lived, pieces))
        fits = {fit.name: fit for fit in fit_lifetimes(lived)}
    except (ValueError, OSError) as error:
        raise ValueError(f"durability.lifetime.trace: {error}") from error
    best = min((fits["exponential"], fits["weibull"]), key=lambda fit: fit.aic)
    return Lifetime.weibull(
        best.parameters["scale_s"], best.parameters.get("shape", 1.0), until_s
    )
