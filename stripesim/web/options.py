"""Turn the values of one option into a scenario, and compute everything that needs no simulation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.models.documents import toml_text
from stripesim.models.problems import first_problem
from stripesim.scenarios.answers.durability.durability import DETECTION_S
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.plan.candidate_runs import nines_of
from stripesim.scenarios.answers.plan.candidates import candidate_scenario
from stripesim.scenarios.cells.bound import Bound, bounds_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import outside_of
from stripesim.scenarios.forms.capacity import (
    Capacity,
    Drives,
    capacity_of,
    drives_of,
    warnings_of,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.schema.units import bytes_text, number_text
from stripesim.sim.ceph.cluster import Models
from stripesim.web.controls import BY_DEPTH, YES, FormKind, controls, defaults
from stripesim.web.fields import (
    NO_PROBLEMS,
    Control,
    FormProblems,
    problems_of_scenario,
)
from stripesim.web.worker import OutOfProcessorTime, processor_limit

#: Processor time for the answers of an option [s].
OPTIONS_PROCESSOR_S_MAX: Final = 60.0
#: Days for which a constant growth is not assumed any more.
_DAYS_MAX: Final = 10 * 365
_EXACT: Final = "exact arithmetic, without metadata and other pools"
_MARKOV_WORDS: Final = {
    True: "which is exact here",
    False: "an approximation (see the source)",
}
# Size of the cluster of a lone request.
_LONE_HOSTS_MIN: Final = 8
_LONE_OSDS_PER_HOST: Final = 2
#: Name under which a downloaded scenario refers to an uploaded parameter set.
OWN_PARAMETERS: Final = "./parameters.toml"


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
class ClosedForms:
    """Everything about an option that needs no simulation.

    Attributes
    ----------
    numbers
        Numbers to compare.
    capacity
        Steps from raw to usable capacity.
    bounds
        Rate that each resource sustains, lowest first.
    nines
        Row of durability.
    times_ns
        Time of a lone request by phase [ns], for reads and writes. Empty if it cannot be explained.
    missing
        Why answers are missing, or "".
    """

    numbers: tuple[Number, ...]
    capacity: Capacity
    bounds: tuple[Bound, ...]
    nines: Mapping[str, Any]
    times_ns: Mapping[str, Mapping[str, int]]
    missing: str = ""


@dataclass(frozen=True)
class PlanOption:
    """One of the two options: its values, and the resulting scenario and answers, or problems.

    An option with problems has neither a scenario nor answers.
    """

    values: Mapping[str, str]
    scenario: Scenario | None = None
    answers: ClosedForms | None = None
    problems: FormProblems = NO_PROBLEMS
    risks: tuple[str, ...] = ()  # of its data, what it leaves out, and missing answers
    warnings: tuple[str, ...] = ()  # values outside the calibrated range

    @property
    def controls(self) -> tuple[Control, ...]:
        """Controls of the form that have its values."""
        kind = FormKind(
            is_s3="object_kib" in self.values,
            has_one_network="private_gbit_per_s" not in self.values,
        )
        return controls(kind=kind)

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Numbers to compare, none for an invalid option."""
        return self.answers.numbers if self.answers else ()

    @property
    def is_partial(self) -> bool:
        """True if time ran out before all answers were there."""
        return self.answers is not None and self.answers.missing != ""

    @property
    def problem_lines(self) -> list[str]:
        """Return the problems as sentences, each with the label of its field."""
        labels = {control.name: control.label for control in self.controls}
        of_fields = [
            f"{labels[name]}: {text}" for name, text in self.problems.by_field.items()
        ]
        return [*of_fields, *self.problems.others]


def option_of(
    base: Scenario, values: Mapping[str, str], files: Mapping[str, str] | None = None
) -> PlanOption:
    """Build an option of valid values, and compute everything that needs no simulation.

    Parameters
    ----------
    base
        Scenario that the page starts from.
    values
        Text of each control.
    files
        Path of each uploaded parameter set, by the name that controls have for it.
    """
    try:
        scenario = scenario_of(base, values, files or {})
        models = build_models(scenario)
        risks = warnings_of(scenario, models)
        answers = _answers(scenario, models, values)
    except ValueError as error:
        listed = controls(kind=FormKind.of(base))
        return PlanOption(values, problems=problems_of_scenario(error, listed))
    if answers.missing:
        risks = [*risks, answers.missing]
    warnings = tuple(map(str, outside_of(scenario)))
    return PlanOption(values, scenario, answers, risks=tuple(risks), warnings=warnings)


