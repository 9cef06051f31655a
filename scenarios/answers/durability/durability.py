"""Answer a scenario's `[durability]`: build the systems, choose the methods, assemble the document."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.problems import AnswerError, Problem
from stripesim.models.recovery import SECOND_NS, RecoveryModel
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.files import cached_by_content
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import drive_reads, made_from, repair_warning
from stripesim.scenarios.cells.placement import (
    CRUSH_TYPES,
    crush_of,
    drive_bytes_of_hosts,
    hosts_of_osds_in,
)
from stripesim.scenarios.forms.capacity import (
    drives_of,
    stored_per_client_byte,
)
from stripesim.scenarios.forms.rebuild import (
    Rebuild,
    RebuildRate,
    groups_at_once,
    simulated_rate,
)
from stripesim.scenarios.schema.failure_checks import too_many_units
from stripesim.scenarios.schema.keys import OBJECT_BYTES
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec
from stripesim.scenarios.schema.units import bytes_text, duration_text, size_text
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.durability.assess import (
    METHODS,
    Method,
    applicable,
    assess,
    recommended_method,
    unsuited,
    why_not,
)
from stripesim.sim.durability.losses import inconsistency
from stripesim.sim.durability.splitting import BATCHES, WALKS, Spread
from stripesim.sim.durability.system import (
    YEAR_S,
    Burst,
    Code,
    DriveRepair,
    Ints,
    Lifetime,
    System,
    code_of,
    parity_note,
)
from stripesim.sim.observe.audit import audit_loss, collecting_refusals
from stripesim.sim.observe.progress import OnStep, silent

#: Fewest walks of each batch at every level.
WALKS_LEAST: Final = 10
#: Relative difference of two rates that is only rounding.
_SAME: Final = 1e-9


def estimate_durability(
    scenario: Scenario,
    method: Method | Literal["all"] = "all",
    *,
    walks: int = WALKS,
    spread: Spread | None = None,
    progress: OnStep = silent,
    unchecked: bool = False,
) -> dict[str, Any]:
    """Compute the durability of each scheme of a scenario.

    Rows that the audit refuses have no numbers, unless `unchecked`.

    Raises
    ------
    AnswerError
        If the method is unknown, or the walks are fewer than `WALKS_LEAST`.
    RefusedError
        If the audit refuses the simulated rebuild that rows would assume.
    """
    _check_asked(method, walks)
    rows: list[dict[str, Any]] = []
    refusals: list[str] = []
    skipped: list[str] = []
    recommended: dict[str, dict[str, str]] = {}
    steps = _MethodSteps(progress, len(scenario.schemes))
    for scheme in scenario.schemes:
        steps.tell(f"{scheme} rebuild")
        with collecting_refusals(unchecked) as of_rebuild:
            described = described_system(scenario, scheme)
        system = described.system
        methods = _suited(system) if method == "all" else [method]
        if methods:
            recommended[scheme] = recommended_method(system)._asdict()
        if method == "all":
            skipped += (f"{scheme}: {reason}" for reason in _skipped(system))
        else:
            _check_applicable(scenario, scheme, system, method)
        steps.add(len(methods))
        for name in methods:
            row = assess(
                system,
                name,
                seed=scenario.seed,
                walks=walks,
                spread=spread,
                progress=steps.within(f"{scheme} {name}"),
            )
            _add_rebuild(row, name, described)
            row["refused"] = next(iter(of_rebuild), audit_loss(inconsistency(row)))
            if row["refused"] is not None:
                refusals.append(f"{scheme} {name}: {row['refused']}")
                if not unchecked:
                    row |= dict.fromkeys(_ESTIMATED)
            rows.append(row)
            steps.tell(f"{scheme} {name}")
    provenance = made_from(scenario, method=method, batches=BATCHES, walks=walks)
    return {
        "rows": rows,
        "recommended": recommended,
        "skipped": skipped,
        "notes": parity_notes(scenario.schemes),
        "refusals": refusals,
        "provenance": provenance,
    }


def parity_notes(schemes: Sequence[str]) -> list[str]:
    """Name the codes that survive fewer losses than they have parities."""
    notes = (parity_note(code_of(scheme)) for scheme in schemes)
    return [note for note in notes if note is not None]


def _check_asked(method: str, walks: int) -> None:
    """Raise an error if a method or a number of walks cannot be."""
    known = (*METHODS, "all")
    if method not in known:
        wanted = f"one of {', '.join(known)}"
        raise AnswerError(Problem(place="--method", got=repr(method), wanted=wanted))
    if walks < WALKS_LEAST:
        wanted = f"at least {WALKS_LEAST}"
        raise AnswerError(Problem(place="--walks", got=repr(walks), wanted=wanted))


def _check_applicable(
    scenario: Scenario, scheme: str, system: System, method: Method
) -> None:
    """Raise an error if a method cannot answer for a system."""
    reason = why_not(system, method)
    if reason is None:
        return
    got = f"one that method {method} cannot answer ({scheme}: {reason})"
    raise scenario.problem("durability", got, f"one of {', '.join(applicable(system))}")


def _skipped(system: System) -> Iterator[str]:
    """Explain why methods `markov` and `splitting` are not used. Reasons of other methods are not shown."""
    for method in METHODS:
        reason = why_not(system, method) or unsuited(system, method)
        if reason is not None and method in ("markov", "splitting"):
            yield f"{method}: {reason}"


def _add_rebuild(
    row: dict[str, Any], method: Method, described: "DescribedSystem"
) -> None:
    """Name the rebuild that a row assumes. Bursts assume none."""
    if method == "burst":
        return
    row["rebuild_rate"] = described.rebuild_rate
    row["assumptions"] += described.notes


# Columns that a refused row withholds.
_ESTIMATED: Final = (
    "nines",
    "nines_low",
    "nines_high",
    "loss_probability",
    "mttdl_hours",
    "bytes_lost_given_loss",
    "bytes_lost_per_year",
    "unavailability",
    "dominant_path",
)


class _MethodSteps:
    """Count the steps of an answer: the rebuild of each scheme, its methods, and their rounds.

    Parameters
    ----------
    progress
        Told each step, and the number of all steps known by then.
    known
        Steps known from the start [count].
    """

    def __init__(self, progress: OnStep, known: int) -> None:
        self._progress = progress
        self._total = known
        # Steps left in the round of a method.
        self._round_left = 0

    def add(self, count: int) -> None:
        """Note that there are further steps."""
        self._total += count

    def tell(self, words: str) -> None:
        """Report a step. A round that ends before its last step has fewer steps than announced."""
        self._total -= self._round_left
        self._round_left = 0
        self._progress(words, self._total)

    def within(self, method: str) -> OnStep:
        """Return the progress of a method, whose rounds add their steps when they begin."""

        def report(words: str, total: int | None = None) -> None:
            if not self._round_left:
                self._round_left = total or 1
                self._total += self._round_left
            self._round_left -= 1
            self._progress(f"{method}: {words}", self._total)

        return report


def _suited(system: System) -> list[Method]:
    """List the methods that can answer for a system of this size."""
    return [method for method in applicable(system) if unsuited(system, method) is None]


def detection_s(scenario: Scenario) -> float:
    """Return the time from a failure to the start of its repair [s], by default Ceph's."""
    spec = scenario.durability
    if spec is not None and spec.detection_s is not None:
        return spec.detection_s
    return _until_out_s(limits_of(scenario))


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


