"""Choose the cluster for an explained request: a small default one, or that of a scenario."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stripesim.models.coding import SchemeError, parse_scheme
from stripesim.models.generations import generations
from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec
from stripesim.scenarios.schema.loader import (
    Override,
    Overrides,
    load_scenario,
    overridden,
    scenario_from,
)

#: Schemes to explain if neither the caller nor a scenario names any.
DEFAULT_SCHEMES: Final = ("rep:3", "rs:6,3")

# One OSD per host, so that every message crosses the network.
_SMALL_CLUSTER: Final[dict[str, Any]] = {
    "name": "explain",
    "generation": "kraken",
    "cluster": {"parameters": "kraken", "osds_per_host": 1, "pg_num": 64},
    "workload": {"requests": 1, "queue_depth": 1},
}


class ExplainError(ValueError):
    """A request that cannot be explained."""


@dataclass(frozen=True)
class ClusterChoice:
    """The caller's options for the cluster. None keeps the value of the scenario or the small cluster."""

    scenario: Scenario | str | Path | None = None
    schemes: Sequence[str] | None = None
    generations: Sequence[str] | None = None
    stripe_unit_bytes: int | None = None
    object_bytes: int | None = None
    direct_reads: bool = False
    sets: Overrides = ()

    def scenarios(self) -> Iterator[Scenario]:
        """Yield one scenario per release, all with the same schemes."""
        if self.generations is None:
            direct_reads = {"cluster.direct_reads": True} if self.direct_reads else {}
            yield self._scenario(direct_reads)
            return
        offering = _offering_direct_reads(self.generations)
        for generation in self.generations:
            values: dict[str, Any] = {"generation": generation}
            # Releases without direct reads read through the primary. If all are, the loader reports it.
            if self.direct_reads and (generation in offering or not offering):
                values["cluster.direct_reads"] = True
            yield self._scenario(values)

    def _scenario(self, of_release: dict[str, Any]) -> Scenario:
        values = {
            **of_release,
            "schemes": self.schemes,
            "cluster.stripe_unit_bytes": self.stripe_unit_bytes,
            "cluster.object_bytes": self.object_bytes,
        }
        options = [
            Override(key, value, _OPTIONS[key])
            for key, value in values.items()
            if value is not None
        ]
        sets = self.sets
        if not isinstance(sets, Sequence):
            sets = [Override(key, value) for key, value in sets.items()]
        # An option overrides the scenario, and an explicit key overrides both.
        every = [*options, *sets]
        if self.scenario is None:
            return self._small(every)
        if isinstance(self.scenario, Scenario):
            return overridden(self.scenario, every)
        return _largest_planned(load_scenario(self.scenario, sets=every))

    def _small(self, sets: Sequence[str | Override]) -> Scenario:
        schemes = self.schemes or DEFAULT_SCHEMES
        # A repair needs a spare host.
        hosts = 1 + max(_width(scheme) for scheme in schemes)
        cluster = {**_SMALL_CLUSTER["cluster"], "hosts": hosts}
        values = {**_SMALL_CLUSTER, "schemes": schemes, "cluster": cluster}
        return scenario_from(values, label="explain", sets=sets)


#: Command-line option that sets each key, for error messages.
_OPTIONS: Final = {
    "generation": "--generation",
    "schemes": "--scheme",
    "cluster.object_bytes": "--size",
    "cluster.stripe_unit_bytes": "--stripe-unit",
    "cluster.direct_reads": "--direct-reads",
}


def _offering_direct_reads(names: Sequence[str]) -> set[str]:
    releases = generations()
    return {
        name for name in names if name in releases and releases[name].ec.direct_reads
    }


def _width(scheme: str) -> int:
    try:
        return parse_scheme(scheme).width
    except SchemeError as error:
        raise ExplainError(f"--scheme: {error}") from None


def _largest_planned(scenario: Scenario) -> Scenario:
    """Choose the largest numbers of hosts and OSDs that [plan] tries, unless the caller sets them."""
    plan = scenario.plan
    if plan is None:
        return scenario
    largest = {
        key: max(tried)
        for key, tried in (("hosts", plan.hosts), ("osds_per_host", plan.osds_per_host))
        if tried and not scenario.is_override("cluster", key)
    }
    cluster = scenario.cluster.model_copy(update=largest)
    return scenario.model_copy(update={"cluster": cluster})


def with_one_request(
    scenario: Scenario, scheme: str, *, size_bytes: int, image: str, encodes: bool
) -> Scenario:
    """Return a scenario with one request of one client and without faults."""
    workload = WorkloadSpec(
        ops=("write",) if encodes else ("read",),
        queue_depth=1,
        requests=1,
        image=image,  # type: ignore[arg-type]
        image_bytes=max(scenario.loads[0].image_bytes, size_bytes),
    )
    alone = {
        "schemes": (scheme,),
        "workload": workload,
        "workloads": (),
        "repair": None,
        "degraded": None,
        "faults": None,
        "durability": None,
        "plan": None,
    }
    return scenario.model_copy(update=alone)