def scenario_of(
    base: Scenario, values: Mapping[str, str], files: Mapping[str, str]
) -> Scenario:
    """Build the scenario of valid values; the arguments are those of `option_of`.

    Raises
    ------
    ValueError
        If the values make no scenario.
    """
    keys: dict[str, Any] = {
        "generation": values["generation"],
        "drive": files.get(values["drive"], values["drive"]),
    }
    if values["parameters"] != base.cluster.parameters:
        keys["parameters"] = files.get(values["parameters"], values["parameters"])
    for key in ("hosts", "osds_per_host", "cores_per_host", "pg_num"):
        keys[key] = int(float(values[key]))
    for key in ("public_gbit_per_s", "private_gbit_per_s"):
        if key in values:
            keys[key] = float(values[key])
    keys["racks"] = int(float(values["racks"])) if values["racks"] else None
    keys |= _site_keys(base, values)
    # An empty field means the capacity of the chosen drive, whatever the base states.
    keys["drive_bytes"] = None
    if values["drive_tb"]:
        keys["drive_bytes"] = round(float(values["drive_tb"]) * 1e12)
    for key in ("failure_domain_replicated", "failure_domain_erasure"):
        keys[key] = values["failure_domain"]
    kept = base.model_dump(mode="json", exclude_unset=True, exclude=_REPLACED)
    workload = {
        **kept.get("workload", {}),
        **_arrivals(base, values),
        **_requested(base, values),
        "requests": min(base.workload.requests or 2000, 4000),
    }
    durability = {
        "afr": float(values["afr_percent"]) / 100,
        "detection_s": DETECTION_S,
    }
    # An empty field means the rate of the recovery model.
    if values["repair_mb_per_s"]:
        durability["repair_bytes_per_s"] = float(values["repair_mb_per_s"]) * 1e6
    asked = {**kept, "workload": workload, "durability": durability}
    option = candidate_scenario(base, asked, values["scheme"], keys)
    return option.with_enough_clients()


