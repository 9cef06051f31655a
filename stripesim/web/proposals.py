"""Propose values for the form where a scenario states none: a second code, a rate and an amount of data."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Final

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.cells.files import content_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.keys import WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import DurabilitySpec, PlanSpec
from stripesim.web.controls import (
    NO,
    RATE_PER_S,
    SIDES,
    STORED_BYTES,
    defaults,
    rate_of,
)
from stripesim.web.options import scenario_of

#: Codes that are considered: RS(k,m) and copies.
_DATA_SHARDS_MAX: Final = 12
_PARITIES_MAX: Final = 4
#: Larger clusters carry the usual rate, and their bounds take long to compute [count].
_OSDS_MAX: Final = 1000
#: Part of the lowest bound that a proposed rate takes at most.
_BOUND_PART: Final = 0.5
#: Part of the drives that proposed data take at most, so that they fit with a host lost.
_DRIVES_PART: Final = 0.5
_MANTISSAS: Final = (5, 2, 1)
#: Controls of keys of [cluster] whose defaults are no cluster's own.
_CLUSTER_KEYS: Final = (
    "hosts",
    "osds_per_host",
    "drive",
    "public_gbit_per_s",
    "private_gbit_per_s",
    "cores_per_host",
    "pg_num",
)
#: Controls whose first values come from the keys that a plan varies.
_OF_PLAN: Final = ("generation", "hosts", "osds_per_host", "drive")


def first_values(base: Scenario, side: str) -> dict[str, str]:
    """Return the first values of an option: those of the scenario, and proposals where it states none."""
    values = _option(base, side)
    if base.cluster.osd_count > _OSDS_MAX:
        return values
    if rate_of(base) is None:
        values["rate_per_s"] = f"{_proposed_rate_per_s(_Hashed(base)):g}"
    if not _states_data(base):
        values["stored_tb"] = f"{_proposed_data_tb(_Hashed(base)):g}"
    return values


def guessed_scheme(base: Scenario) -> str | None:
    """Return a second code for a scenario with one: as many usable bytes, and as many failures survived.

    Returns
    -------
    str or None
        The code with the nearest overhead among those that leave a spare failure domain, or else among
        those that fit. None if the scenario states two codes or none fits.
    """
    if len(base.schemes) > 1 or base.schemes[0] == "none":
        return None
    first = parse_scheme(base.schemes[0])
    shown = defaults(base, "a")
    domain = shown["failure_domain"]
    domains = _domain_count(shown)
    fitting = [
        code
        for code in _codes()
        if code.name != first.name
        and code.width <= domains
        and code.failures_tolerated >= first.failures_tolerated
        and (domain != "site" or _survives_a_site(code, base))
    ]
    if not fitting:
        return None

    def preference(code: RedundancyScheme) -> tuple[bool, float, int]:
        has_no_spare = code.width == domains
        distance = abs(code.storage_overhead - first.storage_overhead)
        return has_no_spare, round(distance, 9), code.width

    return min(fitting, key=preference).name


def unstated(base: Scenario) -> frozenset[str]:
    """Return the names of the controls whose first values a scenario does not state: guesses of the page."""
    durability = base.durability or DurabilitySpec()
    cluster = base.cluster
    load = base.workload
    stated = {
        **{key: key in cluster.model_fields_set for key in _CLUSTER_KEYS},
        "generation": "generation" in base.model_fields_set,
        **_stated_requests(load),
        "rate_per_s": rate_of(base) is not None,
        "stored_tb": _states_data(base),
        "afr_percent": durability.afr is not None,
    }
    plan = base.plan or PlanSpec()
    varied = {key for key in _OF_PLAN if getattr(plan, key)}
    return frozenset(key for key, is_stated in stated.items() if not is_stated) - varied


def _states_data(base: Scenario) -> bool:
    plan = base.plan or PlanSpec()
    return bool(plan.stored_bytes or base.cluster.stored_bytes)


def _stated_requests(load: WorkloadSpec) -> dict[str, bool]:
    """Return whether a scenario states each of the controls that say what requests are for."""
    fields = load.model_fields_set
    if not load.is_s3:
        return {
            "block_kib": "block_sizes_bytes" in fields,
            "read_percent": load.read_fraction is not None or len(load.ops) == 1,
        }
    states_shares = load.op_shares is not None or len(load.used_ops) == 1
    return {
        "object_kib": "object_sizes_bytes" in fields,
        **dict.fromkeys(load.used_ops, states_shares),
    }


def _codes() -> Iterator[RedundancyScheme]:
    for parities in range(1, _PARITIES_MAX + 1):
        yield parse_scheme(f"rep:{parities + 1}")
        for data in range(2, _DATA_SHARDS_MAX + 1):
            yield parse_scheme(f"rs:{data},{parities}")


def _domain_count(values: Mapping[str, str]) -> int:
    """Return the number of failure domains of an option."""
    hosts = int(values["hosts"])
    if values["failure_domain"] == "osd":
        return hosts * int(values["osds_per_host"])
    if values["failure_domain"] == "rack":
        return int(values["racks"] or 1)
    # Shards at a site are on different hosts.
    return hosts


def _survives_a_site(code: RedundancyScheme, base: Scenario) -> bool:
    """Return True if a code has as many shards at each site, and can lose those of one."""
    each, rest = divmod(code.width, base.cluster.site_count)
    return rest == 0 and each <= code.failures_tolerated


class _Hashed:
    """A scenario that a cache knows by its content."""

    def __init__(self, base: Scenario) -> None:
        self.base = base
        self._key = content_of(base)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other._key == self._key


@lru_cache(maxsize=64)
def _proposed_rate_per_s(hashed: _Hashed) -> float:
    """Return the usual rate, or less if half of the lower option's bound is less, as 1, 2 or 5 × 10ⁿ."""
    return max(1.0, _rounded_down(_least(hashed.base, RATE_PER_S, _half_bound_iops)))