class DescribedSystem(NamedTuple):
    """A system, the sources of its numbers in sentences, and the source of its rebuild rate."""

    system: System
    notes: list[str]
    rebuild_rate: str


class _Stored(NamedTuple):
    """Bytes that a drive holds, the client data in the pool if it is known, and their source."""

    drive_bytes: float
    client_bytes: float | None
    words: str
    others_bytes: float = 0.0  # of drive_bytes, those of other pools


class _PlacedData(NamedTuple):
    """The drives of a system, the data on them, and the bytes that a repair reads."""

    drives: int
    stored: _Stored
    reads: float  # Bytes that drives read for each byte rebuilt.
    units: dict[str, Ints]  # Number of the unit of each drive, by kind.
    groups: Ints | None = None  # OSDs of each placement group.
    groups_at_once: int = 1  # Placement groups of a drive that are rebuilt at a time.
    warning: str | None = None


def described_system(
    scenario: Scenario, scheme: str, rebuild: Rebuild | None = None
) -> DescribedSystem:
    """Build the system of one of a scenario's schemes, and name the sources of its numbers.

    A simulated `rebuild` of the cluster replaces the one that would be simulated.
    """
    spec = scenario.durability
    if spec is None:
        raise scenario.problem("durability", "nothing", "a table [durability]")
    code = code_of(scheme)
    if spec.placement == "crush":
        placed = _placed_by_crush(scenario, spec, scheme, code)
    else:
        stored = _Stored(spec.drive_bytes or 0.0, None, "")
        placed = _PlacedData(spec.drives or 0, stored, code.repair_reads, units={})
    stored = placed.stored
    rate = _rate(scenario, code, placed.reads, stored, rebuild)
    scrub_s = spec.scrub_interval_s or spec.horizon_s
    system = System(
        code=code,
        placement=spec.placement,
        drives=placed.drives,
        drive_bytes=stored.drive_bytes,
        stored_bytes=stored.client_bytes,
        lifetime=lifetime_of(scenario, spec),
        age_s=spec.lifetime.age_s if spec.lifetime else 0.0,
        repair=_repair(scenario, spec, rate, placed.groups_at_once),
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
        groups=placed.groups,
        units=placed.units,
        stripes=spec.stripes,
        min_shards=spec.min_size,
        is_stretched=scenario.cluster.stretch,
        spares=spec.spare_drives,
        replacement_s=spec.replacement_s,
    )
    notes = [*_defaults(scenario), f"Rebuild rate: {rate.words}."]
    if placed.groups is not None:
        notes.append(_turns_words(system, spec))
    notes += _mixed_drives(scenario)
    if stored.words:
        notes.insert(0, f"A drive holds {stored.words}.")
    if placed.warning is not None:
        notes.append(f"{placed.warning}.")
    return DescribedSystem(system, notes, rate.words)


