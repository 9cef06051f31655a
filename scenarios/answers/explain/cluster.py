"""Choose the cluster for an explained request: a small default one, or that of a scenario."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import generations
from stripesim.models.problems import AnswerError, SchemeError
from stripesim.scenarios.schema.keys import WorkloadSpec
from stripesim.scenarios.schema.loader import Override, Overrides
from stripesim.scenarios.schema.scenario import (
    Scenario,
    load_scenario,
    overridden,
    scenario_from,
)

#: Schemes to explain if neither the caller nor a scenario names any.
DEFAULT_SCHEMES: Final = ("rep:3", "rs:6,3")

# One OSD per host, so that every message crosses the network.
_SMALL_CLUSTER: Final[dict[str, Any]] = {
    "name": "explain",
    "cluster": {"osds_per_host": 1, "pg_num": 64},
    "workload": {"requests": 1, "queue_depth": 1},
}


def scenarios_of(
    base: Scenario | str | Path | None,
    releases: Sequence[str] | None,
    *,
    keys: Mapping[str, Any],
    direct_reads: bool,
    sets: Overrides,
) -> Iterator[Scenario]:
    """Yield one scenario per release, or one if there are none to compare.

    `base` has the cluster, by default a small one. `keys` override it where they are not None, and `sets`
    override both.
    """
    offering = _offering_direct_reads(releases or ())
    for release in releases or (None,):
        values: dict[str, Any] = {"generation": release, **keys}
        # Releases without direct reads read through the primary. If all are, the loader reports it.
        if direct_reads and (release in offering or not offering):
            values["cluster.direct_reads"] = True
        options = [
            Override(key, value, _OPTIONS[key])
            for key, value in values.items()
            if value is not None
        ]
        overrides = sets
        if not isinstance(overrides, Sequence):
            overrides = [Override(key, value) for key, value in overrides.items()]
        every = [*options, *overrides]
        if base is None:
            yield _small_cluster(keys["schemes"] or DEFAULT_SCHEMES, every)
        elif isinstance(base, Scenario):
            yield overridden(base, every)
        else:
            yield _largest_planned(load_scenario(base, sets=every))


def _small_cluster(schemes: Sequence[str], sets: Sequence[str | Override]) -> Scenario:
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
        raise AnswerError(f"--scheme: {error}") from None


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
    return scenario.with_cluster(**largest)


def with_one_s3_request(
    scenario: Scenario, scheme: str, op: str, size_bytes: int
) -> Scenario:
    """Return a scenario with one S3 request of one client and without faults."""
    load = scenario.workload
    own = {
        key: getattr(load, key)
        for key in ("objects", "buckets", "index_shards", "tls")
        if key in load.model_fields_set
    }
    workload = WorkloadSpec(
        kind="s3",
        ops=(op,),  # type: ignore[arg-type]
        object_sizes_bytes=(size_bytes,),
        queue_depth=1,
        requests=1,
        **own,
    )
    return _with_only(scenario, scheme, workload)


def with_one_request(
    scenario: Scenario, scheme: str, *, size_bytes: int, image: str, encodes: bool
) -> Scenario:
    """Return a scenario with one request of one client and without faults."""
    workload = WorkloadSpec(
        ops=("write",) if encodes else ("read",),
        queue_depth=1,
        requests=1,
        image=image,  # type: ignore[arg-type]
        image_features=scenario.workload.image_features,
        client_site=scenario.loads[0].client_site,
        image_bytes=max(scenario.loads[0].image_bytes, size_bytes),
    )
    return _with_only(scenario, scheme, workload)


def _with_only(scenario: Scenario, scheme: str, workload: WorkloadSpec) -> Scenario:
    """Return a scenario with one scheme and one workload, and nothing that changes during the run."""
    return scenario.replaced(
        schemes=(scheme,),
        workload=workload,
        workloads=(),
        repair=None,
        degraded=None,
        faults=None,
        durability=None,
        plan=None,
    )