def _site_keys(base: Scenario, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of [cluster] about sites. Without sites, times between them are refused."""
    sites = int(float(values["sites"])) if values["sites"] else None
    rtt_ms: Any = None
    if values["site_rtt_ms"]:
        rtt_ms = float(values["site_rtt_ms"])
    elif sites is not None and base.cluster.site_rtt_ms is not None:
        rtt_ms = base.model_dump(mode="json")["cluster"]["site_rtt_ms"]
    return {
        "sites": sites,
        "site_rtt_ms": rtt_ms,
        "stretch": values["stretch"] == YES,
    }


def _arrivals(base: Scenario, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of the load that say when requests arrive."""
    is_s3 = base.workload.is_s3
    if values["arrivals"] == BY_DEPTH:
        depth = int(float(values["queue_depth"]))
        return {"kind": "s3" if is_s3 else "closed", "queue_depth": depth}
    rate_per_s = float(values["rate_per_s"])
    return {"kind": "s3" if is_s3 else "open", "rate_per_s": rate_per_s}


def _requested(base: Scenario, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys of the load that say what requests are for.

    A histogram of object sizes holds until its mean is changed.
    """
    load = base.workload
    if not load.is_s3:
        return {
            "patterns": ["rand"],
            "read_fraction": float(values["read_percent"]) / 100,
            "block_sizes_bytes": [round(float(values["block_kib"]) * 1024)],
        }
    shares = {op: float(values[op]) for op in S3_OPS}
    used = {op: share for op, share in shares.items() if share > 0}
    keys: dict[str, Any] = {"ops": list(used)}
    if len(used) > 1:
        keys["op_shares"] = list(used.values())
    if load.size_shares and values["object_kib"] == defaults(base, "a")["object_kib"]:
        keys["object_sizes_bytes"] = list(load.object_sizes_bytes)
        keys["size_shares"] = list(load.size_shares)
    else:
        keys["object_sizes_bytes"] = [round(float(values["object_kib"]) * 1024)]
    return keys


# Keys that the form replaces or does not support.
_REPLACED: Final[Any] = {
    **dict.fromkeys(
        (
            # The form may change whatever it describes.
            "description",
            "workloads",
            "faults",
            "repair",
            "degraded",
            "plan",
            "durability",
            "changes",
        ),
        True,
    ),
    "workload": {
        "ops",
        "duration_s",
        "completions",
        "trace",
        "trace_format",
        "speed",
        "replay",
        "rate_per_s",
        "queue_depth",
        "vms",
        "vm_queue_depth",
        "vm_iops_limit",
        "op_shares",
        "object_sizes_bytes",
        "size_shares",
    },
}


def _answers(
    scenario: Scenario, models: Models, values: Mapping[str, str]
) -> ClosedForms:
    """Return the answers of a scenario. Those that take long are missing once time has run out."""
    scheme = scenario.schemes[0]
    drives = drives_of(scenario, models)
    capacity = capacity_of(scenario, scheme, models, drives)
    bounds: Sequence[Bound] = ()
    times_ns = {}
    nines = _no_nines("not computed")
    missing = ""
    try:
        with processor_limit(OPTIONS_PROCESSOR_S_MAX):
            bounds = bounds_of(scenario, scheme)
            if scheme != "none" and _fits_one_object(scenario):
                times_ns = _times_by_phase_ns(scenario)
            nines = _nines_or_reason(scenario, scheme)
    except OutOfProcessorTime as error:
        nines = _no_nines(str(error))
        missing = _missing_words(str(error), bounds, times_ns)
    numbers = (
        *_capacity_numbers(capacity, drives),
        *_days_numbers(capacity.usable_bytes_safe, values),
        *_bound_numbers(bounds),
        _nines_number(nines, values),
    )
    return ClosedForms(numbers, capacity, tuple(bounds), nines, times_ns, missing)


def _missing_words(
    reason: str, bounds: Sequence[Bound], times_ns: Mapping[str, Any]
) -> str:
    """Return a sentence on which answers are missing and why. Durability comes last, so that it always is."""
    names = ["durability"]
    if not times_ns:
        names.insert(0, "time of a lone request")
    if not bounds:
        names.insert(0, "highest rate")
    return f"{reason}, without {', '.join(names)}: choose a smaller cluster"


def _fits_one_object(scenario: Scenario) -> bool:
    """Return True unless an image spreads a request over several objects, which no single timeline shows."""
    load = scenario.workload
    return load.is_s3 or load.block_sizes_bytes[0] <= scenario.cluster.object_bytes


def _times_by_phase_ns(scenario: Scenario) -> dict[str, dict[str, int]]:
    load = scenario.workload
    ops = load.used_ops if load.is_s3 else ("read", "write")
    return {op: _time_by_phase_ns(scenario, op) for op in ops}


def _time_by_phase_ns(scenario: Scenario, op: str) -> dict[str, int]:
    """Return the time of a request on an idle cluster by phase [ns].

    If one shard has all data of a request, the time is the mean over the k data shards, of which the primary
    has one.
    """
    load = scenario.workload
    size_bytes = load.block_sizes_bytes[0]
    if load.is_s3:
        size_bytes = round(load.mean_object_bytes)
    few = _with_few_osds(scenario)
    alone = partial(explain, op, None, size_bytes, scenario=few, with_parameters=False)
    (timeline,) = alone()
    times_ns = timeline.latency_by_category_ns()
    if timeline.remote_offset_bytes is None:
        return times_ns
    (remote,) = alone(offset_bytes=timeline.remote_offset_bytes)
    k = timeline.data_shards
    return {
        phase: round((times_ns[phase] + (k - 1) * remote_ns) / k)
        for phase, remote_ns in remote.latency_by_category_ns().items()
    }


def _with_few_osds(scenario: Scenario) -> Scenario:
    """Return a scenario with enough OSDs for one request, whose time does not depend on any others."""
    cluster = scenario.cluster
    width = parse_scheme(scenario.schemes[0]).width
    hosts = max(_LONE_HOSTS_MIN, width + 1, cluster.racks or 0)
    # Each site has as many hosts.
    hosts = -(-hosts // cluster.site_count) * cluster.site_count
    hosts = min(cluster.host_count, hosts)
    # A failure domain of OSDs puts several shards on a host.
    osds_per_host = max(_LONE_OSDS_PER_HOST, -(-(width + 1) // hosts))
    few = {
        "hosts": hosts,
        "osds_per_host": min(cluster.osds_per_host, osds_per_host),
    }
    return scenario.with_cluster(**few)


def _capacity_numbers(capacity: Capacity, drives: Drives) -> list[Number]:
    full_ratio = 1.0
    full_ratio_source = "–"
    if drives.fill:
        full_ratio = drives.fill.full_ratio
        full_ratio_source = drives.fill.provenance["full_ratio"].source
    overhead = f"{capacity.overhead:.4g}"
    raw_why = f"{capacity.osds} OSDs × {bytes_text(drives.osd_bytes)}"
    imbalance = f"{capacity.imbalance:.3f}, how full the fullest OSD is over the mean"
    stored = capacity.stored_per_client_byte
    full_why = f"raw × {full_ratio:g} / {stored:.4g} / {imbalance}"
    safe_why = " → ".join(
        f"{step.name} {bytes_text(step.left_bytes)} ({step.why})"
        for step in capacity.steps
    )
    raw = capacity.raw_bytes
    full = capacity.usable_bytes_full
    safe = capacity.usable_bytes_safe
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
            "Usable with the largest failure domain lost",
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
    if safe_bytes is None:
        return []
    free = f"{bytes_text(safe_bytes)} − {bytes_text(stored_bytes)} stored"
    if stored_bytes > safe_bytes:
        valid = "with the largest failure domain lost, at the nearfull ratio"
        return [Number("days", "Days until full", 0.0, "full", free, "the form", valid)]
    if not growth_bytes:
        return []
    days = (safe_bytes - stored_bytes) / growth_bytes
    why = f"({free}) / {bytes_text(growth_bytes)} per day"
    valid = "assumes constant growth"
    text = number_text(days)
    if days > _DAYS_MAX:
        text = f"more than {_DAYS_MAX / 365:.0f} years"
    return [Number("days", "Days until full", days, text, why, "the form", valid)]


def _nines_or_reason(scenario: Scenario, scheme: str) -> dict[str, Any]:
    """Return the row of durability, or an empty one with the reason if a lost OSD cannot be rebuilt."""
    try:
        return nines_of(scenario, scheme)
    except ValueError as error:
        return _no_nines(first_problem(error))


def _no_nines(reason: str) -> dict[str, Any]:
    return {"nines": None, "loss_probability": None, "assumptions": [reason]}


def _nines_number(row: Mapping[str, Any], values: Mapping[str, str]) -> Number:
    if row["loss_probability"] is None:
        (reason,) = row["assumptions"]
        return Number(
            "nines", "Nines of durability per year", None, "–", reason, reason, "none"
        )
    method = f"by {row['method']}"
    if row["method"] == "markov":
        method = "by a Markov chain of the placement groups, "
        method += _MARKOV_WORDS[row["exact"]]
    why = (
        f"−log10 of the probability of any loss, {row['loss_probability']:.3g}, {method}: "
        f"{values['afr_percent']} % of drives fail per year, a repair starts after {DETECTION_S:g} s and "
        f"runs at {row['rebuild_rate']}"
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
    text = f"{number_text(lowest.iops)} ({lowest.resource})"
    source = "service times per request and resource, from the parameter sets"
    valid = (
        "an upper bound: queueing, wake-ups and syncs lower the served rate. Clients count only where the "
        "scenario states them"
    )
    return [
        Number(
            "bound",
            "Highest rate, at most [1/s]",
            lowest.iops,
            text,
            why,
            source,
            valid,
        )
    ]


def toml_of(scenario: Scenario) -> str:
    """Write a scenario as TOML that `stripesim run` accepts.

    A scenario with an uploaded parameter set refers to it as `OWN_PARAMETERS`.
    """
    values = scenario.model_dump(mode="json", exclude_unset=True)
    cluster = values.get("cluster", {})
    for key in ("drive", "parameters"):
        # Only those of uploads are absolute paths.
        if cluster.get(key, "").startswith("/"):
            cluster[key] = OWN_PARAMETERS
    return toml_text(values)


def difference(first: float | None, second: float | None) -> str:
    """Format the difference of a second value from a first.

    >>> difference(100.0, 150.0), difference(2.0, 2.0), difference(0.0, 1.0)
    ('+50 %', 'equal', '–')
    """
    if first is None or second is None or (first == 0 and second != 0):
        return "–"
    return "equal" if first == second else f"{(second / first - 1) * 100:+,.0f} %"
