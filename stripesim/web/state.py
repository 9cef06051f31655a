"""What the form of the page means: two options, each a scenario, and the numbers that follow at once."""

import contextlib
import math
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from stripesim.calibration.kernels.store import shipped_table_names
from stripesim.calibration.parameters.sets import DEVICE_TABLES, ParameterSet, names
from stripesim.scenarios.planning.candidates import bounds_of, of_scheme
from stripesim.scenarios.planning.capacity import capacity_of, drives_of, storage_warnings
from stripesim.scenarios.planning.plan import AFR, DETECTION_S, nines_of
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.run.notes import warnings_of
from stripesim.scenarios.schema.keys import Scenario, names_file
from stripesim.scenarios.schema.loader import ScenarioError, parse_scenario, scenario_from
from stripesim.scenarios.schema.toml import toml_document
from stripesim.scenarios.schema.units import bytes_text, number_text

SIDES: Final = ("a", "b")
#: Numbers of a form have at most so many characters: longer ones are not meant.
_TEXT_MAX: Final = 40


@dataclass(frozen=True)
class Control:
    """One control of the form."""

    name: str  # in the address, behind a. or b. where each option has its own
    label: str
    kind: str = "number"  # or text, or select
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()
    both: bool = False  # whether it holds for both options


@lru_cache(maxsize=1)
def controls() -> tuple[Control, ...]:
    """List the controls, in their order on the page."""
    devices = tuple(name for name in names() if any(ParameterSet(name).table(t) for t in DEVICE_TABLES))
    return (
        Control("scheme", "Scheme", "text"),
        Control("hosts", "Hosts", low=1, high=200),
        Control("osds_per_host", "OSDs per host", low=1, high=60),
        Control("ssd", "Drive", "select", choices=devices),
        Control("drive_tb", "Drive capacity [TB]", low=0.01, high=1000),
        Control("public_gbit_per_s", "Public network [Gbit/s]", low=0.1, high=800),
        Control("private_gbit_per_s", "Private network [Gbit/s]", low=0.1, high=800),
        Control("cores_per_host", "Cores per host", low=1, high=1024),
        Control("pg_num", "Placement groups", low=1, high=8192),
        Control("failure_domain", "Failure domain", "select", choices=("host", "osd")),
        Control("block_kib", "Request size [KiB]", low=0.5, high=4096, both=True),
        Control("read_percent", "Reads [%]", low=0, high=100, both=True),
        Control("rate_per_s", "Required rate [1/s]", low=1, high=1e7, both=True),
        Control("growth_tb_per_day", "Growth [TB/day]", low=0, high=1e5, both=True),
        Control("afr_percent", "Drives failing in a year [%]", low=0.01, high=90, both=True),
        Control("repair_mb_per_s", "Repair of one drive [MB/s]", low=0.1, high=1e5, both=True),
    )


@dataclass(frozen=True)
class Number:
    """One number of the page, and why it is what it is."""

    key: str
    label: str
    value: float | None
    text: str
    why: str
    source: str
    range: str


