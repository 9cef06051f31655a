"""Turn the form of the page into two options: scenarios, and numbers that need no simulation."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, get_args

from stripesim.calibration.kernels.store import shipped_table_names
from stripesim.calibration.parameters.sets import DEVICE_TABLES, ParameterSet, names
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import warnings_of
from stripesim.scenarios.planning.bound import Bound, bounds_of
from stripesim.scenarios.planning.candidates import candidate_scenario
from stripesim.scenarios.planning.capacity import (
    Capacity,
    Drives,
    capacity_of,
    drives_of,
    storage_warnings,
)
from stripesim.scenarios.planning.durability import DETECTION_S
from stripesim.scenarios.planning.plan import AFR, nines_of
from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec, names_file
from stripesim.scenarios.schema.loader import parse_scenario, scenario_from
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
from stripesim.scenarios.schema.toml import toml_document
from stripesim.scenarios.schema.toml_bounds import parse_toml
from stripesim.scenarios.schema.types import GenerationName
from stripesim.scenarios.schema.units import bytes_text, number_text
from stripesim.web.fields import (
    NO_PROBLEMS,
    TEXT_MAX,
    Control,
    FormProblems,
    problems_of_scenario,
)

SIDES: Final = ("a", "b")
_EXACT: Final = "exact arithmetic, without metadata and other pools"
_MARKOV_WORDS: Final = {
    True: "which is exact here",
    False: "an approximation (see the source)",
}
#: Values proposed where the scenario states none. The form shows all of them.
_RATE_PER_S: Final = 1000.0
_READ_FRACTION: Final = 0.7
_GROWTH_BYTES_PER_DAY: Final = 0.1e12
_REPAIR_BYTES_PER_S: Final = 50e6


def controls(base: Scenario | None = None) -> tuple[Control, ...]:
    """Return the controls in their order on the page.

    The drive of a scenario `base` that names a file of its own is a choice next to the shipped ones.
    """
    if base is not None and names_file("drive", base.cluster.drive):
        return _controls(base.cluster.drive)
    return _controls("")


@lru_cache(maxsize=16)
def _controls(own_drive: str) -> tuple[Control, ...]:
    devices = tuple(
        name
        for name in names()
        if any(ParameterSet(name).table(t) for t in DEVICE_TABLES)
    )
    if own_drive:
        devices = (own_drive, *devices)
    return (
        Control("scheme", "Scheme", "text"),
        Control(
            "generation", "Ceph release", "select", choices=get_args(GenerationName)
        ),
        Control("hosts", "Hosts", low=1, high=200),
        Control("osds_per_host", "OSDs per host", low=1, high=60),
        Control("racks", "Racks", low=1, high=100, placeholder="none"),
        Control("drive", "Drive", "select", choices=devices),
        Control(
            "drive_tb",
            "Drive capacity [TB]",
            low=0.0001,
            high=1000,
            placeholder="default of the drive",
        ),
        Control("public_gbit_per_s", "Public network [Gbit/s]", low=0.1, high=800),
        Control("private_gbit_per_s", "Private network [Gbit/s]", low=0.1, high=800),
        Control("cores_per_host", "Cores per host", low=1, high=1024),
        Control("pg_num", "Placement groups", low=1, high=65_536),
        Control(
            "failure_domain",
            "Failure domain",
            "select",
            choices=("host", "rack", "osd"),
        ),
        Control("block_kib", "Request size [KiB]", low=0.5, high=4096, both=True),
        Control("read_percent", "Reads [%]", low=0, high=100, both=True),
        Control("rate_per_s", "Required rate [1/s]", low=1, high=1e7, both=True),
        Control("stored_tb", "Stored now [TB]", low=0, high=1e6, both=True),
        Control("growth_tb_per_day", "Growth [TB/day]", low=0, high=1e5, both=True),
        Control(
            "afr_percent", "Drives failing per year [%]", low=0.01, high=90, both=True
        ),
        Control(
            "repair_mb_per_s",
            "Repair of one drive [MB/s]",
            low=0.1,
            high=1e5,
            both=True,
        ),
    )


@dataclass(frozen=True)
class Number:
    """A number on the page, with its derivation."""

    key: str
    label: str
    value: float | None
    text: str
    why: str
    source: str
    range: str


@dataclass(frozen=True)
class PlanOption:
    """One of the two options: the values of its form, and the resulting numbers or problems.

    An option with problems has neither a scenario nor numbers.
    """

    values: Mapping[str, str]
    scenario: Scenario | None = None
    numbers: tuple[Number, ...] = ()
    problems: FormProblems = NO_PROBLEMS
    warnings: tuple[str, ...] = ()

    @property
    def problem_lines(self) -> list[str]:
        """Return the problems as sentences, each with the label of its field."""
        labels = {control.name: control.label for control in controls()}
        of_fields = [
            f"{labels[name]}: {text}" for name, text in self.problems.by_field.items()
        ]
        return [*of_fields, *self.problems.others]


def defaults(base: Scenario, side: str) -> dict[str, str]:
    """Return the initial values of the form, taken from the scenario."""
    cluster = base.cluster
    load = base.workload
    plan = base.plan or PlanSpec()
    durability = base.durability or DurabilitySpec()
    scheme = base.schemes[min(SIDES.index(side), len(base.schemes) - 1)]
    domain = cluster.failure_domain_erasure
    if parse_scheme(scheme).kind == "replicated":
        domain = cluster.failure_domain_replicated
    # An empty field means the default capacity of the drive, or no racks.
    drive_tb: str | float = ""
    if cluster.drive_bytes:
        drive_tb = float(f"{cluster.drive_bytes / 1e12:.4g}")
    growth_bytes = plan.growth_bytes_per_day or _GROWTH_BYTES_PER_DAY
    repair_bytes_per_s = durability.repair_bytes_per_s or _REPAIR_BYTES_PER_S
    values: dict[str, str | float] = {
        "scheme": scheme,
        "generation": _first_of(plan.generation, base.generation),
        "hosts": max(plan.hosts, default=cluster.host_count),
        "osds_per_host": max(plan.osds_per_host, default=cluster.osds_per_host),
        "racks": cluster.racks or "",
        "drive": _first_of(plan.drive, cluster.drive),
        "drive_tb": drive_tb,
        "public_gbit_per_s": cluster.public_gbit_per_s,
        "private_gbit_per_s": cluster.private_gbit_per_s,
        "cores_per_host": cluster.cores_per_host,
        "pg_num": cluster.pg_num,
        "failure_domain": domain,
        "block_kib": load.block_sizes_bytes[0] / 1024,
        "read_percent": 100 * _read_fraction(load),
        "rate_per_s": plan.rate_per_s or load.rate_per_s or _RATE_PER_S,
        "stored_tb": (plan.stored_bytes or 0.0) / 1e12,
        "growth_tb_per_day": growth_bytes / 1e12,
        "afr_percent": 100 * (durability.afr or AFR),
        "repair_mb_per_s": repair_bytes_per_s / 1e6,
    }
    return {key: _field_text(value) for key, value in values.items()}


def _first_of(values: Sequence[str], default: str) -> str:
    """Return the first of the values that a plan varies, or the scenario's value if it varies none."""
    return next(iter(values), default)


