"""What is said beside a run's numbers: where and when they came about, how far they hold, what kept up."""

import datetime
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from stripesim._version import __version__
from stripesim.calibration.parameters.calibrated_range import (
    calibrated_range,
)
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.kernel_costs import interpolated_codes
from stripesim.scenarios.cells.models import cluster_set
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.units import number_text
from stripesim.sim.ceph.cluster import NO_OSD


def where_and_when() -> dict[str, str]:
    """Tell Python's version, the machine's architecture and the moment, in UTC: part of every provenance."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def made_from(scenario: Scenario, **more: Any) -> dict[str, Any]:
    """Say what gave the numbers of a scenario, with what else they depend on as JSON values."""
    return {
        "stripesim": __version__,
        "scenario": scenario.name,
        "scenario_sha256": scenario.hash(),
        "seed": scenario.seed,
        **more,
        **where_and_when(),
    }


def warnings_of(scenario: Scenario) -> list[str]:
    """Say where a scenario lies outside what its parameter set was calibrated or checked on."""
    asked = scenario.model_dump(mode="json")
    # What a kind of workload does not use is not asked about.
    workload = scenario.workload
    if workload.kind == "trace":
        asked["workload"].pop("block_sizes_bytes")
    if workload.kind == "open" or (
        workload.kind == "trace" and workload.replay == "recorded"
    ):
        asked["workload"].pop("queue_depth")
    return calibrated_range(cluster_set(scenario)).warnings(asked)


def warnings_of_all(scenarios: Iterable[Scenario]) -> list[str]:
    """Say the same of several scenarios, each line once, in the order in which they first appear."""
    return list(
        dict.fromkeys(line for scenario in scenarios for line in warnings_of(scenario))
    )


def kernel_warnings(scenario: Scenario) -> list[str]:
    """Say which codes were never timed, and how well their costs are known."""
    return [
        f"{name}: encoding and decoding were never timed: their cost is interpolated from "
        f"{added.codes} timed codes, each of which it predicts from the others within "
        f"{added.error_median:.0%} (median; at worst {added.error_max:.0%}); `stripesim kernel "
        f"--scheme {name} --save` measures it"
        for name, added in interpolated_codes(scenario).items()
    ]


def pristine_warnings(scenario: Scenario) -> list[str]:
    """Say where reads find no objects: nothing is moved, so rates say nothing of a cluster in use."""
    found = any(
        load.image == "pristine"
        and load.kind != "trace"
        and (
            load.ops == ("read",)
            if load.read_fraction is None
            else load.read_fraction == 1
        )
        for load in scenario.loads
    )
    where = scenario.where("workload", "image")
    words = "reads of a pristine image find no objects and move no data; set image"
    return (
        [f'{where}: {words} = "prefilled" to read what was written before the run']
        if found
        else []
    )


def hole_warnings(scenario: Scenario) -> list[str]:
    """Say which schemes have placement groups for which CRUSH has not found an OSD for every shard."""
    schemes = [parse_scheme(name) for name in scenario.schemes if name != "none"]
    holes = [
        int((up_sets(scenario, scheme) == NO_OSD).any(axis=1).sum())
        for scheme in schemes
    ]
    return [
        f"{scheme.name}: {count} of {scenario.cluster.pg_num} placement groups have a hole: CRUSH "
        "gave up after its tries, as it does where the failure domains are hardly more than the "
        f"{scheme.width} shards"
        for scheme, count in zip(schemes, holes, strict=True)
        if count
    ]


def load_sentences(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say of each open loop that the cluster did not keep up with how much it served.

    >>> load_sentences([{"scheme": "rep:3", "saturated": True, "iops": 41000.0, "offered_iops": 60000.0}])
    ['rep:3: saturated: serves 41,000 of 60,000 requests a second']
    """
    return [
        f"{row['scheme']}{', ' + row['workload'] if row.get('workload') else ''}: saturated: serves "
        f"{number_text(row['iops'])} of {number_text(row['offered_iops'])} requests a second"
        for row in rows
        if row.get("saturated")
    ]
