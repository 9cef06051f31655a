"""List the controls of the form in groups, and take their first values from a scenario."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, get_args

from stripesim.calibration.parameters.sets import DEVICE_TABLES
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.durability.durability import DETECTION_S
from stripesim.scenarios.answers.plan.candidate_runs import AFR
from stripesim.scenarios.cells.models import sets_with
from stripesim.scenarios.schema.geometry import failure_domain
from stripesim.scenarios.schema.keys import (
    SITES_MAX,
    ClusterSpec,
    WorkloadSpec,
    names_file,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
from stripesim.scenarios.schema.types import S3_OPS, GenerationName
from stripesim.scenarios.schema.units import size_text
from stripesim.web.fields import Control

SIDES: Final = ("a", "b")
#: Values of `arrivals`: Poisson arrivals at a rate, or requests in flight.
BY_RATE: Final = "at a rate"
BY_DEPTH: Final = "by depth"
#: Values of `stretch`.
NO: Final = "no"
YES: Final = "yes"
#: Values proposed where the scenario states none. The form shows all of them.
RATE_PER_S: Final = 1000.0
_READ_FRACTION: Final = 0.7
#: Keys of [durability] that have a control.
_HELD_OF_DURABILITY: Final = {"afr", "repair_bytes_per_s"}
STORED_BYTES: Final = 10e12

# Stops of sliders.
_COUNTS: Final = (*range(1, 33), 36, 40, 48, 56, 64, 80, 100, 128, 160, 200)
_OSDS: Final = (*range(1, 25), 28, 32, 36, 48, 60)
_CORES: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
_GBIT_PER_S: Final = (1, 2.5, 5, 10, 20, 25, 40, 50, 100, 200, 400, 800)
_POWERS: Final = tuple(2**power for power in range(17))
_KIB: Final = (0.5, *_POWERS[:13])
_DEPTHS: Final = _POWERS[:13]
_PERCENT: Final = tuple(range(0, 101, 5))
_RATES: Final = tuple(
    mantissa * 10**power
    for power in range(2, 7)
    for mantissa in (1, 1.5, 2, 3, 4, 5, 6, 8)
)


class ControlGroup(NamedTuple):
    """Controls that the page shows together."""

    name: str
    controls: tuple[Control, ...]


class OwnSets(NamedTuple):
    """Parameter sets beyond the shipped ones that can be chosen: one with a drive, one of a cluster."""

    drives: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()

    @classmethod
    def of(cls, base: Scenario) -> "OwnSets":
        """Return the sets that a scenario refers to as files."""
        drive = base.cluster.drive
        parameters = base.cluster.parameters
        return cls(
            (drive,) if names_file("drive", drive) else (),
            (parameters,) if names_file("parameters", parameters) else (),
        )


def _count(name: str, label: str, *, high: float, **more: Any) -> Control:
    """Return a control of a whole number from 1."""
    return Control(name, label, low=1, high=high, is_whole=True, **more)


_SCHEMES: Final = ControlGroup(
    "Schemes", (Control("scheme", "Scheme", "text", scope="option"),)
)
_RELEASE: Final = ControlGroup(
    "Release",
    (
        Control(
            "generation",
            "Ceph release",
            "select",
            choices=get_args(GenerationName),
            scope="option",
        ),
        Control(
            "failure_domain",
            "Failure domain",
            "select",
            choices=("host", "rack", "site", "osd"),
            scope="option",
        ),
    ),
)
_SITES: Final = ControlGroup(
    "Sites",
    (
        _count("sites", "Sites", high=SITES_MAX, placeholder="one"),
        Control(
            "site_rtt_ms",
            "Round trip between sites [ms]",
            low=0,
            high=1000,
            placeholder="unchanged",
        ),
        Control(
            "stretch",
            "Stretch mode",
            "select",
            choices=(NO, YES),
            scope="option",
        ),
    ),
)
_FAILURES: Final = ControlGroup(
    "Failures and growth",
    (
        Control("stored_tb", "Stored now [TB]", low=0, high=1e6, scope="both"),
        Control(
            "growth_tb_per_day",
            "Growth [TB/day]",
            low=0,
            high=1e5,
            scope="both",
        ),
        Control(
            "afr_percent",
            "Drives failing per year [%]",
            low=0.01,
            high=90,
            scope="both",
        ),
        Control(
            "repair_mb_per_s",
            "Repair of one drive [MB/s]",
            low=0.1,
            high=1e5,
            scope="both",
            placeholder="as simulated",
        ),
        Control(
            "failure",
            "What fails",
            "select",
            choices=("host", "OSD", "site"),
            scope="both",
        ),
        _count(
            "added_hosts",
            "Hosts to add",
            high=16,
            scope="both",
            stops=_COUNTS[:16],
        ),
    ),
)


class FormKind(NamedTuple):
    """Properties of a scenario that decide which controls the form has."""

    is_s3: bool = False  #: The load is on objects
    #: Clients and hosts share one network, so that a rate of a private one has no effect
    has_one_network: bool = False

    @classmethod
    def of(cls, base: Scenario) -> "FormKind":
        """Return the kind of form for a scenario."""
        return cls(base.workload.is_s3, base.cluster.networks == 1)


@lru_cache(maxsize=64)
def groups(
    own: OwnSets = OwnSets(),  # noqa: B008 - immutable
    kind: FormKind = FormKind(),  # noqa: B008 - immutable
) -> tuple[ControlGroup, ...]:
    """Return the groups of controls in their order on the page. The first is always visible."""
    return (
        _SCHEMES,
        _RELEASE,
        _hosts(own),
        _SITES,
        _network(own, has_one=kind.has_one_network),
        _load(is_s3=kind.is_s3),
        _FAILURES,
    )


def _hosts(own: OwnSets) -> ControlGroup:
    drives = (*own.drives, *sets_with(DEVICE_TABLES))
    return ControlGroup(
        "Hosts and drives",
        (
            _count("hosts", "Hosts", high=200, stops=_COUNTS),
            _count("osds_per_host", "OSDs per host", high=60, stops=_OSDS),
            Control("drive", "Drive", "select", choices=drives, is_wide=True),
            Control(
                "drive_tb",
                "Drive capacity [TB]",
                low=0.0001,
                high=1000,
                placeholder="of the drive",
            ),
            _count("racks", "Racks", high=100, placeholder="none"),
            _count("pg_num", "Placement groups", high=65_536, stops=_POWERS),
        ),
    )


def _network(own: OwnSets, *, has_one: bool) -> ControlGroup:
    parameters = (*own.parameters, *sets_with(("client",)))
    names = {
        "public_gbit_per_s": "Public network",
        "private_gbit_per_s": "Private network",
    }
    if has_one:
        names = {"public_gbit_per_s": "Network"}
    rates = (
        Control(key, f"{name} [Gbit/s]", low=0.1, high=800, stops=_GBIT_PER_S)
        for key, name in names.items()
    )
    return ControlGroup(
        "Network and processors",
        (
            *rates,
            _count("cores_per_host", "Cores per host", high=1024, stops=_CORES),
            Control(
                "parameters", "Parameters", "select", choices=parameters, is_wide=True
            ),
        ),
    )


def _load(*, is_s3: bool) -> ControlGroup:
    return ControlGroup(
        "Load",
        (
            *(_of_objects() if is_s3 else _of_images()),
            Control(
                "arrivals",
                "Requests arrive",
                "select",
                choices=(BY_RATE, BY_DEPTH),
                scope="both",
            ),
            Control(
                "rate_per_s",
                "Required rate [1/s]",
                low=1,
                high=1e7,
                scope="both",
                stops=_RATES,
            ),
            _count(
                "queue_depth",
                "Requests in flight per client",
                high=4096,
                scope="both",
                stops=_DEPTHS,
            ),
        ),
    )


def _of_images() -> tuple[Control, ...]:
    """Return the controls that say what requests to images are for."""
    return (
        Control(
            "block_kib",
            "Request size [KiB]",
            low=0.5,
            high=65_536,
            scope="both",
            stops=_KIB,
        ),
        Control(
            "read_percent",
            "Reads [%]",
            low=0,
            high=100,
            scope="both",
            stops=_PERCENT,
        ),
    )


def _of_objects() -> tuple[Control, ...]:
    """Return the controls that say what requests for objects are for."""
    size = Control(
        "object_kib",
        "Object size [KiB]",
        low=0.5,
        high=65_536,
        scope="both",
        stops=_KIB,
    )
    shares = (
        Control(op, f"Share of {op}", low=0, high=100, scope="both", stops=_PERCENT)
        for op in S3_OPS
    )
    return (size, *shares)


def controls(
    own: OwnSets = OwnSets(),  # noqa: B008 - immutable
    kind: FormKind = FormKind(),  # noqa: B008 - immutable
) -> tuple[Control, ...]:
    """Return all controls in their order on the page."""
    return tuple(control for group in groups(own, kind) for control in group.controls)


def defaults(base: Scenario, side: str) -> dict[str, str]:
    """Return the first values of the form, taken from the scenario."""
    cluster = base.cluster
    load = base.workload
    plan = base.plan or PlanSpec()
    durability = base.durability or DurabilitySpec()
    scheme = base.schemes[min(SIDES.index(side), len(base.schemes) - 1)]
    stored_bytes = plan.stored_bytes or cluster.stored_bytes or STORED_BYTES
    # An invented growth would say when the cluster is full.
    growth_bytes = plan.growth_bytes_per_day or 0.0
    values: dict[str, str | float] = {
        "scheme": scheme,
        "generation": _first_of(plan.generation, base.generation),
        "hosts": max(plan.hosts, default=_first_hosts(base)),
        "osds_per_host": max(plan.osds_per_host, default=cluster.osds_per_host),
        "stretch": YES if cluster.stretch else NO,
        "drive": _first_of(plan.drive, cluster.drive),
        "public_gbit_per_s": cluster.public_gbit_per_s,
        "cores_per_host": cluster.cores_per_host,
        "parameters": cluster.parameters,
        "pg_num": cluster.pg_num,
        "failure_domain": failure_domain(base, parse_scheme(scheme))[0],
        **_requested(load),
        "arrivals": BY_RATE,
        "rate_per_s": rate_of(base) or RATE_PER_S,
        "queue_depth": min(load.queue_depth, _DEPTHS[-1]),
        "stored_tb": stored_bytes / 1e12,
        "growth_tb_per_day": growth_bytes / 1e12,
        "afr_percent": 100 * (durability.afr or AFR),
        "failure": "host",
        "added_hosts": 1,
    }
    if not FormKind.of(base).has_one_network:
        values["private_gbit_per_s"] = cluster.private_gbit_per_s
    texts = {key: _field_text(value) for key, value in values.items()}
    return texts | _optional(cluster, durability)


def _first_hosts(base: Scenario) -> int:
    """Return the hosts of a scenario, or enough for its schemes and a spare one if it states none."""
    cluster = base.cluster
    if "hosts" in cluster.model_fields_set:
        return cluster.host_count
    wanted = [
        scheme.width + 1
        for scheme in map(parse_scheme, base.schemes)
        if failure_domain(base, scheme)[0] == "host"
    ]
    return max([cluster.host_count, *wanted])


def _optional(cluster: ClusterSpec, durability: DurabilitySpec) -> dict[str, str]:
    """Return the texts of fields that may be empty, which means what the scenario states otherwise."""
    values: dict[str, float | None] = {
        # Empty: no racks, and no sites.
        "racks": cluster.racks,
        "sites": cluster.sites,
        # Empty: the capacity of the drive.
        "drive_tb": cluster.drive_bytes and float(f"{cluster.drive_bytes / 1e12:.4g}"),
        # Empty: the times of the scenario, which may be a matrix.
        "site_rtt_ms": cluster.site_rtt_ms
        if isinstance(cluster.site_rtt_ms, int | float)
        else None,
        # Empty: the simulated rate.
        "repair_mb_per_s": durability.repair_bytes_per_s
        and durability.repair_bytes_per_s / 1e6,
    }
    return {
        key: "" if value is None else _field_text(value)
        for key, value in values.items()
    }


def rate_of(base: Scenario) -> float | None:
    """Return the rate that a scenario states [1/s], or None."""
    stated = base.plan.rate_per_s if base.plan is not None else None
    return stated or base.workload.rate_per_s


def left_out(base: Scenario) -> list[str]:
    """Return a sentence on the parts of a scenario's load and failures that the page leaves out."""
    load = base.workload
    notes = []
    if base.workloads:
        notes.append(
            f"workloads: one load of the form replaces {len(base.workloads)}, without their streams"
        )
    elif load.kind == "trace":
        notes.append("workload.trace: the load of the form replaces it")
    else:
        notes += _sizes_left_out(load)
    if load.vms is not None:
        notes.append(
            f"workload.vms: {load.vms} clients with the rate or the depth of the form replace the machines"
        )
    states_pattern = "patterns" in load.model_fields_set
    if states_pattern and not load.is_s3 and load.patterns != ("rand",):
        notes.append("workload.patterns: requests of the form are at random places")
    for table in ("faults", "repair", "degraded", "changes"):
        if getattr(base, table):
            notes.append(f"{table}: what fails and what is added is that of the form")
    return [*notes, *_durability_left_out(base.durability or DurabilitySpec())]