def _placed_by_crush(
    scenario: Scenario, spec: DurabilitySpec, scheme: str, code: Code
) -> _PlacedData:
    """Place the pool of the scenario's cluster."""
    models = build_models(scenario)
    pool = build_pool(scenario, parse_scheme(scheme), models)
    cluster = pool.cluster
    drives = len(cluster.osd_hosts)
    hosts = cluster.osd_hosts.astype(np.int32)
    acting = cluster.acting
    stored = _stored(
        scenario,
        drives_of(scenario, models).osd_bytes,
        drives,
        stored_per_client_byte(scenario, pool),
    )
    reads = code.repair_reads
    warning = None
    if code.repair_reads < code.k:
        unit_bytes = scenario.cluster.stripe_unit_bytes
        block_bytes = models.store.min_alloc_bytes
        reads = drive_reads(pool.scheme, unit_bytes, block_bytes)
        warning = repair_warning(pool.scheme, unit_bytes, block_bytes)
    units = {"host": hosts, **_buckets(scenario, hosts)}
    _check_bursts(scenario, spec, {"drive": np.arange(drives, dtype=np.int32), **units})
    return _PlacedData(
        drives,
        stored,
        reads,
        units=units,
        groups=np.where(acting == NO_OSD, -1, acting).astype(np.int32),
        groups_at_once=spec.groups_at_once or groups_at_once(scenario, scheme),
        warning=warning,
    )


def _turns_words(system: System, spec: DurabilitySpec) -> str:
    """Return how many placement groups of a drive are rebuilt at a time, and why."""
    count = system.groups_at_once
    which = "One placement group of a drive is"
    if count > 1:
        which = f"{count} placement groups of a drive are"
    why = "as durability.groups_at_once states"
    if spec.groups_at_once is None:
        why = (
            "the mean that max_backfills lets primaries and targets rebuild "
            "(durability.groups_at_once changes this)"
        )
    return f"{which} rebuilt at a time, {why}: one group takes {duration_text(system.group_transfer_s)}."