@lru_cache(maxsize=64)
def _proposed_data_tb(hashed: _Hashed) -> float:
    """Return the usual data, or less if half of an option's drives hold less, as 1, 2 or 5 × 10ⁿ [TB]."""
    return _rounded_down(_least(hashed.base, STORED_BYTES, _half_drives_bytes) / 1e12)


def _least(
    base: Scenario, usual: float, limit_of: Callable[[Scenario], float | None]
) -> float:
    """Return the usual value, or the lowest limit of an option where that is lower."""
    least = usual
    for side in SIDES:
        values = _option(base, side)
        # The form shows what is wrong with an option.
        with suppress(ValueError):
            limit = limit_of(scenario_of(base, values, {}))
            if limit is not None:
                least = min(least, limit)
    return least


def _half_bound_iops(scenario: Scenario) -> float | None:
    bounds = bounds_of(scenario, scenario.schemes[0])
    return _BOUND_PART * bounds[0].iops if bounds else None


def _half_drives_bytes(scenario: Scenario) -> float | None:
    osd_bytes = drives_of(scenario, build_models(scenario)).osd_bytes
    if osd_bytes is None:
        return None
    raw_bytes = scenario.cluster.osd_count * osd_bytes
    return _DRIVES_PART * raw_bytes / parse_scheme(scenario.schemes[0]).storage_overhead


def _option(base: Scenario, side: str) -> dict[str, str]:
    """Return the values of an option that the scenario states or the form has, with the second code."""
    values = defaults(base, side)
    guess = guessed_scheme(base) if side == "b" else None
    if guess is not None:
        # Ceph's stretch mode is for the copies of the scenario alone.
        values |= {"scheme": guess, "stretch": NO}
    return values


def _rounded_down(value: float) -> float:
    """Round a positive number down to 1, 2 or 5 times a power of ten.

    >>> _rounded_down(285.0), _rounded_down(1000.0), _rounded_down(0.3)
    (200.0, 1000.0, 0.2)
    """
    power = math.floor(math.log10(value))
    mantissa = next((one for one in _MANTISSAS if one * 10.0**power <= value), 1)
    return mantissa * 10.0**power
