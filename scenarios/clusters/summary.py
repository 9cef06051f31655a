"""Answer `import ceph-report`: one JSON document, and the scenarios to write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.clusters.capacity import capacity_of, pg_choices
from stripesim.scenarios.clusters.cluster import ImportedCluster, ImportedPool
from stripesim.scenarios.clusters.counted_scenario import outside_of_pool, plan_of
from stripesim.scenarios.clusters.growth import grown_cluster, parse_growth
from stripesim.scenarios.clusters.scenario import (
    ImportedScenario,
    chosen_pools,
    describe_pool,
    scenario_name,
    scenario_of,
)
from stripesim.scenarios.clusters.usage import pools_beside


def describe_cluster(
    cluster: ImportedCluster,
    pools: Sequence[str] = (),
    *,
    path: Path = Path("scenario.toml"),
    plan: bool = False,
    grow: str = "",
    failures: Callable[[ImportedCluster], Mapping[str, Any]] | None = None,
) -> tuple[dict[str, Any], dict[Path, ImportedScenario]]:
    """Describe a cluster, and build scenarios of its pools.

    Parameters
    ----------
    cluster
        The cluster.
    pools
        Names of pools to build scenarios of. If empty, the pool with most data.
    path
        File to write the scenario to. With several pools, file names end in the name of the pool.
    plan
        If True, scenarios have a table `[plan]` and no CRUSH map.
    grow
        Hosts to add first, such as ``hosts=+4``, like those of the first pool.
    failures
        Computes further fields of the document from the cluster, with the hosts added. None adds none.

    Returns
    -------
    tuple
        The document of `stripesim import ceph-report`, and the scenarios by file.

    Raises
    ------
    MeasuredError
        If a pool is unknown or cannot be simulated.
    AnswerError
        If both `plan` and `grow` are given.
    """
    if plan and grow:
        wanted = "only one: a plan already varies the number of hosts"
        raise AnswerError(
            Problem(place="--plan", got=f"also --grow {grow}", wanted=wanted)
        )
    imported = chosen_pools(cluster, pools)
    if grow:
        cluster = grown_cluster(cluster, imported[0], parse_growth(grow))
        names = [pool.placed.name for pool in imported]
        imported = chosen_pools(cluster, names)
    scenarios = _scenarios_by_file(cluster, imported, path, plan=plan)
    unnamed = len(cluster.pools) - len(imported)
    if pools:
        unnamed = 0
    document = _summary(cluster, imported[0], list(scenarios.values()), unnamed)
    if failures is not None:
        document |= failures(cluster)
    return document, scenarios


def _scenarios_by_file(
    cluster: ImportedCluster, pools: Sequence[ImportedPool], path: Path, *, plan: bool
) -> dict[Path, ImportedScenario]:
    """Return the scenario of each pool by the file to write it to."""
    scenarios: dict[Path, ImportedScenario] = {}
    for pool in pools:
        file = path if len(pools) == 1 else _file_of(path, pool, set(scenarios))
        if plan:
            scenario = plan_of(cluster, pool)
            holding = pools_beside(cluster, pool)
        else:
            scenario = scenario_of(cluster, pool, f"{file.stem}.crush.txt")
            holding = [pool]
        described = describe_pool(cluster, pool, holding=holding)
        outside = outside_of_pool(described)
        scenarios[file] = replace(scenario, outside=tuple(outside))
    return scenarios


def _summary(
    cluster: ImportedCluster,
    pool: ImportedPool,
    scenarios: Sequence[ImportedScenario],
    unnamed: int,
) -> dict[str, Any]:
    """Return the document of a cluster, with the hardware of a pool. `unnamed` pools have no scenario."""
    hardware = describe_pool(cluster, pool).hardware
    first = scenarios[0]
    outside = list(map(str, first.outside))
    warnings = [*cluster.warnings, *hardware.warnings, *first.notes]
    if unnamed:
        warnings.append(
            f"pools: the scenario is of {first.pool}; {unnamed} more: --pool names others"
        )
    return {
        "version": cluster.version,
        "pools": [one.row() for one in cluster.pools],
        "osds": [osd.row() for osd in cluster.osds],
        "pgs_by_osd": cluster.count_rows(),
        "capacity": capacity_of(cluster),
        "placement": [choice.to_json() for choice in pg_choices(cluster)],
        "scenario": first.tables,
        "scenarios": [{"pool": each.pool, **each.tables} for each in scenarios],
        "hardware": list(map(str, first.derivations)),
        "processors": list(hardware.processors),
        "outside_calibrated_range": outside,
        "warnings": [*warnings, *outside],
    }


def _file_of(path: Path, pool: ImportedPool, taken: set[Path]) -> Path:
    """Return the file of one of several pools."""
    file = path.with_name(f"{path.stem}-{scenario_name(pool.placed.name)}{path.suffix}")
    if file in taken:
        return path.with_name(f"{path.stem}-{pool.placed.id}{path.suffix}")
    return file