def _mixed_drives(scenario: Scenario) -> list[str]:
    """Warn that drives of several sizes count as equal."""
    if isinstance(scenario.cluster.hosts, int):
        return []
    sizes = drive_bytes_of_hosts(scenario)
    if not sizes or min(sizes) == max(sizes):
        return []
    return [
        f"Drives of {bytes_text(min(sizes))} to {bytes_text(max(sizes))} count as equal ones, "
        "with one time to rebuild: a larger drive holds more and takes longer, a smaller one less."
    ]


def _check_bursts(
    scenario: Scenario, spec: DurabilitySpec, units: Mapping[str, Ints]
) -> None:
    """Check that no burst strikes more units than there are. Of clusters without a map, the schema does."""
    for index, burst in enumerate(spec.bursts):
        count = len(np.unique(units[burst.unit]))
        if burst.units > count:
            raise scenario.problem(
                f"durability.bursts.{index}.units", *too_many_units(burst, count)
            )


def _buckets(scenario: Scenario, osd_hosts: Ints) -> dict[str, Ints]:
    """Return the rack and the site of each drive, for a cluster that has them.

    Of a CRUSH map, only those that bursts strike.
    """
    cluster = scenario.cluster
    if cluster.crush_map is not None:
        assert scenario.durability is not None
        return {
            burst.unit: _buckets_of_map(scenario, index, burst.unit, len(osd_hosts))
            for index, burst in enumerate(scenario.durability.bursts)
            if burst.unit in ("rack", "site")
        }
    names = {"rack": cluster.rack_names, "site": cluster.site_names}
    numbers = {
        unit: np.unique(of_hosts, return_inverse=True)[1].astype(np.int32)
        for unit, of_hosts in names.items()
        if of_hosts is not None
    }
    return {unit: of_hosts[osd_hosts] for unit, of_hosts in numbers.items()}


def _buckets_of_map(scenario: Scenario, index: int, unit: str, drives: int) -> Ints:
    """Return the rack or site in the CRUSH map of each drive. Those of OSDs that are out do not count."""
    bucket_type = CRUSH_TYPES.get(unit, unit)
    names = crush_of(scenario).domains(bucket_type)
    osds_in = np.flatnonzero(hosts_of_osds_in(scenario)[:drives] >= 0).tolist()
    outside = [osd for osd in osds_in if osd not in names]
    if outside:
        got = f'"{unit}" with osd.{outside[0]} in no {bucket_type} of cluster.crush_map'
        wanted = f"a map with each OSD in a {bucket_type}"
        raise scenario.problem(f"durability.bursts.{index}.unit", got, wanted)
    numbers = {
        name: number
        for number, name in enumerate(dict.fromkeys(names[osd] for osd in osds_in))
    }
    of_osds = np.zeros(drives, dtype=np.int32)
    of_osds[osds_in] = [numbers[names[osd]] for osd in osds_in]
    return of_osds


def _stored(
    scenario: Scenario,
    osd_bytes: float | None,
    osds: int,
    per_client_byte: float,
) -> _Stored:
    """Return the bytes on an OSD: as stated, or as the cluster holds now, or else all that fit."""
    spec = scenario.durability
    assert spec is not None
    cluster = scenario.cluster
    client_bytes = None
    if cluster.stored_bytes:
        client_bytes = float(cluster.stored_bytes)

    def held(drive_bytes: float, source: str) -> _Stored:
        of_drive = ""
        if osd_bytes:
            of_drive = f" of its {bytes_text(osd_bytes)}"
        if osd_bytes and drive_bytes > osd_bytes:
            of_drive = f" (more than the {bytes_text(osd_bytes)} of {cluster.drive})"
        source_text = f"{bytes_text(drive_bytes)}{of_drive}, {source}"
        return _Stored(drive_bytes, client_bytes, source_text)

    if spec.drive_bytes:
        return held(float(spec.drive_bytes), "as durability.drive_bytes states")
    is_in = hosts_of_osds_in(scenario)[:osds] >= 0
    even_bytes = None
    if client_bytes is not None:
        even_bytes = client_bytes * per_client_byte / int(is_in.sum())
    if len(cluster.used_bytes) >= osds:
        used_bytes = float(np.mean(np.array(cluster.used_bytes[:osds])[is_in]))
        if used_bytes:
            stored = held(used_bytes, "the mean of cluster.used_bytes")
            if even_bytes is None or cluster.object_bytes == OBJECT_BYTES:
                return stored
            others_bytes = max(0.0, used_bytes - even_bytes)
            return stored._replace(others_bytes=others_bytes)
    if even_bytes is not None:
        return held(even_bytes, "its part of cluster.stored_bytes under this scheme")
    if osd_bytes is None:
        wanted = "bytes: the device parameter set has no capacity"
        raise scenario.problem("durability.drive_bytes", "nothing", wanted)
    return held(
        osd_bytes,
        "a full drive (cluster.stored_bytes or durability.drive_bytes changes this)",
    )