@dataclass(frozen=True)
class Option:
    """One of two options: what was asked, and what follows at once, or why nothing does."""

    values: Mapping[str, str]
    scenario: Scenario | None = None
    numbers: tuple[Number, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def defaults(base: Scenario, side: str) -> dict[str, str]:
    """Return what the form holds before anything is typed: the scenario's own values."""
    cluster, load, durability = base.cluster, base.workload, base.durability
    scheme = base.schemes[min(SIDES.index(side), len(base.schemes) - 1)]
    plan = base.plan
    reads = load.read_fraction if load.read_fraction is not None else (0.0 if load.ops == ("write",) else 0.7)
    values = {
        "scheme": scheme,
        "hosts": max(plan.hosts) if plan and plan.hosts else cluster.host_count,
        "osds_per_host": max(plan.osds_per_host) if plan and plan.osds_per_host else cluster.osds_per_host,
        "ssd": plan.ssd[0] if plan and plan.ssd else cluster.ssd,
        # Empty: the capacity of the drive's own data sheet.
        "drive_tb": cluster.drive_bytes / 1e12 if cluster.drive_bytes else "",
        "public_gbit_per_s": cluster.public_gbit_per_s,
        "private_gbit_per_s": cluster.private_gbit_per_s,
        "cores_per_host": cluster.cores_per_host,
        "pg_num": min(cluster.pg_num, 8192),
        "failure_domain": "osd" if cluster.failure_domain_erasure == "osd" else "host",
        "block_kib": load.block_sizes_bytes[0] / 1024,
        "read_percent": 100 * reads,
        "rate_per_s": (plan.rate_per_s if plan else None) or load.rate_per_s or 1000.0,
        "growth_tb_per_day": ((plan.growth_bytes_per_day if plan else None) or 0.1e12) / 1e12,
        "afr_percent": 100 * ((durability.afr if durability else None) or AFR),
        "repair_mb_per_s": ((durability.repair_bytes_per_s if durability else None) or 50e6) / 1e6,
    }
    return {
        key: f"{value:g}" if isinstance(value, int | float) else str(value) for key, value in values.items()
    }


def read_values(base: Scenario, query: Mapping[str, str], side: str) -> tuple[dict[str, str], list[str]]:
    """Take one option from an address: what is typed, else the base's values; and what cannot be."""
    found, problems = defaults(base, side), []
    for control in controls():
        given = query.get(control.name if control.both else f"{side}.{control.name}")
        if not given:
            continue
        found[control.name] = given = given.strip()[:_TEXT_MAX]
        number, wanted = math.nan, f"{control.low:g} to {control.high:g}"
        if control.kind == "number":
            with contextlib.suppress(ValueError):
                number = float(given)
        if control.kind == "select":
            wanted = f"one of {', '.join(control.choices)}"
        fits = control.low <= number <= control.high if control.kind == "number" else given in control.choices
        if not fits and control.kind != "text":
            problems.append(f"{control.label}: got {given!r}, wanted {wanted}")
    return found, problems


def option_of(base: Scenario, query: Mapping[str, str], side: str) -> Option:
    """Build one option of the page and compute what follows without simulation."""
    values, problems = read_values(base, query, side)
    if problems:
        return Option(values, problems=tuple(problems))
    return _computed(_Based(base, base.hash()), tuple(values.items()))


@dataclass(frozen=True)
class _Based:
    """A scenario as a key: two of one content are one."""

    scenario: Scenario = field(compare=False)
    sha256: str = ""


@lru_cache(maxsize=256)
def _computed(based: _Based, items: tuple[tuple[str, str], ...]) -> Option:
    values = dict(items)
    try:
        scenario = _scenario(based.scenario, values)
        numbers, warnings = _numbers(scenario, values)
    except ValueError as error:
        # What the loader says begins with a place, which the form has none of.
        parts = [line.partition(": ") for line in str(error).splitlines()]
        placed = isinstance(error, ScenarioError)
        said = tuple(rest if placed and rest else f"{place}{colon}{rest}" for place, colon, rest in parts)
        return Option(values, problems=said)
    return Option(values, scenario, tuple(numbers), warnings=tuple(warnings))


def _scenario(base: Scenario, values: Mapping[str, str]) -> Scenario:
    keys: dict[str, Any] = {"ssd": values["ssd"]}
    for key in ("hosts", "osds_per_host", "cores_per_host", "pg_num"):
        keys[key] = number = int(float(values[key]))
        if number != float(values[key]):
            raise ValueError(f"{key}: got {values[key]}, wanted a whole number")
    for key in ("public_gbit_per_s", "private_gbit_per_s"):
        keys[key] = float(values[key])
    if values["drive_tb"]:
        keys["drive_bytes"] = round(float(values["drive_tb"]) * 1e12)
    for key in ("failure_domain_replicated", "failure_domain_erasure"):
        keys[key] = values["failure_domain"]
    given = base.model_dump(mode="json", exclude_unset=True, exclude=_REPLACED)
    workload = {
        **given.get("workload", {}),
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
    asked = {**given, "workload": workload, "durability": durability}
    return of_scheme(base, asked, values["scheme"], keys)


# What the form says in its own way, or does not have.
_REPLACED: Final[Any] = {
    **dict.fromkeys(("workloads", "faults", "repair", "degraded", "plan", "durability"), True),
    "workload": {"ops", "duration_s", "completions", "trace", "trace_format", "speed", "replay"},
}


def _numbers(scenario: Scenario, values: Mapping[str, str]) -> tuple[list[Number], list[str]]:
    scheme, models = scenario.schemes[0], build_models(scenario)
    drives = drives_of(scenario, models)
    held = capacity_of(scenario, scheme, models, drives)
    safe, full, raw = held.usable_bytes_safe, held.usable_bytes_full, held.raw_bytes
    origin = drives.fill.provenance["full_ratio"].source if drives.fill else "–"
    exact = "exact arithmetic; metadata and other pools are not counted"
    steps = " → ".join(f"{step.name} {bytes_text(step.left_bytes)} ({step.why})" for step in held.steps[:5])
    stored, row = held.stored_per_client_byte, nines_of(scenario, scheme, None)
    drive_sum = f"{held.osds} OSDs × {drives.osd_bytes or 0:,.0f} B"
    full_sum = f"raw × 0.95 / {held.overhead:.4g}"
    padded = f"{held.overhead:.4g} by the scheme, the rest is padding to stripes"
    layout = "the layout of Ceph's erasure-coded objects"
    found = [
        Number("raw", "Raw capacity", raw, bytes_text(raw), drive_sum, "the form", exact),
        Number("full", "Usable at the full ratio", full, bytes_text(full), full_sum, origin, exact),
        Number("safe", "Usable with the largest domain gone", safe, bytes_text(safe), steps, origin, exact),
        Number("stored", "Stored for each client byte", stored, number_text(stored), padded, layout, exact),
    ]
    growth = float(values["growth_tb_per_day"]) * 1e12
    if growth and safe is not None:
        days, why = safe / growth, f"{bytes_text(safe)} / {bytes_text(growth)} a day"
        constant = "growth taken as constant"
        found.append(Number("days", "Days until full", days, number_text(days), why, "the form", constant))
    origin = "the form and the device's parameter set"
    bound_range = "an upper bound: headers, partial stripes, logs and processors only lower it"
    for name, rate, why in bounds_of(scenario, scheme):
        label, text = f"At most, by the {name}", f"{number_text(rate)} requests/s"
        found.append(Number(f"bound {name}", label, rate, text, why, origin, bound_range))
    why = (
        f"−log10 of the probability of any loss, {row['loss_probability']:.3g}, by an exact Markov chain of "
        f"the placement groups: drives fail at {values['afr_percent']} % a year, a repair begins after "
        f"{DETECTION_S:g} s and goes at {values['repair_mb_per_s']} MB/s"
    )
    label, assumed = "Nines of durability in a year", "; ".join(row["assumptions"])
    independent = "independent failures: no power cuts, no bad batches"
    nines = row["nines"]
    found.append(Number("nines", label, nines, number_text(nines), why, assumed, independent))
    return found, [*storage_warnings(scenario, models), *warnings_of(scenario)]


def read_upload(text: str) -> Scenario:
    """Read a scenario that came from outside: it may name no file, and only sets that ship."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"scenario: {error}") from None
    refused = sorted(set(_file_keys(values)))
    if refused:
        raise ValueError(f"scenario: got {', '.join(refused)}, wanted no path of a file in an upload")
    cluster, sets = values.get("cluster", {}), names()
    known = {"ssd": sets, "parameters": sets, "kernel_table": ("", *shipped_table_names())}
    for key, fitting in known.items():
        given = cluster.get(key) if isinstance(cluster, dict) else None
        if given is not None and given not in fitting:
            wanted = f"one of {', '.join(fitting)}"
            raise ValueError(f"scenario: cluster.{key}: got a name that does not ship, wanted {wanted}")
    return parse_scenario(text, label="scenario")


def read_report(content: bytes) -> tuple[Scenario, list[str]]:
    """Make a scenario of the largest pool of an uploaded ``ceph report``; and what was simplified.

    The page compares clusters of equal hosts, so the hosts that the pool's OSDs are on are taken as equal;
    ``stripesim import ceph-report`` keeps the CRUSH map as it is.
    """
    from stripesim.scenarios.importing.cluster import import_cluster
    from stripesim.scenarios.importing.scenario import chosen_pools, scenario_of

    with tempfile.TemporaryDirectory(prefix="stripesim-") as folder:
        # The name is ours: nothing of the request names a file.
        path = Path(folder) / "report.json"
        path.write_bytes(content)
        try:
            cluster = import_cluster([path])
            pool = chosen_pools(cluster, [])[0]
            found = scenario_of(cluster, pool, "crush.txt")
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "report")) from None
    placed = cluster.host_of()
    hosts = len({placed[osd] for osd in pool.osds if osd in placed})
    per_host = max(1, round(len(pool.osds) / max(1, hosts)))
    domain = "osd" if pool.failure_domain == "osd" else "host"
    keys = {key: value for key, value in found.tables["cluster"].items() if not key.startswith("crush_")}
    keys |= {"hosts": max(1, hosts), "osds_per_host": per_host}
    keys |= {"failure_domain_replicated": domain, "failure_domain_erasure": domain}
    notes = [
        f"{len(pool.osds)} OSDs of pool {pool.placed.name} on {hosts} hosts are taken as {per_host} on "
        "each; stripesim import ceph-report keeps the CRUSH map as it is",
        *found.mapping,
        *cluster.warnings,
    ]
    return scenario_from({**found.tables, "cluster": keys}, label="report"), notes


def _file_keys(value: Any, key: str = "") -> list[str]:
    if isinstance(value, dict):
        return [name for part, inner in value.items() for name in _file_keys(inner, part)]
    if isinstance(value, list):
        return [name for inner in value for name in _file_keys(inner, key)]
    outside = names_file(key, value) or (key in {"drive"} and isinstance(value, str))
    return [key] if outside else []


def toml_of(scenario: Scenario) -> str:
    """Write a scenario as TOML that `stripesim run` takes."""
    return toml_document(scenario.model_dump(mode="json", exclude_unset=True))


def difference(first: float | None, second: float | None) -> str:
    """Write how much a second value differs from a first.

    >>> difference(100.0, 150.0), difference(2.0, 2.0), difference(0.0, 1.0)
    ('+50 %', 'equal', '–')
    """
    if first is None or second is None or (first == 0 and second != 0):
        return "–"
    return "equal" if first == second else f"{(second / first - 1) * 100:+,.0f} %"