def _read_fraction(load: WorkloadSpec) -> float:
    if load.read_fraction is not None:
        return load.read_fraction
    if load.ops == ("write",):
        return 0.0
    if load.ops == ("read",):
        return 1.0
    return _READ_FRACTION


def _field_text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}"


def read_values(
    base: Scenario, query: Mapping[str, str], side: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Read one option from a query, with values of `base` as defaults. Return its values and its problems."""
    values = defaults(base, side)
    problems = {}
    for control in controls(base):
        typed = query.get(control.key(side))
        if typed is None:
            continue
        text = typed.strip()
        values[control.name] = text[:TEXT_MAX]
        problem = control.problem(text)
        if problem:
            problems[control.name] = problem
    return values, problems


def options_of(base: Scenario, query: Mapping[str, str]) -> dict[str, PlanOption]:
    """Build both options and compute everything that needs no simulation."""
    return {side: option_of(base, query, side) for side in SIDES}


def invalid_options(
    base: Scenario, query: Mapping[str, str], problem: str
) -> dict[str, PlanOption]:
    """Return both options for a computation that failed."""
    options = {}
    for side in SIDES:
        values, by_field = read_values(base, query, side)
        options[side] = PlanOption(values, problems=FormProblems(by_field, (problem,)))
    return options


def option_of(base: Scenario, query: Mapping[str, str], side: str) -> PlanOption:
    """Build one option and compute everything that needs no simulation."""
    values, problems = read_values(base, query, side)
    if problems:
        return PlanOption(values, problems=FormProblems(problems))
    return _computed(_Based(base, base.hash()), tuple(values.items()))


@dataclass(frozen=True)
class _Based:
    """A scenario as a cache key, compared by content."""

    scenario: Scenario = field(compare=False)
    sha256: str = ""


@lru_cache(maxsize=256)
def _computed(based: _Based, items: tuple[tuple[str, str], ...]) -> PlanOption:
    values = dict(items)
    try:
        scenario = _scenario(based.scenario, values)
        numbers, warnings = _numbers(scenario, values)
    except ValueError as error:
        return PlanOption(values, problems=problems_of_scenario(error, controls()))
    return PlanOption(values, scenario, tuple(numbers), warnings=tuple(warnings))


def _scenario(base: Scenario, values: Mapping[str, str]) -> Scenario:
    keys: dict[str, Any] = {
        "generation": values["generation"],
        "drive": values["drive"],
    }
    for key in ("hosts", "osds_per_host", "cores_per_host", "pg_num"):
        keys[key] = int(float(values[key]))
    for key in ("public_gbit_per_s", "private_gbit_per_s"):
        keys[key] = float(values[key])
    keys["racks"] = int(float(values["racks"])) if values["racks"] else None
    # An empty field means the capacity of the chosen drive, whatever the base states.
    keys["drive_bytes"] = None
    if values["drive_tb"]:
        keys["drive_bytes"] = round(float(values["drive_tb"]) * 1e12)
    for key in ("failure_domain_replicated", "failure_domain_erasure"):
        keys[key] = values["failure_domain"]
    kept = base.model_dump(mode="json", exclude_unset=True, exclude=_REPLACED)
    workload = {
        **kept.get("workload", {}),
        "kind": "open",
        "rate_per_s": float(values["rate_per_s"]),
        "patterns": ["rand"],
        "read_fraction": float(values["read_percent"]) / 100,
        "block_sizes_bytes": [round(float(values["block_kib"]) * 1024)],
        "requests": min(base.workload.requests or 2000, 4000),
    }
    durability = {
        "afr": float(values["afr_percent"]) / 100,
        "repair_bytes_per_s": float(values["repair_mb_per_s"]) * 1e6,
        "detection_s": DETECTION_S,
    }
    asked = {**kept, "workload": workload, "durability": durability}
    return candidate_scenario(base, asked, values["scheme"], keys)


# Keys that the form replaces or does not support.
_REPLACED: Final[Any] = {
    **dict.fromkeys(
        ("workloads", "faults", "repair", "degraded", "plan", "durability"), True
    ),
    "workload": {
        "ops",
        "duration_s",
        "completions",
        "trace",
        "trace_format",
        "speed",
        "replay",
    },
}


def _numbers(
    scenario: Scenario, values: Mapping[str, str]
) -> tuple[list[Number], list[str]]:
    scheme = scenario.schemes[0]
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    capacity = capacity_of(scenario, scheme, models, drives)
    numbers = [
        *_capacity_numbers(capacity, drives),
        *_days_numbers(capacity.usable_bytes_safe, values),
        *_bound_numbers(bounds_of(scenario, scheme)),
        _nines_number(nines_of(scenario, scheme, None), values),
    ]
    return numbers, [*storage_warnings(scenario, models), *warnings_of(scenario)]


def _capacity_numbers(capacity: Capacity, drives: Drives) -> list[Number]:
    full_ratio = 1.0
    full_ratio_source = "–"
    if drives.fill:
        full_ratio = drives.fill.full_ratio
        full_ratio_source = drives.fill.provenance["full_ratio"].source
    overhead = f"{capacity.overhead:.4g}"
    raw_why = f"{capacity.osds} OSDs × {bytes_text(drives.osd_bytes)}"
    full_why = f"raw × {full_ratio:g} / {overhead}"
    safe_why = " → ".join(
        f"{step.name} {bytes_text(step.left_bytes)} ({step.why})"
        for step in capacity.steps[:5]
    )
    raw = capacity.raw_bytes
    full = capacity.usable_bytes_full
    safe = capacity.usable_bytes_safe
    stored = capacity.stored_per_client_byte
    return [
        Number(
            "raw", "Raw capacity", raw, bytes_text(raw), raw_why, "the form", _EXACT
        ),
        Number(
            "full",
            "Usable at the full ratio",
            full,
            bytes_text(full),
            full_why,
            full_ratio_source,
            _EXACT,
        ),
        Number(
            "safe",
            "Usable after losing the largest failure domain",
            safe,
            bytes_text(safe),
            safe_why,
            full_ratio_source,
            _EXACT,
        ),
        Number(
            "stored",
            "Stored bytes per client byte",
            stored,
            number_text(stored),
            f"{overhead} from the scheme, the rest from padding to stripes",
            "the layout of Ceph's erasure-coded objects",
            _EXACT,
        ),
    ]


def _days_numbers(safe_bytes: float | None, values: Mapping[str, str]) -> list[Number]:
    stored_bytes = float(values["stored_tb"]) * 1e12
    growth_bytes = float(values["growth_tb_per_day"]) * 1e12
    if not growth_bytes or safe_bytes is None:
        return []
    days = max(0.0, safe_bytes - stored_bytes) / growth_bytes
    free = f"{bytes_text(safe_bytes)} − {bytes_text(stored_bytes)} stored"
    why = f"({free}) / {bytes_text(growth_bytes)} per day"
    valid = "assumes constant growth"
    text = number_text(days)
    return [Number("days", "Days until full", days, text, why, "the form", valid)]


def _nines_number(row: Mapping[str, Any], values: Mapping[str, str]) -> Number:
    method = f"by {row['method']}"
    if row["method"] == "markov":
        method = "by a Markov chain of the placement groups, "
        method += _MARKOV_WORDS[row["exact"]]
    why = (
        f"−log10 of the probability of any loss, {row['loss_probability']:.3g}, {method}: "
        f"{values['afr_percent']} % of drives fail per year, a repair starts after {DETECTION_S:g} s and "
        f"runs at {values['repair_mb_per_s']} MB/s"
    )
    nines = row["nines"]
    return Number(
        "nines",
        "Nines of durability per year",
        nines,
        number_text(nines),
        why,
        "; ".join(row["assumptions"]),
        "independent failures: no power cuts, no bad batches",
    )


def _bound_numbers(bounds: Sequence[Bound]) -> list[Number]:
    """Show the rate that saturates the first resource, and name the next ones in its derivation."""
    if not bounds:
        return []
    lowest, *rest = bounds
    why = f"{lowest.resource}: {lowest.why}"
    following = [f"{bound.resource} {number_text(bound.iops)}" for bound in rest[:3]]
    if following:
        why += f". Next, in requests/s: {', '.join(following)}"
    text = f"{number_text(lowest.iops)} requests/s, limited by the {lowest.resource}"
    source = "service times per request and resource, from the parameter sets"
    valid = "an upper bound: queueing, wake-ups and syncs lower the served rate"
    return [
        Number(
            "bound", "Upper bound on the rate", lowest.iops, text, why, source, valid
        )
    ]


def read_upload(text: str) -> Scenario:
    """Read an uploaded scenario, which may refer only to shipped parameter sets and to no file.

    Raises
    ------
    ValueError
        If the scenario is invalid or refers to anything else.
    """
    try:
        values = parse_toml(text)
    except ValueError as error:
        raise ValueError(f"scenario: {error}") from None
    refused = sorted(set(_file_keys(values)))
    if refused:
        raise ValueError(
            f"scenario: got {', '.join(refused)}, wanted no file paths in an upload"
        )
    cluster = values.get("cluster", {})
    sets = names()
    known = {
        "drive": sets,
        "ssd": sets,
        "parameters": sets,
        "kernel_table": ("", *shipped_table_names()),
    }
    for key, fitting in known.items():
        given = cluster.get(key) if isinstance(cluster, dict) else None
        if isinstance(given, str) and given not in fitting:
            wanted = f"one of {', '.join(fitting)}"
            raise ValueError(
                f"scenario: cluster.{key}: got a name that does not ship, wanted {wanted}"
            )
    return parse_scenario(text, label="scenario")


def read_report(content: bytes) -> tuple[Scenario, list[str]]:
    """Build a scenario from the largest pool of a ``ceph report``, and list the simplifications.

    The page compares clusters of equal hosts, so all hosts of the pool are taken as equal.
    ``stripesim import ceph-report`` keeps the CRUSH map instead.

    Raises
    ------
    ValueError
        If the report cannot be read.
    """
    from stripesim.scenarios.importing.cluster import import_cluster
    from stripesim.scenarios.importing.counted_scenario import scenario_without_map
    from stripesim.scenarios.importing.scenario import chosen_pools

    with tempfile.TemporaryDirectory(prefix="stripesim-") as folder:
        # The request does not choose this file name.
        path = Path(folder) / "report.json"
        path.write_bytes(content)
        try:
            cluster = import_cluster([path])
            pool = chosen_pools(cluster, [])[0]
            counted = scenario_without_map(cluster, pool)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "report")) from None
    notes = [
        f"pool {pool.placed.name}; stripesim import ceph-report keeps its CRUSH map",
        *counted.notes,
        *counted.lines,
        *cluster.warnings,
    ]
    return scenario_from(counted.tables, label="report"), notes


def _file_keys(value: Any, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [
            name for part, inner in value.items() for name in _file_keys(inner, part)
        ]
    if isinstance(value, list):
        return [name for inner in value for name in _file_keys(inner, key)]
    return [key] if names_file(key, value) else []


def toml_of(scenario: Scenario) -> str:
    """Write a scenario as TOML that `stripesim run` accepts."""
    return toml_document(scenario.model_dump(mode="json", exclude_unset=True))


def difference(first: float | None, second: float | None) -> str:
    """Format the difference of a second value from a first.

    >>> difference(100.0, 150.0), difference(2.0, 2.0), difference(0.0, 1.0)
    ('+50 %', 'equal', '–')
    """
    if first is None or second is None or (first == 0 and second != 0):
        return "–"
    return "equal" if first == second else f"{(second / first - 1) * 100:+,.0f} %"