def _rate(
    scenario: Scenario,
    code: Code,
    reads: float,
    stored: _Stored,
    rebuild: Rebuild | None,
) -> RebuildRate:
    """Return the rate of rebuilds: as stated, or else as the recovery model simulates it.

    `reads` are the bytes that drives read for each rebuilt one.
    """
    spec = scenario.durability
    assert spec is not None
    pace = spec.repair_bytes_per_s
    if pace is None and code.tolerated == 0:
        return RebuildRate(inf, "none, because the first failed drive loses data")
    if pace is None:
        return _simulated_rate(scenario, code, stored, rebuild)
    text = f"{pace / 1e6:,.4g} MB/s, as durability.repair_bytes_per_s states"
    if spec.placement == "declustered":
        # The walk and the chain count each byte that is read and written.
        moved = reads + 1
        return RebuildRate(
            pace,
            f"{text} for each surviving drive, which moves {moved:.3g} bytes for each rebuilt one",
        )
    # A rate is stated for codes that read k shards to rebuild one.
    faster = (code.k + 1) / (reads + 1)
    if abs(faster - 1) < _SAME:
        return RebuildRate(pace, text)
    return RebuildRate(
        pace * faster,
        f"{text} for codes that read k = {code.k} bytes and write one for each rebuilt byte, × {faster:.3g}, "
        f"because {code.name} reads {reads:.3g}",
    )


def _simulated_rate(
    scenario: Scenario, code: Code, stored: _Stored, rebuild: Rebuild | None
) -> RebuildRate:
    """Return the simulated rate of rebuilds, where other pools have objects of the usual size."""
    own_bytes = stored.drive_bytes - stored.others_bytes
    own = simulated_rate(scenario, code.name, own_bytes, rebuild)
    if not stored.others_bytes:
        return own
    usual = scenario.with_cluster(object_bytes=OBJECT_BYTES)
    others = simulated_rate(usual, code.name, stored.others_bytes)
    seconds = own_bytes / own.bytes_per_s + stored.others_bytes / others.bytes_per_s
    words = (
        f"{own.words}. That is for the {bytes_text(own_bytes)} of this pool. The "
        f"{bytes_text(stored.others_bytes)} of other pools, whose objects are assumed to have "
        f"{size_text(OBJECT_BYTES)}, take {others.bytes_per_s / 1e6:,.4g} MB/s"
    )
    return RebuildRate(stored.drive_bytes / seconds, words)


def _repair(
    scenario: Scenario, spec: DurabilitySpec, rate: RebuildRate, at_once: int
) -> DriveRepair:
    fixed = spec.placement != "clustered"
    if spec.repair_time is not None:
        fixed = spec.repair_time == "fixed"
    return DriveRepair(
        bytes_per_s=rate.bytes_per_s,
        policy="parallel" if spec.repair == "simulated" else spec.repair,
        detection_s=detection_s(scenario),
        fixed=fixed,
        prioritised=spec.prioritised,
        progress=spec.rebuilt_is_safe,
        groups_at_once=at_once,
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
    # A family whose likelihood has no maximum is left out.
    usable = [fits[name] for name in ("exponential", "weibull") if name in fits]
    if not usable:
        raise ValueError(
            f"durability.lifetime.trace: got {path}, whose times up give no exponential or Weibull "
            "distribution; wanted pieces, for a hazard without a shape"
        )
    best = min(usable, key=lambda fit: fit.aic)
    return Lifetime.weibull(
        best.parameters["scale_s"], best.parameters.get("shape", 1.0), until_s
    )