def _durability_left_out(durability: DurabilitySpec) -> Iterator[str]:
    left = [
        f"durability.{key}"
        for key in DurabilitySpec.model_fields
        if key in durability.model_fields_set - _HELD_OF_DURABILITY
        and (key, getattr(durability, key)) != ("detection_s", DETECTION_S)
    ]
    if left:
        yield f"{', '.join(left)}: nines are those of the form, with repairs from {DETECTION_S:g} s on"


def _sizes_left_out(load: WorkloadSpec) -> list[str]:
    key, sizes = "block_sizes_bytes", load.block_sizes_bytes
    if load.is_s3:
        key, sizes = "object_sizes_bytes", load.object_sizes_bytes
    if len(sizes) == 1 or (load.is_s3 and load.size_shares is not None):
        return []
    listed = ", ".join(map(size_text, sizes))
    return [f"workload.{key}: of {listed}, the form begins with {size_text(sizes[0])}"]


def _first_of(values: Sequence[str], default: str) -> str:
    """Return the first of the values that a plan varies, or the scenario's value if it varies none."""
    return next(iter(values), default)


def _requested(load: WorkloadSpec) -> dict[str, float]:
    """Return the first values of the controls that say what requests are for."""
    if not load.is_s3:
        return {
            "block_kib": load.block_sizes_bytes[0] / 1024,
            "read_percent": 100 * _read_fraction(load),
        }
    size_bytes: float = load.object_sizes_bytes[0]
    if load.size_shares is not None:
        size_bytes = load.mean_object_bytes
    return {"object_kib": size_bytes / 1024, **_shares_percent(load)}


def _read_fraction(load: WorkloadSpec) -> float:
    if load.read_fraction is not None:
        return load.read_fraction
    if len(load.ops) == 1:
        return float(load.ops[0] == "read")
    return _READ_FRACTION


def _shares_percent(load: WorkloadSpec) -> dict[str, float]:
    """Return the share of each operation on objects [%], the same for all that are used if none is stated."""
    shares = load.op_shares or (1.0,) * len(load.used_ops)
    percent = {
        op: 100 * share / sum(shares)
        for op, share in zip(load.used_ops, shares, strict=True)
    }
    return {op: percent.get(op, 0.0) for op in S3_OPS}


def _field_text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}"


def problems_of(values: Mapping[str, str], listed: Sequence[Control]) -> dict[str, str]:
    """Return the problem of each invalid value, by the name of its control."""
    problems = {}
    for control in listed:
        problem = control.problem(values[control.name])
        if problem:
            problems[control.name] = problem
    shares = [control.name for control in listed if control.name in S3_OPS]
    if shares and not problems and not any(float(values[name]) for name in shares):
        problems[shares[0]] = "got 0 for each operation, wanted a share above 0"
    return problems
