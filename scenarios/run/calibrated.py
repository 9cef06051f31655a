"""Whether a scenario asks for what its parameter set was calibrated or checked on."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from stripesim.calibration.parameters.calibrated_range import CalibratedRange, calibrated_range
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.scenarios.schema.keys import Scenario


def warnings_of(scenario: Scenario) -> list[str]:
    """Say where a scenario lies outside the calibrated range."""
    asked = scenario.model_dump(mode="json")
    # What a kind of workload does not use is not asked about.
    workload = scenario.workload
    if workload.kind == "trace":
        asked["workload"].pop("block_sizes_bytes")
    if workload.kind == "open" or (workload.kind == "trace" and workload.replay == "recorded"):
        asked["workload"].pop("queue_depth")
    return _range(scenario.cluster.parameters).warnings(asked)


@lru_cache(maxsize=16)
def _range(parameters: str) -> CalibratedRange:
    # A sweep asks for the same set thousands of times.
    return calibrated_range(ParameterSet(parameters))


def warnings_of_all(scenarios: Iterable[Scenario]) -> list[str]:
    """Say the same of several scenarios, each line once, in the order in which they first appear."""
    return list(dict.fromkeys(line for scenario in scenarios for line in warnings_of(scenario)))
